package boards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// needsWorkload is why panels of what the workload holds are empty.
const needsWorkload = "no pod of the workload holds a claim, no node agent is scraped, or the recording rules of the group dra-exporter.workloads are not loaded"

// needsPeers is why panels that compare the devices of a workload are empty.
const needsPeers = "it has fewer than four devices of a role and model, its pods work independently, or the recording rules of the group dra-exporter.workload-devices are not loaded"

// workload is one workload: who is in it, which of its devices are slower than the
// others, whether it makes progress, and what it costs.
func workload() Board {
	return Board{
		UID:         uidWorkload,
		Title:       "DRA / Workload",
		description: "One workload: its pods by state, its devices by rank, devices that are slower than their peers, whether it hangs, health, use and cost. Of several clusters choose one: workloads of the same name are added up.",
		variables: []cog.Builder[dashboard.VariableModel]{
			dataSource(), cluster(),
			one("namespace", "Namespace", `label_values({__name__=~"dra_workload_info|dra_pod_workload_info", @fleet}, namespace)`).AllowCustomValue(true),
			one("kind", "Workload kind", `label_values({__name__=~"dra_workload_info|dra_pod_workload_info", @fleet, namespace="$namespace"}, workload_kind)`).AllowCustomValue(true),
			one("workload", "Workload", `label_values({__name__=~"dra_workload_info|dra_pod_workload_info", @fleet, namespace="$namespace", workload_kind="$kind"}, workload)`).AllowCustomValue(true),
		},
		rows: []row{
			{panels: slices.Concat(workloadNow(), workloadDevices())},
			{title: "Devices over time", panels: workloadOverTime()},
			{title: "Power, traffic, pods and topology", panels: slices.Concat(workloadProgress(), workloadTopology())},
			{title: "Use in the range", folded: true, panels: workloadUse()},
		},
	}
}

