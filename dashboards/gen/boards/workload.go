package boards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// needsWorkload is why panels of what the workload holds are empty.
const needsWorkload = "no claims, agents or rules dra-exporter.workloads"

// needsPeers is why panels that compare the devices of a workload are empty.
const needsPeers = "no peers, or no rules dra-exporter.workload-devices"

// workload is one workload: who is in it, which of its devices are slower than the
// others, whether it makes progress, and what it costs.
func workload() Board {
	return Board{
		UID:         uidWorkload,
		Title:       "DRA / Workload",
		description: "One workload: pods by state, devices by rank, slow devices, whether it hangs, health, use and cost. Peers are four or more devices of one role and model in pods that exchange data. Choose one cluster: workloads of one name are added up.",
		variables: []cog.Builder[dashboard.VariableModel]{
			dataSource(), cluster(),
			one("namespace", "Namespace", `label_values({__name__=~"dra_workload_info|dra_pod_workload_info", @fleet}, namespace)`).AllowCustomValue(true),
			one("kind", "Workload kind", `label_values({__name__=~"dra_workload_info|dra_pod_workload_info", @fleet, namespace="$namespace"}, workload_kind)`).AllowCustomValue(true),
			one("workload", "Workload", `label_values({__name__=~"dra_workload_info|dra_pod_workload_info", @fleet, namespace="$namespace", workload_kind="$kind"}, workload)`).AllowCustomValue(true),
		},
		rows: []row{
			{panels: slices.Concat([]panel{chosenWorkload()}, workloadNow(), []panel{workloadPending()}, workloadDevices())},
			{title: "Devices over time", panels: workloadOverTime()},
			{title: "Power, traffic, pods and topology", panels: slices.Concat(workloadProgress(), workloadTopology())},
			{title: "Use in the range", folded: true, panels: workloadUse()},
		},
	}
}

// chosenWorkload says which workload is shown: without a choice it is the first by name.
func chosenWorkload() panel {
	return note("Chosen workload", "Grafana chooses the first workload by name if no link or reader does.",
		"$kind **$workload** in namespace **$namespace**. Choose another above, or by its name on the board Workloads or Claim.")
}

func workloadNow() []panel {
	return []panel{
		number(4, about{
			title: "Pods running", unit: units.Short,
			reads: "Pods with a started container.",
			empty: noPods,
		}, at(`sum(max by (`+workloadLabels+`, state) (dra_workload_pods{@workload, state="running"}))
or 0 * sum(dra_workload_info{@workload})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Pods not yet started", unit: units.Short,
			reads: "Gated, pending, or bound; the reasons are below.",
			empty: noPods,
		}, at(`sum(max by (`+workloadLabels+`, state) (dra_workload_pods{@workload, state=~"gated|pending|starting"}))
or 0 * sum(dra_workload_info{@workload})`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Devices", unit: units.Short,
			reads: "Devices and partitions of its pods' claims.",
			empty: needsWorkload,
		}, at(`sum(workload:dra_claim_devices:sum{@workload})
or 0 * sum(dra_workload_info{@workload}) unless sum(dra_workload_pods{@workload, state=~"starting|running"})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Mean utilization", unit: units.PercentUnit,
			reads: "Over devices whose use is known. A job that hangs has 100 %, too.",
			empty: "not reported, or " + needsWorkload,
		}, at(`sum(workload:dra_claim_utilization_ratio:sum{@workload}) / (sum(workload:dra_claim_utilization_ratio:count{@workload}) > 0)`)).
			Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Slow devices", unit: units.Short,
			reads: "Slower than their peers. All ranks of a synchronous job wait for the slowest.",
			none:  noneSeen,
			empty: "no device deviates, or " + needsPeers,
		}, at(`count(max by (cluster, node, uuid) (workload_device:dra_device_signal:deviates{@workload}))`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Power while it hangs", unit: units.PercentUnit,
			reads: "Of its usual power, while devices are busy and exchange no data: it hangs in a collective.",
			none:  "not judged",
			empty: "no devices are compared, or " + needsPeers,
		}, at(`min(workload:dra_device_power_watts:hung{@workload})
or 1 + 0 * (
  sum(workload:dra_device_power_watts:avg5m{@workload})
  + sum(workload_role:dra_device_signal:median{@workload, signal="busy"})
  + sum(workload:dra_claim_exchanged_bytes:share{@workload})
)`)).
			Mappings(append(uncoloured(), words(named{"1", "does not hang", good})...)).ColorScheme(always(critical)),
	}
}

