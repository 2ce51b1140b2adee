package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	shapeLabels    = "cluster, deviceclass, shape"
	strandedLabels = "cluster, driver, node, reason"
)

// capacity is how much more fits, what keeps more from fitting, and which devices no
// claim can use.
func capacity() Board {
	return Board{
		UID:         uidCapacity,
		Title:       "DRA / Capacity",
		description: "How many more claims of each class fit and what limits them, fragmentation and stranded devices. Needs a cluster role that reads nodes, pods, claims, DeviceClasses and ResourceSlices.",
		from:        "now-24h",
		variables: []cog.Builder[dashboard.VariableModel]{
			dataSource(), cluster(),
			several("class", "Device class", `label_values({__name__=~"dra_class_devices|dra_class_headroom_claims", @fleet}, deviceclass)`),
		},
		rows: []row{
			{panels: append(capacityNumbers(), headroomTable()...)},
			{title: "Stranded devices and history", panels: append(strandedTable(), capacityHistory()...)},
			{title: "Idle nodes", panels: idleNodes()},
		},
	}
}

// ofShape is a level of each shape, with the reason that limits it.
func ofShape(metric, where string) string {
	return "max by (" + shapeLabels + ", limit) (\n  " + metric + "{@classes" + where + "}\n  * on (" + shapeLabels + ") group_left (limit)\n  max by (" + shapeLabels + ", limit) (dra_class_headroom_info{@classes})\n)"
}

// strandedNow counts stranded devices, summed by labels.
func strandedNow(by string) string {
	return "sum by (" + by + ") (max by (" + strandedLabels + ") (dra_devices_stranded{@fleet}))"
}

func capacityNumbers() []panel {
	return []panel{
		number(4, about{
			title: "Free devices", unit: units.Short,
			reads: "Each could be allocated by itself. Not filtered by class.",
			empty: noSlices,
		}, at(`sum(`+devicesIn("free", "cluster")+`)`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Stranded devices", unit: units.Short,
			reads: "No claim can use them. A partitioned device counts by the part left. Not filtered by class.",
			none:  noneSeen,
			empty: "none is stranded, or " + noPermission,
		}, at(`sum(`+strandedNow("cluster")+`)`)).Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Stranded in the range", unit: units.Short,
			reads: "Hours, added up over devices. Not filtered by class.",
			none:  noneSeen,
			empty: "none was stranded, or " + noPermission,
		}, at(`sum(increase(dra_devices_stranded_seconds_total{@fleet}[$__range])) / 3600`)).ColorScheme(always(neutral)).Decimals(2),
		number(4, about{
			title: "Requests not fitting", unit: units.Short,
			reads: "Requested shapes of which not one pod more fits.",
			none:  noneSeen,
			empty: "one more fits of each, or " + noPermission,
		}, at(`count(
  (max by (`+shapeLabels+`) (dra_class_headroom_pods{@classes}) == 0)
  and max by (`+shapeLabels+`) (dra_class_headroom_info{@classes, exact="true"})
  and (max by (`+shapeLabels+`) (dra_class_shape_claims{@classes}) > 0)
)`)).Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Fragmentation", unit: units.PercentUnit,
			reads: "The worst share of a class's free devices that a requested claim cannot use.",
			empty: "no free devices are requested, or " + noPermission,
		}, at(`max(dra_class_fragmentation_ratio{@classes})`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Lower bounds", unit: units.Short,
			reads: "Shapes for which not all nodes were searched to the end.",
			none:  noneSeen,
			empty: "all are exact, or " + noPermission,
		}, at(`count(max by (`+shapeLabels+`) (dra_class_headroom_info{@classes, exact="false"}))`)).Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
	}
}

func headroomTable() []panel {
	return []panel{
		listing(24, 14, about{
			title: "Headroom by class and shape", unit: units.Short,
			reads: "Claims that fit; Pods also find CPU, memory and a node that accepts them. A shape's number is devices on one node. Limit: why one more would be pending.",
			empty: noPermission,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "deviceclass", title: "Class"}, {label: "shape", title: "Shape"}, {label: "limit", title: "Limit", last: true}},
			column{title: "Requested", unit: units.Short, expr: ofShape("dra_class_shape_claims", "")},
			column{title: "Claims", unit: units.Short, more: noneIsNoted(), expr: ofShape("dra_class_headroom_claims", "")},
			column{title: "Pods", unit: units.Short, more: noneIsNoted(), expr: ofShape("dra_class_headroom_pods", "")},
		),
	}
}