func workloadNow() []panel {
	return []panel{
		number(4, about{
			title: "Pods running", unit: units.Short,
			reads: "Pods of the workload of which a container has started.",
			empty: "none has started, or the cluster role is not scraped or cannot read pods",
		}, at(`sum(max by (`+workloadLabels+`, state) (dra_workload_pods{@workload, state="running"}))`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Pods not yet started", unit: units.Short,
			reads: "Pods that are gated, pending, or bound and not started. `dra-exporter explain workload NAMESPACE/NAME` says why.",
			none:  noneSeen,
			empty: "all have started, or the cluster role is not scraped or cannot read pods",
		}, at(`sum(max by (`+workloadLabels+`, state) (dra_workload_pods{@workload, state=~"gated|pending|starting"}))`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Devices", unit: units.Short,
			reads: "Devices and partitions that claims of the workload's pods hold now.",
			empty: needsWorkload,
		}, at(`sum(workload:dra_claim_devices:sum{@workload})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Mean utilization", unit: units.PercentUnit,
			reads: "Mean over the devices whose use is known. A job that hangs has 100 %, too.",
			empty: "its devices do not report it, or " + needsWorkload,
		}, at(`sum(workload:dra_claim_utilization_ratio:sum{@workload}) / (sum(workload:dra_claim_utilization_ratio:count{@workload}) > 0)`)).
			Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Slow devices", unit: units.Short,
			reads: "Devices that deviate from their peers in the direction of slower. All ranks of a synchronous job wait for the slowest one.",
			none:  noneSeen,
			empty: "no device deviates, or " + needsPeers,
		}, at(`count(max by (cluster, node, uuid) (workload_device:dra_device_signal:deviates{@workload}))`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Power while it hangs", unit: units.PercentUnit,
			reads: "Power as a share of the usual power, while the devices are busy and exchange no data: the workload hangs in a collective.",
			none:  "does not hang",
			empty: "it makes progress, or " + needsPeers,
		}, at(`min(workload:dra_device_power_watts:hung{@workload})`)).ColorScheme(always(critical)),
	}
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
			reads: "Each whole device that one pod of the workload uses alone, with means of five minutes. Deviation: the greatest distance from the median of its peers in the direction of slower, in units of their spread; 4 is much.",
			empty: needsWorkload + ", or its pods work independently",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "role", title: "Role"},
			{label: "replica", title: "Replica"},
			{label: "rank", title: "Rank"},
			{label: "pod", title: "Pod"},
			{label: "node", title: "Node", links: []link{toNode()}},
			{label: "uuid", title: "UUID"},
		},
			column{title: "Deviation", more: append(tinted(steps(neutral, step{3, warning}, step{4, critical})), property("decimals", 1)),
				expr: "max by (" + rankLabels + ") (workload_device:dra_device_signal:deviation{@workload})"},
			column{title: "Busy", unit: units.PercentUnit, expr: signalOf("busy")},
			column{title: "Power", unit: units.Watt, expr: signalOf("power")},
			column{title: "Clock", unit: units.Hertz, expr: signalOf("clock")},
			column{title: "Present", hidden: true, expr: "max by (" + rankLabels + ") (workload_device:dra_pod_workload_info:held{@workload})"},
		),
		listing(24, 6, about{
			title: "Signals that deviate", unit: units.Short,
			reads: "By what each slow device differs from its peers, in units of their spread. busy: it waits for its host or for data. throttled: heat or the power brake. clock, power: it computes slower. Errors: its links or its network adapter.",
			none:  noneSeen,
			empty: "no device deviates, or " + needsPeers,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "rank", title: "Rank"},
			{label: "pod", title: "Pod"},
			{label: "node", title: "Node", links: []link{toNode()}},
			{label: "uuid", title: "UUID"},
			{label: "signal", title: "Signal"},
		}, column{title: "Deviation", more: append(tinted(steps(warning)), property("decimals", 1)),
			expr: "max by (cluster, rank, pod, node, uuid, signal) (workload_device:dra_device_signal:deviates{@workload})"}),
	}
}

// mostLines bounds the devices that a panel draws.
const mostLines = "32"

func workloadOverTime() []panel {
	const legend = "{{rank}} {{uuid}}"
	return []panel{
		timeline(24, about{
			title: "Deviation of the slowest devices", unit: units.Short,
			reads: "The greatest deviation of each of the " + mostLines + " devices that deviate most: distance from the median of the peers in the direction of slower, in units of their spread. DRAWorkloadStraggler fires if one is above 4 for nine of 15 minutes.",
			empty: needsPeers,
		}, over("topk("+mostLines+", max by (cluster, rank, node, uuid) (workload_device:dra_device_signal:deviation{@workload}))", legend)),
		timeline(12, about{
			title: "Busy share of the least busy devices", unit: units.PercentUnit,
			reads: "Share of the last five minutes in which each of the " + mostLines + " least busy devices was busy. A rank below the others waits for its host or for data. If all fall together, the job pauses.",
			empty: needsPeers,
		}, over("bottomk("+mostLines+", max by (cluster, rank, node, uuid) (workload_device:dra_device_signal:rate5m{@workload, signal=\"busy\"}))", legend)).Max(1),
		timeline(12, about{
			title: "Power of the devices with least", unit: units.Watt,
			reads: "Mean power over five minutes of the " + mostLines + " devices that draw least.",
			empty: "its devices have no energy counters, or " + needsPeers,
		}, over("bottomk("+mostLines+", max by (cluster, rank, node, uuid) (workload_device:dra_device_signal:rate5m{@workload, signal=\"power\"}))", legend)),
	}
}

func workloadProgress() []panel {
	return []panel{
		timeline(8, about{
			title: "Mean power of a device", unit: units.Watt,
			reads: "If it falls far below its usual level while the devices stay busy, the job hangs.",
			empty: needsPeers,
		}, over(`max by (cluster) (workload:dra_device_power_watts:avg5m{@workload})`, "{{cluster}} power")),
		timeline(8, about{
			title: "Data exchanged", unit: units.BytesPerSecondSI,
			reads: "Bytes per second over NVLink and claimed network adapters, mean of five minutes. A synchronous job exchanges about the same in each step.",
			empty: "its devices count no such bytes, or " + needsWorkload,
		},
			over(`max by (cluster) (workload:dra_claim_nvlink_bytes:rate5m{@workload})`, "{{cluster}} NVLink"),
			over(`max by (cluster) (workload:dra_claim_network_bytes:rate5m{@workload})`, "{{cluster}} network"),
			over(`max by (cluster) (workload:dra_claim_pcie_bytes:rate5m{@workload})`, "{{cluster}} PCIe")),
		stacked(8, about{
			title: "Pods by state", unit: units.Short,
			reads: "How the gang came up: gated by a queue, pending, bound and starting, running, ended.",
			empty: "the cluster role is not scraped or cannot read pods",
		}, over(`sum by (cluster, state) (max by (`+workloadLabels+`, state) (dra_workload_pods{@workload}))`, "{{cluster}} {{state}}")),
	}
}

func workloadTopology() []panel {
	byLevel := func(metric string) string {
		return "max by (cluster, level) (dra_workload_topology_" + metric + "{@workload})"
	}
	return []panel{
		listing(10, 7, about{
			title: "Domains that it spans", unit: units.Short,
			reads: "NVLink domains, racks and blocks of the nodes on which the workload holds devices, and the fewest that have as many devices of the same drivers.",
			empty: "the nodes have no labels of the topology, the workload holds no device, or the cluster role is not scraped or cannot read nodes",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "level", title: "Level"},
		},
			column{title: "Domains", expr: byLevel("domains")},
			column{title: "Fewest", expr: byLevel("least_domains")},
		),
		listing(14, 7, about{
			title: "Alignment of the devices of its pods", unit: units.Short,
			reads: "How near the devices of each pod are. devices: with each other; network: each with its nearest network adapter. Best: what so many devices of the node could be. link: NVLink or xGMI. `dra-exporter topology workload NAMESPACE/NAME` has the devices.",
			empty: "its pods have one device each, hold none, or their nodes have no agents that are scraped",
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
	const nothing = "the workload held no device in the range, or the recording rules of the group dra-exporter.accounting are not loaded"
	return []panel{
		number(6, about{
			title: "Device-hours in the range", unit: units.Short,
			reads: "Hours that the workload held devices for, by its share of them.",
			empty: nothing,
		}, at(total("dra_claim_device_seconds:increase5m"))).ColorScheme(always(neutral)),
		number(6, about{
			title: "Idle device-hours in the range", unit: units.Short,
			reads: "Of them, those in which the devices were not used.",
			empty: "its devices do not report it, or " + nothing,
		}, at(total("dra_claim_idle_seconds:increase5m"))).ColorScheme(always(neutral)),
		number(6, about{
			title: "Energy in the range", unit: units.WattHour,
			reads: "Energy of its devices, without those that are shared.",
			empty: "its devices do not report it, or " + nothing,
		}, at(total("dra_claim_energy_joules:increase5m"))).ColorScheme(always(neutral)),
		number(6, about{
			title: "Cost in the range", unit: units.Short,
			reads: "Device-hours by the price list, by currency.",
			empty: "there is no price list, or " + nothing,
		}, at("sum by (currency) (sum_over_time(workload:dra_claim_cost:increase5m{@workload}[$__range]))").LegendFormat("{{currency}}")).ColorScheme(always(neutral)),
	}
}
