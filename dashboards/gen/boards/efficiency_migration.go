package boards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// migration is the view before, during and after: who still comes through a device
// plugin, and whether devices are used better by claims.
func migration() []panel {
	const needsPods = "no pod holds a device, or the recording rules are not loaded"
	const note = " It does not follow the class."
	return []panel{
		stacked(8, about{
			title: "Devices by claims and by device plugins", unit: units.Short,
			reads: "Devices that pods hold through claims, and through device plugins. The second goes to 0 with the migration." + note,
			empty: needsPods,
		}, over(`sum by (kind) (namespace_kind:dra_pod_devices:count{@namespaces})`, "{{kind}}")),
		timeline(8, about{
			title: "Utilization by claims and by device plugins", unit: units.PercentUnit,
			reads: "Mean over the devices of pods whose use is known. Compare both while both exist, or the time before the migration with the time after." + note,
			empty: "no device reports its utilization, or it is not split by process; or " + needsPods,
		}, over(`sum by (kind) (namespace_kind:dra_pod_utilization_ratio:sum{@namespaces})
/ sum by (kind) (namespace_kind:dra_pod_utilization_ratio:count{@namespaces})`, "{{kind}}")).Max(1),
		listing(8, 8, about{
			title: "Namespaces that use device plugins", unit: units.Short,
			reads: "Namespaces whose pods have devices from a device plugin, with what they have through claims already." + note,
			none:  noneSeen,
			empty: "every pod has its devices through a claim, or the recording rules are not loaded",
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
