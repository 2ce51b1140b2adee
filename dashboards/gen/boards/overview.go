package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// overview is the start page: what needs attention now, each one click from its board.
func overview() Board {
	return Board{
		UID:         uidOverview,
		Title:       "DRA / Overview",
		description: "What needs attention now: firing alerts, pending claims, unhealthy devices, idle claims and classes without free devices.",
		variables:   []cog.Builder[dashboard.VariableModel]{dataSource(), cluster()},
		rows: []row{
			{panels: append(overviewNumbers(), firingAlerts(), pendingReasons(), unhealthyByNode(), idleClaims())},
			{title: "Headroom", panels: []panel{freeByClass()}},
		},
	}
}

// toBoard is a link above a panel to the board that has more of the same.
func toBoard(title, uid string) []cog.Builder[dashboard.DashboardLink] {
	return []cog.Builder[dashboard.DashboardLink]{
		dashboard.NewDashboardLinkBuilder(title).Url(link{uid: uid}.url(nil)),
	}
}

// firing are the alerts of the project that fire now.
const firing = `ALERTS{@fleet, alertstate="firing", alertname=~"DRA.+"}`

func overviewNumbers() []panel {
	return []panel{
		number(5, about{
			title: "Firing alerts", unit: units.Short,
			reads: "Alerts of the project, by severity; listed below.",
			none:  noneSeen,
			empty: "no alert fires, or no rules",
		}, each(`sum by (severity) (`+firing+`)`, "{{severity}}")).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()).OverrideByName("critical", fixed(critical)),
		number(5, about{
			title: "Pending claims", unit: units.Short,
			reads: "Without gated pods. Click for reasons.",
			empty: noReaders,
		}, at(`count(
  group by (`+reference+`) (dra_claim_pending_since_timestamp_seconds{@fleet})
  unless on (`+reference+`) dra_claim_pending_reason_info{@fleet, reason=~"scheduling_gated|queue_quota"}
) or `+watching)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()).Links(toBoard("Pending claims by reason", uidAllocation)),
		number(5, about{
			title: "Unhealthy devices", unit: units.Short,
			reads: "By hardware, driver or kubelet, the source with most. Click for reasons.",
			empty: "not reported, or " + needsHealth,
		}, at(`max(sum by (by) (node_by:dra_device_unhealthy:count{@fleet}) or 0 * sum by (by) (node_by:dra_device_healthy:count{@fleet}))`)).
			Thresholds(anyIs(critical)).ColorScheme(byThresholds()).Links(toBoard("Device health", uidHealth)),
		number(4, about{
			title: "Idle devices", unit: units.Short,
			reads: "Devices of claims that do not use them. Click for claims.",
			empty: "not reported, or " + needsHolders,
		}, at(`sum(namespace_class:dra_claim_idle_devices:count{@fleet})`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()).Links(toBoard("Claims", uidClaims)),
		number(5, about{
			title: "Free devices", unit: units.Short,
			reads: "Can be allocated now. Partitions that exclude each other all count.",
			empty: noSlices,
		}, at(`sum(max by (cluster, driver, pool, node) (dra_devices{@fleet, state="free"}))`)).
			Thresholds(steps(warning, step{1, good})).ColorScheme(byThresholds()).Links(toBoard("Allocation", uidAllocation)),
	}
}

func firingAlerts() panel {
	return listing(24, 6, about{
		title: "Firing alerts and what they are about", unit: units.Short,
		reads: "Their runbooks are at /runbooks/ of each exporter.",
		none:  noneSeen,
		empty: "no alert fires, or no rules",
	}, []key{
		{label: "severity", title: "Severity"},
		{label: "alertname", title: "Alert"},
		{label: "cluster", title: "Cluster"},
		{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
		{label: "resourceclaim", title: "Claim", links: []link{toClaim()}, narrow: true},
		{label: "workload", title: "Workload"},
		{label: "node", title: "Node", links: []link{toNode()}},
		{label: "deviceclass", title: "Class"},
	}, column{title: "Alerts", expr: `count by (severity, alertname, cluster, namespace, resourceclaim, workload, node, deviceclass) (` + firing + `)`},
	).SortBy(byColumn("Severity", false))
}

// pendingReasons are the reasons of the pending claims.
func pendingReasons() panel {
	return listing(8, 8, about{
		title: "Pending claims by reason", unit: units.Short,
		reads: "Without gated pods. docs/pending.md has remedies.",
		none:  noneSeen,
		empty: noWaits,
	}, []key{{label: "cluster", title: "Cluster"}, {label: "reason", title: "Reason"}},
		column{title: "Claims", expr: `count by (cluster, reason) (max by (` + reference + `, reason) (dra_claim_pending_reason_info{@fleet, reason!~"scheduling_gated|queue_quota"}))`},
	)
}

// unhealthyByNode is where devices are unhealthy.
func unhealthyByNode() panel {
	return listing(8, 8, about{
		title: "Unhealthy devices by node", unit: units.Short,
		reads: "hardware counts whole devices; driver and kubelet also partitions.",
		none:  noneSeen,
		empty: "no device is unhealthy, or " + needsHealth,
	}, []key{{label: "cluster", title: "Cluster"}, {label: "node", title: "Node", links: []link{toHealthOfNode(), toNode()}}, {label: "by", title: "By"}},
		column{title: "Devices", expr: `sum by (cluster, node, by) (node_by:dra_device_unhealthy:count{@fleet}) > 0`, more: tinted(steps(critical))},
	)
}

// idleClaims are the namespaces whose claims are idle.
func idleClaims() panel {
	return listing(8, 8, about{
		title: "Idle devices by namespace", unit: units.Short,
		reads: "Devices of claims that do not use them now.",
		none:  noneSeen,
		empty: "all are used, or " + needsHolders,
	}, []key{{label: "cluster", title: "Cluster"}, {label: "namespace", title: "Namespace", links: []link{toNamespace()}}},
		column{title: "Devices", expr: `sum by (cluster, namespace) (namespace_class:dra_claim_idle_devices:count{@fleet}) > 0`, more: tinted(steps(warning))},
	)
}

// freeByClass is how many more claims of the requested shapes fit.
func freeByClass() panel {
	shape := func(metric string) string { return `max by (` + shapeLabels + `) (` + metric + `{@fleet})` }
	requested := shape("dra_class_shape_claims") + " > 0"
	return listing(24, 12, about{
		title: "Headroom by class", unit: units.Short,
		reads: "How many more pods of each requested shape fit.",
		empty: "no class was requested, or " + noPermission,
	}, []key{{label: "cluster", title: "Cluster"}, {label: "deviceclass", title: "Class"}, {label: "shape", title: "Request"}},
		column{title: "Pods", expr: shape("dra_class_headroom_pods") + "\nand on (" + shapeLabels + ") (" + requested + ")", more: noneIsNoted()},
	).SortBy(byColumn("Pods", false))
}
