package boards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// needsWorkloads is why panels about workloads are empty, where nothing else is.
const needsWorkloads = "no workloads, agents or rules dra-exporter.workloads"

// workloadLabels identify a workload.
const workloadLabels = "cluster, namespace, workload_kind, workload"

// workloads is the fleet by workload: who holds what, how well it is used, and which
// workloads need attention.
func workloads() Board {
	return Board{
		UID:         uidWorkloads,
		Title:       "DRA / Workloads",
		description: "Workloads whose pods hold claims: devices and use, slow devices, workloads that hang or wait, starts, and cost.",
		variables: []cog.Builder[dashboard.VariableModel]{
			dataSource(), cluster(),
			several("namespace", "Namespace", `label_values({__name__=~"dra_workload_info|dra_pod_workload_info", @fleet}, namespace)`),
			several("kind", "Workload kind", `label_values({__name__=~"dra_workload_info|dra_pod_workload_info", @namespaces}, workload_kind)`),
		},
		rows: []row{
			{panels: slices.Concat(workloadNumbers(), workloadTables())},
			{title: "Queues and ComputeDomains", panels: workloadQueues()},
			{title: "Pods and starts", panels: workloadStarts()},
			{title: "Use in the range", folded: true, panels: workloadTotals()},
		},
	}
}

func workloadNumbers() []panel {
	return []panel{
		number(4, about{
			title: "Workloads", unit: units.Short,
			reads: "Their pods hold a claim now.",
			empty: needsWorkloads,
		}, at(`count(workload:dra_claims_held:count{@workloads})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Devices held", unit: units.Short,
			reads: "Claims of several workloads count for each.",
			empty: needsWorkloads,
		}, at(`sum(workload:dra_claim_devices:sum{@workloads})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Mean utilization", unit: units.PercentUnit,
			reads: "Over devices whose use is known.",
			empty: "not reported, or " + needsWorkloads,
		}, at(`sum(workload:dra_claim_utilization_ratio:sum{@workloads}) / (sum(workload:dra_claim_utilization_ratio:count{@workloads}) > 0)`)).
			Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Slow devices", unit: units.Short,
			reads: "Slower than their peers in the same workload; see the table below.",
			none:  noneSeen,
			empty: "none deviates, no workload has four devices that exchange data, or no recording rules",
		}, at(`count(max by (cluster, node, uuid) (workload_device:dra_device_signal:deviates{@workloads}))`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Workloads that hang", unit: units.Short,
			reads: "Busy devices exchange no data and draw less than half of their usual power.",
			none:  noneSeen,
			empty: "none hangs or exchanges data, or no recording rules",
		}, at(`count(workload:dra_device_power_watts:hung{@workloads})`)).
			Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Pods not yet started", unit: units.Short,
			reads: "Gated, pending, or bound; pods without an owner do not count. `dra-exporter explain workload NAMESPACE/NAME` says why.",
			none:  noneSeen,
			empty: "all have started, or " + noPods,
		}, at(`sum(max by (`+workloadLabels+`, state) (dra_workload_pods{@workloads, state=~"gated|pending|starting"}))`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
	}
}

