package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	poolLabels = "cluster, driver, pool, node"
	noSlices   = "the cluster role cannot read ResourceSlices, or " + noClusterRole
)

// devicesIn counts devices in a state, summed by labels. A pool that two
// exporters show, while one is being replaced, counts once.
func devicesIn(state, by string) string {
	return `sum by (` + by + `) (max by (` + poolLabels + `) (dra_devices{@fleet, state="` + state + `"}))`
}

// unknownClass names the class that is not known. Without a label at all, Grafana's
// merge would take a row for that of any class.
func unknownClass(expr string) string {
	return `label_replace(` + expr + `, "deviceclass", "not known", "deviceclass", "")`
}

// claimsBy counts claims, summed by labels, of two exporters once likewise.
func claimsBy(by, selection string) string {
	return `sum by (` + by + `) (max by (cluster, namespace, deviceclass, state) (dra_claims{` + selection + `}))`
}

// ofClass is the devices of a class in a state.
func ofClass(state string) string {
	return `max by (cluster, deviceclass) (dra_class_devices{@classes, state="` + state + `"})`
}

// noneIsNoted writes that nothing is free in a colour. It is a warning at most: all
// that is held by those who use it is how it should be.
func noneIsNoted() []dashboard.DynamicConfigValue {
	return tinted(steps(warning, step{1, plain}))
}

// freeShare draws how much is left.
func freeShare() []dashboard.DynamicConfigValue {
	return gauge(steps(warning, step{0.05, neutral}))
}

func supplyPanels() []panel {
	return []panel{
		listing(12, 8, about{
			title: "Supply and demand by class", unit: units.Short,
			reads: "What can be had of each class now, and how many references wait for it, but for those of pods at a scheduling gate; those that most wait for come first. Classes may select the same devices, so that columns must not be added up. Supply does not follow the namespace, Waiting does.",
			empty: "the cluster role cannot read DeviceClasses or ResourceSlices, or " + noClusterRole,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "deviceclass", title: "Class"}},
			column{title: "Waiting", unit: units.Short, expr: unknownClass(`count by (cluster, deviceclass) (` + notGated(waits) + `)`)},
			column{title: "Free", unit: units.Short, more: noneIsNoted(), expr: ofClass("free")},
			column{title: "Allocated", unit: units.Short, expr: ofClass("allocated")},
			column{title: "Unavailable", unit: units.Short, expr: ofClass("unavailable")},
			column{title: "Free share", unit: units.PercentUnit, more: freeShare(), expr: ofClass("free") + `
/ on (cluster, deviceclass) (sum by (cluster, deviceclass) (max by (cluster, deviceclass, state) (dra_class_devices{@classes})) > 0)`},
		),
		timeline(12, about{
			title: "Free devices of each class", unit: units.Short,
			reads: "A class that stays at 0 while somebody waits for it is exhausted (alert DRAClassExhausted): add devices, or see in DRA / Claims who holds some for nothing. It does not follow the namespace.",
			empty: "the cluster role cannot read DeviceClasses or ResourceSlices, or " + noClusterRole,
		}, over(ofClass("free"), "{{deviceclass}} {{cluster}}")),
		listing(12, 8, about{
			title: "Supply by driver", unit: units.Short,
			reads: "Devices of all pools of a driver. On one node is the most that any single node has free: what asks for more on a node waits as fragmented. It follows neither the namespace nor the class.",
			empty: noSlices,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "driver", title: "Driver"}},
			column{title: "Free", unit: units.Short, more: noneIsNoted(), expr: devicesIn("free", "cluster, driver")},
			column{title: "On one node", unit: units.Short, expr: `max by (cluster, driver) (sum by (cluster, driver, node) (max by (` + poolLabels + `) (dra_devices{@fleet, node!="", state="free"})))`},
			column{title: "Allocated", unit: units.Short, expr: devicesIn("allocated", "cluster, driver")},
			column{title: "Unavailable", unit: units.Short, expr: devicesIn("unavailable", "cluster, driver")},
			column{title: "Pools", unit: units.Short, expr: `count by (cluster, driver) (max by (` + poolLabels + `) (dra_pool_complete{@fleet}))`},
		),
		stacked(12, about{
			title: "Claims by state", unit: units.Short,
			reads: "pending claims wait for devices; allocated ones hold some that no pod uses; terminating ones do not go. A claim that has not been made for its pod yet is not here.",
			empty: "no claim is there, or the cluster role cannot read claims, or " + noClusterRole,
		}, over(claimsBy("cluster, state", "@claims"), "{{state}} {{cluster}}")),
		taints(),
		incompletePools(),
	}
}

