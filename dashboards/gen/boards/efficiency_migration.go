package boards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// migration is the view before, during and after: who still comes through a device
// plugin, and whether devices are used better by claims.
func migration() []panel {
	const needsPods = "no pod holds a device, or no recording rules"
	const note = " Not filtered by class."
	return []panel{
		stacked(8, about{
			title: "Devices by claims and by device plugins", unit: units.Short,
			reads: "Held by pods. device_plugin goes to 0 with the migration." + note,
			empty: needsPods,
		}, over(`sum by (kind) (namespace_kind:dra_pod_devices:count{@namespaces})`, "{{kind}}")),
		timeline(8, about{
			title: "Utilization by claims and by device plugins", unit: units.PercentUnit,
			reads: "Mean over devices whose use is known. Compare both, or before and after." + note,
			empty: "not reported or not split, or " + needsPods,
		}, over(`sum by (kind) (namespace_kind:dra_pod_utilization_ratio:sum{@namespaces})
/ sum by (kind) (namespace_kind:dra_pod_utilization_ratio:count{@namespaces})`, "{{kind}}")).Max(1),
		listing(8, 10, about{
			title: "Namespaces that use device plugins", unit: units.Short,
			reads: "With what they have through claims already." + note,
			none:  noneSeen,
			empty: "no pod uses one, or no recording rules",
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
		},
			column{title: "Pods", unit: units.Short, expr: `sum by (cluster, namespace) (namespace_kind:dra_pods:count{@namespaces, kind="device_plugin"})`},
			column{title: "Devices", unit: units.Short, expr: `sum by (cluster, namespace) (namespace_kind:dra_pod_devices:count{@namespaces, kind="device_plugin"})`},
			column{title: "By claims", unit: units.Short, expr: `sum by (cluster, namespace) (namespace_kind:dra_pod_devices:count{@namespaces, kind="claim"})
and on (cluster, namespace) namespace_kind:dra_pods:count{@namespaces, kind="device_plugin"}`},
		),
	}
}