// workloadPending is why pods of the workload do not run.
func workloadPending() panel {
	return listing(24, 2, about{
		title: "Reasons why it does not run", unit: units.Short,
		reads: "Pending claims of its pods by reason; docs/pending.md has remedies, `dra-exporter explain workload NAMESPACE/NAME` the whole answer. A job without pods has the reason of its queue.",
		none:  "nothing is pending",
		empty: "no claim of its pods is pending, or " + noPods,
	}, []key{{label: "cluster", title: "Cluster"}, {label: "reason", title: "Reason"}},
		column{title: "Claims", expr: `count by (cluster, reason) (max by (` + reference + `, reason) (dra_claim_pending_reason_info{@workload}))`},
		column{title: "Oldest", unit: units.Seconds, more: tinted(waitSteps()), expr: `max by (cluster, reason) (
  max by (` + reference + `, reason) (dra_claim_pending_reason_info{@workload})
  * on (` + reference + `) group_left () max by (` + reference + `) (time() - dra_claim_pending_since_timestamp_seconds{@fleet, namespace="$namespace"})
)
or max by (cluster, reason) (time() - dra_workload_queued_since_timestamp_seconds{@workload})`},
	)
}

// rankLabels are the columns that identify a device of a workload.
const rankLabels = "cluster, role, replica, rank, pod, node, uuid"

// signalOf is a signal of each device of the workload that is compared with others.
func signalOf(signal string) string {
	return "max by (" + rankLabels + ") (workload_device:dra_device_signal:rate5m{@workload, signal=\"" + signal + "\"})"
}

func workloadDevices() []panel {
	return []panel{
		listing(24, 10, about{
			title: "Devices by rank", unit: units.Short,
			reads: "Whole devices that one pod uses alone, means of five minutes. Deviation: towards slower from the peers' median, in units of their spread; 4 is much. No clock at the level lean.",
			empty: needsWorkload + ", or its pods work independently",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "role", title: "Role"},
			{label: "replica", title: "Replica"},
			{label: "rank", title: "Rank"},
			{label: "pod", title: "Pod"},
			{label: "node", title: "Node", links: []link{toNode()}},
			{label: "device", title: "Device"},
			{label: "uuid", title: "UUID", hidden: true},
		},
			column{title: "Deviation", more: append(tinted(steps(neutral, step{3, warning}, step{4, critical})), property("decimals", 1)),
				expr: "max by (" + rankLabels + ") (workload_device:dra_device_signal:deviation{@workload})"},
			column{title: "Busy", unit: units.PercentUnit, expr: signalOf("busy")},
			column{title: "Power", unit: units.Watt, expr: signalOf("power")},
			column{title: "Clock", unit: units.Hertz, expr: signalOf("clock")},
			column{title: "Present", hidden: true, expr: shortUUID("max by (" + rankLabels + ") (workload_device:dra_pod_workload_info:held{@workload})")},
		),
	}
}

// heldForWindow leaves out what has been held for less than the five minutes of the
// recorded rates: these would rise for as long.
const heldForWindow = `and on (cluster, node, namespace, pod, uuid) (workload_device:dra_pod_workload_info:held{@workload} offset 5m)`

// runsForWindow does the same for a workload.
const runsForWindow = `and on (cluster, namespace, workload_kind, workload) (workload_device:dra_pod_workload_info:held{@workload} offset 5m)`

// mostLines bounds the devices that a panel draws.
const mostLines = "32"

func workloadOverTime() []panel {
	const legend = "{{rank}} {{pod}}"
	return []panel{
		listing(24, 8, about{
			title: "Signals that deviate", unit: units.Short,
			reads: "In units of the peers' spread. busy: it waits for host or data; throttled: heat or power brake; clock, power: it computes slower; errors: links or network adapter.",
			none:  noneSeen,
			empty: "no device deviates, or " + needsPeers,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "rank", title: "Rank"},
			{label: "pod", title: "Pod"},
			{label: "node", title: "Node", links: []link{toNode()}},
			{label: "device", title: "Device"},
			{label: "uuid", title: "UUID", hidden: true},
			{label: "signal", title: "Signal"},
		}, column{title: "Deviation", more: append(tinted(steps(warning)), property("decimals", 1)),
			expr: shortUUID("max by (cluster, rank, pod, node, uuid, signal) (workload_device:dra_device_signal:deviates{@workload})")}),
		timeline(24, about{
			title: "Deviation of the slowest devices", unit: units.Short,
			reads: "The " + mostLines + " that deviate most towards slower, in units of the peers' spread. DRAWorkloadStraggler fires above 4 for nine of 15 minutes.",
			empty: needsPeers,
		}, over("topk("+mostLines+", max by (cluster, rank, pod, node, uuid) (workload_device:dra_device_signal:deviation{@workload}))", legend)),
		timeline(12, about{
			title: "Busy share of the least busy devices", unit: units.PercentUnit,
			reads: "Share of five minutes; the " + mostLines + " least busy. A lower rank waits for host or data. If all fall, the job pauses.",
			empty: needsPeers,
		}, over("bottomk("+mostLines+", max by (cluster, rank, pod, node, uuid) (workload_device:dra_device_signal:rate5m{@workload, signal=\"busy\"} "+heldForWindow+"))", legend)).Max(1),
		timeline(12, about{
			title: "Power of the devices with least", unit: units.Watt,
			reads: "Mean of five minutes; the " + mostLines + " that draw least.",
			empty: "there are no energy counters, or " + needsPeers,
		}, over("bottomk("+mostLines+", max by (cluster, rank, pod, node, uuid) (workload_device:dra_device_signal:rate5m{@workload, signal=\"power\"} "+heldForWindow+"))", legend)),
	}
}