// workloadKeys are the columns that identify a workload.
func workloadKeys() []key {
	return []key{
		{label: "cluster", title: "Cluster"},
		{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
		{label: "workload_kind", title: "Kind"},
		{label: "workload", title: "Workload", links: []link{toWorkload()}},
	}
}

// ofWorkload is a recorded level of each workload, without its name.
func ofWorkload(rule string) string {
	return "max by (" + workloadLabels + ") (workload:" + rule + "{@workloads})"
}

func workloadTables() []panel {
	return []panel{
		listing(24, 12, about{
			title: "Workloads by devices", unit: units.Short,
			reads: "Slow devices deviate from peers. Power share: of a workload that hangs, of its usual power.",
			empty: needsWorkloads,
		}, workloadKeys(),
			column{title: "Devices", expr: ofWorkload("dra_claim_devices:sum")},
			column{title: "Utilization", unit: units.PercentUnit, more: gauge(steps(critical, step{0.2, warning}, step{0.5, good})),
				expr: ofWorkload("dra_claim_utilization_ratio:sum") + "\n/ (" + ofWorkload("dra_claim_utilization_ratio:count") + " > 0)"},
			column{title: "Power", unit: units.Watt, expr: ofWorkload("dra_claim_power_watts:sum")},
			column{title: "Idle devices", expr: ofWorkload("dra_claim_idle_devices:count") + " > 0"},
			column{title: "Slow devices", more: tinted(steps(warning)),
				expr: "count by (" + workloadLabels + ") (\n  max by (" + workloadLabels + ", node, uuid) (workload_device:dra_device_signal:deviates{@workloads})\n)"},
			column{title: "Power share", unit: units.PercentUnit, more: tinted(steps(critical)), expr: ofWorkload("dra_device_power_watts:hung")},
			column{title: "Unhealthy claims", more: tinted(steps(critical)), expr: ofWorkload("dra_claims_unhealthy:count")},
		),
	}
}

// ofDomain is a level of each ComputeDomain, without its name.
func ofDomain(metric, more string) string {
	return "max by (cluster, namespace, compute_domain) (dra_compute_domain_" + metric + "{@namespaces" + more + "})"
}

func workloadQueues() []panel {
	return []panel{
		listing(24, 10, about{
			title: "Workloads in queues of Kueue", unit: units.Short,
			reads: "Not admitted, and Kueue's reason; most have no pods yet. `dra-exporter explain workload NAMESPACE/NAME` has the message.",
			none:  noneSeen,
			empty: "none waits, there is no Kueue, or no cluster role reads workloads.kueue.x-k8s.io",
		}, append(workloadKeys(), key{label: "queue", title: "Queue"}, key{label: "reason", title: "Reason"}),
			column{title: "Waiting", unit: units.Seconds, expr: "max by (" + workloadLabels + ", queue, reason) (\n  (time() - dra_workload_queued_since_timestamp_seconds{@workloads})\n  * on (" + workloadLabels + ") group_left (queue) max by (" + workloadLabels + ", queue) (dra_workload_info{@workloads})\n)"},
		),
		listing(24, 6, about{
			title: "ComputeDomains", unit: units.Short,
			reads: "Nodes to join, ready nodes, and bound pods. Without pods, a domain has no nodes. Not filtered by workload kind.",
			empty: "there is none, or no cluster role reads computedomains.resource.nvidia.com",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
			{label: "compute_domain", title: "ComputeDomain"},
		},
			column{title: "Pods", expr: ofDomain("pods", "")},
			column{title: "Requested nodes", expr: ofDomain("requested_nodes", "")},
			column{title: "Ready nodes", expr: "sum by (cluster, namespace, compute_domain) (\n  max by (cluster, namespace, compute_domain, clique) (dra_compute_domain_nodes{@namespaces, state=\"ready\"})\n)"},
			column{title: "Ready", more: tinted(steps(critical, step{1, good})), expr: ofDomain("ready", "")},
		),
	}
}

func workloadStarts() []panel {
	return []panel{
		stacked(12, about{
			title: "Pods by state", unit: units.Short,
			reads: "gated pods wait for a queue, pending pods for devices or other resources. Pods without an owner do not count.",
			empty: "no pod refers to a claim, or " + noPods,
		}, over(`sum by (cluster, state) (max by (`+workloadLabels+`, state) (dra_workload_pods{@workloads}))`, "{{state}} {{cluster}}")),
		timeline(12, about{
			title: "Duration of starts (p95)", unit: units.Seconds,
			reads: "From the first pod's creation until all have started. Not filtered by namespace.",
			empty: "none has started since the cluster role has, or it is not scraped",
		}, over(`histogram_quantile(0.95, sum by (cluster, workload_kind, queue, le) (
  increase(dra_workload_start_duration_seconds_bucket{@fleet, workload_kind=~"$kind"}[$__rate_interval])
))`, "{{workload_kind}} {{queue}} {{cluster}}")),
	}
}

// inRange sums up recorded increases of each workload over the time range.
func inRange(rule, more string) string {
	return "sum by (" + workloadLabels + more + ") (sum_over_time(workload:" + rule + "{@workloads}[$__range]))"
}

func workloadTotals() []panel {
	first := "topk(20, " + inRange("dra_claim_device_seconds:increase5m", "") + ")"
	accruals := func(rule, more string) string {
		return inRange(rule, more) + "\nand on (" + workloadLabels + ") " + first
	}
	return []panel{
		listing(24, 12, about{
			title: "Use of workloads in the range", unit: units.Short,
			reads: "The twenty with most device-hours. Claims of several workloads count in equal parts.",
			empty: "none held a device, or no rules dra-exporter.accounting",
		}, append(workloadKeys(), key{label: "currency", title: "Currency", last: true}),
			column{title: "Device-hours", more: hundredths(), expr: first + " / 3600"},
			column{title: "Busy hours", more: hundredths(), expr: "(" + accruals("dra_claim_busy_seconds:increase5m", "") + ") / 3600"},
			column{title: "Idle hours", more: hundredths(), expr: "(" + accruals("dra_claim_idle_seconds:increase5m", "") + ") / 3600"},
			column{title: "Energy", unit: units.WattHour, expr: "(" + accruals("dra_claim_energy_joules:increase5m", "") + ") / 3600"},
			column{title: "Cost", expr: accruals("dra_claim_cost:increase5m", ", currency")},
		),
	}
}