func taints() panel {
	const taint = "cluster, driver, key, effect"
	return listing(12, 8, about{
		title: "Which taints keep devices away?", unit: units.Short,
		reads: "Devices with a taint, of their slices or of a DeviceTaintRule. NoSchedule and NoExecute keep claims off that do not tolerate them. It follows neither the namespace nor the class.",
		empty: "no device is tainted, or " + noSlices, none: noneSeen,
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "driver", title: "Driver"},
		{label: "key", title: "Taint"},
		{label: "effect", title: "Effect"},
	},
		column{title: "Devices", unit: units.Short, expr: `sum by (` + taint + `) (max by (cluster, driver, pool, key, effect) (dra_device_taints{@fleet}) > 0)`},
		column{title: "Pools", unit: units.Short, expr: `count by (` + taint + `) (max by (cluster, driver, pool, key, effect) (dra_device_taints{@fleet}) > 0)`},
	)
}

func incompletePools() panel {
	incomplete := `min by (` + poolLabels + `) (dra_pool_complete{@fleet}) == 0`
	of := func(family string) string {
		return `max by (` + poolLabels + `) (` + family + `) and on (` + poolLabels + `) ` + incomplete
	}
	return listing(12, 8, about{
		title: "Which pools are incomplete?", unit: units.Short,
		reads: "Nothing is allocated from a pool while slices of its newest generation are missing. While a driver starts this passes; otherwise look at the driver. 0 slices: all are gone while claims hold devices of it. It follows neither the namespace nor the class.",
		empty: "all pools are complete, or " + noSlices, none: noneSeen,
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "driver", title: "Driver"},
		{label: "pool", title: "Pool"},
		{label: "node", title: "Node", links: []link{toNode()}},
	},
		column{title: "Unavailable", unit: units.Short, expr: of(`dra_devices{@fleet, state="unavailable"}`)},
		column{title: "Slices", unit: units.Short, expr: of(`dra_pool_slices{@fleet}`)},
		column{title: "Generation", unit: units.Short, expr: of(`dra_pool_generation{@fleet}`)},
	)
}

func supplyDetails() []panel {
	const capacity = "cluster, driver, capacity"
	free := `topk(` + listed + `, ` + devicesIn("free", "cluster, node") + `)`
	total := func(family string) string {
		return `sum by (` + capacity + `) (max by (cluster, driver, pool, device, capacity) (` + family + `{@fleet}))`
	}
	return []panel{
		listing(12, 9, about{
			title: "Where are free devices?", unit: units.Short,
			reads: "The " + listed + " nodes with the most free devices. Many nodes with one free device each are what makes large requests wait as fragmented. No node: devices that several nodes can reach. It follows neither the namespace nor the class.",
			empty: noSlices,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "node", title: "Node", links: []link{toNode()}}},
			column{title: "Free", unit: units.Short, more: noneIsNoted(), expr: free},
			column{title: "Allocated", unit: units.Short, expr: devicesIn("allocated", "cluster, node") + ` and on (cluster, node) ` + free},
			column{title: "Unavailable", unit: units.Short, expr: devicesIn("unavailable", "cluster, node") + ` and on (cluster, node) ` + free},
		),
		listing(12, 9, about{
			title: "Capacities of devices that claims share", unit: units.Short,
			reads: "What claims have been given of the capacity that devices offer to several claims at once, in the capacity's own unit. It follows neither the namespace nor the class.",
			empty: "no driver publishes devices that several claims may share, or " + noSlices,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "driver", title: "Driver"},
			{label: "capacity", title: "Capacity"},
		},
			column{title: "Consumed share", unit: units.PercentUnit, more: gauge(steps(good, step{0.8, warning}, step{0.95, critical})),
				expr: total("dra_capacity_consumed") + ` / on (` + capacity + `) (` + total("dra_capacity") + ` > 0)`},
			column{title: "Consumed", unit: units.SiShort, expr: total("dra_capacity_consumed")},
			column{title: "In all", unit: units.SiShort, expr: total("dra_capacity")},
		),
	}
}