func workloadProgress() []panel {
	return []panel{
		timeline(8, about{
			title: "Mean power of a device", unit: units.Watt,
			reads: "If far below usual while devices are busy, the job hangs.",
			empty: needsPeers,
		}, over(`max by (cluster) (workload:dra_device_power_watts:avg5m{@workload} `+runsForWindow+`)`, "power {{cluster}}")),
		timeline(8, about{
			title: "Data exchanged", unit: units.BytesPerSecondSI,
			reads: "NVLink and claimed network adapters, mean of five minutes. A synchronous job exchanges about the same in each step.",
			empty: "not counted, or " + needsWorkload,
		},
			over(`max by (cluster) (workload:dra_claim_nvlink_bytes:rate5m{@workload} `+runsForWindow+`)`, "NVLink {{cluster}}"),
			over(`max by (cluster) (workload:dra_claim_network_bytes:rate5m{@workload} `+runsForWindow+`)`, "network {{cluster}}"),
			over(`max by (cluster) (workload:dra_claim_pcie_bytes:rate5m{@workload} `+runsForWindow+`)`, "PCIe {{cluster}}")),
		stacked(8, about{
			title: "Pods by state", unit: units.Short,
			reads: "gated: by a queue; starting: bound.",
			empty: noPods,
		}, over(`sum by (cluster, state) (max by (`+workloadLabels+`, state) (dra_workload_pods{@workload}))`, "{{state}} {{cluster}}")),
	}
}

func workloadTopology() []panel {
	byLevel := func(metric string) string {
		return "max by (cluster, level) (dra_workload_topology_" + metric + "{@workload})"
	}
	return []panel{
		listing(10, 6, about{
			title: "Domains that it spans", unit: units.Short,
			reads: "Those of its nodes, and the fewest that have as many devices of the same drivers.",
			empty: "nodes have no labels of the topology, it holds no device, or no cluster role reads nodes",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "level", title: "Level"},
		},
			column{title: "Domains", expr: byLevel("domains")},
			column{title: "Fewest", expr: byLevel("least_domains")},
		),
		listing(14, 6, about{
			title: "Alignment of the devices of its pods", unit: units.Short,
			reads: "devices: with each other; network: each with its nearest adapter. Best: what so many devices of the node could be. link: NVLink or xGMI. `dra-exporter topology workload NAMESPACE/NAME` has details.",
			empty: "no pod with several devices, or no agent",
		}, append([]key{{label: "pod", title: "Pod"}, {label: "node", title: "Node", links: []link{toNode()}}}, alignmentKeys()...),
			column{title: "Rows", hidden: true, expr: `max by (cluster, pod, node, between, alignment, best) (
  dra_pod_topology_info{@fleet, namespace="$namespace"}
  and on (cluster, node, namespace, pod) dra_pod_workload_info{@workload}
)`},
		),
	}
}

func workloadUse() []panel {
	total := func(rule string) string {
		return "sum(sum_over_time(workload:" + rule + "{@workload}[$__range])) / 3600"
	}
	const nothing = "it held no device, or no rules dra-exporter.accounting"
	return []panel{
		number(6, about{
			title: "Device-hours in the range", unit: units.Short,
			reads: "Weighted by its share of devices.",
			empty: nothing,
		}, at(total("dra_claim_device_seconds:increase5m"))).ColorScheme(always(neutral)).Decimals(2),
		number(6, about{
			title: "Idle device-hours in the range", unit: units.Short,
			reads: "The devices were held, but not used.",
			empty: "not reported, or " + nothing,
		}, at(total("dra_claim_idle_seconds:increase5m"))).ColorScheme(always(neutral)).Decimals(2),
		number(6, about{
			title: "Energy in the range", unit: units.WattHour,
			reads: "Without devices that are shared.",
			empty: "not reported, or " + nothing,
		}, at(total("dra_claim_energy_joules:increase5m"))).ColorScheme(always(neutral)),
		number(6, about{
			title: "Cost in the range", unit: units.Short,
			reads: "Device-hours by the price list.",
			empty: "no price list, or " + nothing,
		}, at("sum by (currency) (sum_over_time(workload:dra_claim_cost:increase5m{@workload}[$__range]))").LegendFormat("{{currency}}")).ColorScheme(always(neutral)),
	}
}