func strandedTable() []panel {
	return []panel{
		listing(24, 6, about{
			title: "Stranded devices by node", unit: units.Short,
			reads: "No claim can use them. No node: several nodes could. Not filtered by class.",
			none:  noneSeen,
			empty: "none is stranded, or " + noPermission,
		}, []key{
			{label: "cluster", title: "Cluster"}, {label: "driver", title: "Driver"}, {label: "node", title: "Node", links: []link{toNode()}},
			{label: "reason", title: "Reason", last: true},
		},
			column{title: "Devices", unit: units.Short, more: tinted(steps(warning)), expr: strandedNow(strandedLabels)},
		),
	}
}

func capacityHistory() []panel {
	return []panel{
		stairs(24, about{
			title: "Pods that fit, of the ten most requested shapes", unit: units.Short,
			reads: "More pods with one claim of each requested shape that could run.",
			empty: "nothing requests the class, or " + noPermission,
		}, over(`max by (`+shapeLabels+`) (dra_class_headroom_pods{@classes})
and on (`+shapeLabels+`) topk(10, max by (`+shapeLabels+`) (max_over_time(dra_class_shape_claims{@classes}[$__range] @ end())) > 0)`, "{{deviceclass}}: {{shape}} {{cluster}}")).Legend(below()),
		stairs(24, about{
			title: "Free and allocated devices of each class", unit: units.Short,
			reads: "Devices of each class from which headroom is computed.",
			empty: noSlices,
		}, over(ofClass("free"), "{{deviceclass}} free {{cluster}}"), over(ofClass("allocated"), "{{deviceclass}} allocated {{cluster}}")).Height(12),
		stacked(12, about{
			title: "Stranded devices by reason", unit: units.Short,
			reads: "Devices that no claim can use. Not filtered by class.",
			none:  noneSeen,
			empty: "none was stranded, or " + noPermission,
		}, over(strandedNow("cluster, reason"), "{{reason}} {{cluster}}")),
		stacked(12, about{
			title: "Cost per hour of stranded devices", unit: units.Short,
			reads: "At the mean price of the driver's whole devices on the node. Not filtered by class.",
			none:  noneSeen,
			empty: "none was stranded, or " + needsPrices,
		}, recorded(`sum by (cluster, reason, currency) (last_over_time(reason:dra_devices_stranded_cost:increase5m{@fleet}[10m])) * 12`, "{{reason}} {{currency}} {{cluster}}")),
		timeline(12, about{
			title: "Fragmentation of each class", unit: units.PercentUnit,
			reads: "Expected share of free devices that a requested claim cannot use.",
			empty: "no free devices are requested, or " + noPermission,
		}, over(`max by (cluster, deviceclass) (dra_class_fragmentation_ratio{@classes})`, "{{deviceclass}} {{cluster}}")).ColorScheme(byName()),
	}
}

// idleNodes are nodes that cost money while none of their devices is allocated.
func idleNodes() []panel {
	return []panel{
		listing(24, 6, about{
			title: "Idle nodes that autoscalers do not remove", unit: units.Short,
			reads: "What keeps Cluster Autoscaler or Karpenter from removing them: an annotation, or pods. Not filtered by class.",
			none:  noneSeen,
			empty: "no idle node is kept, or " + noPermission,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "node", title: "Node", links: []link{toNode()}},
			{label: "reason", title: "Reason"},
		},
			column{title: "Pods", unit: units.Short, expr: `max by (cluster, node, reason) (dra_idle_node_obstacles{@fleet})`},
			column{title: "Devices", unit: units.Short, expr: `max by (cluster, node, reason) (dra_idle_node_obstacles{@fleet}) * 0
+ on (cluster, node) group_left () ` + devicesIn("free", "cluster, node")},
		),
	}
}
