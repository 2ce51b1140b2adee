package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	poolLabels = "cluster, driver, pool, node"
	noSlices   = "no cluster role reads ResourceSlices"
)

// devicesIn counts devices in a state, summed by labels. A pool that two
// exporters show, while one is being replaced, counts once.
func devicesIn(state, by string) string {
	return `sum by (` + by + `) (max by (` + poolLabels + `) (dra_devices{@fleet, state="` + state + `"}))`
}

// unavailableDevices counts devices that are unavailable, of which no pool has a row of 0.
func unavailableDevices(by string) string {
	return devicesIn("unavailable", by) + " or 0 * " + devicesIn("free", by)
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

// demandNow compares what there is with what is pending.
func demandNow() panel {
	return listing(12, 12, about{
		title: "Supply and demand by class", unit: units.Short,
		reads: "Without gated pods. Classes may overlap: do not add them up. Supply is not filtered by namespace, Waiting is.",
		empty: "no cluster role reads DeviceClasses and ResourceSlices",
	}, []key{{label: "cluster", title: "Cluster"}, {label: "deviceclass", title: "Class"}},
		column{title: "Waiting", unit: units.Short, expr: unknownClass(`count by (cluster, deviceclass) (` + notGated(waits) + `)`)},
		column{title: "Free", unit: units.Short, more: noneIsNoted(), expr: ofClass("free")},
		column{title: "Allocated", unit: units.Short, expr: ofClass("allocated")},
		column{title: "Unavailable", unit: units.Short, expr: ofClass("unavailable")},
		column{title: "Free share", unit: units.PercentUnit, more: freeShare(), expr: ofClass("free") + `
/ on (cluster, deviceclass) (sum by (cluster, deviceclass) (max by (cluster, deviceclass, state) (dra_class_devices{@classes})) > 0)`},
	)
}

func supplyPanels() []panel {
	return []panel{
		listing(12, 10, about{
			title: "Supply by driver", unit: units.Short,
			reads: "On one node: the most free on one node; claims that request more are fragmented. Not filtered by namespace and class.",
			empty: noSlices,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "driver", title: "Driver"}},
			column{title: "Free", unit: units.Short, more: noneIsNoted(), expr: devicesIn("free", "cluster, driver")},
			column{title: "On one node", unit: units.Short, expr: `max by (cluster, driver) (sum by (cluster, driver, node) (max by (` + poolLabels + `) (dra_devices{@fleet, node!="", state="free"})))`},
			column{title: "Allocated", unit: units.Short, expr: devicesIn("allocated", "cluster, driver")},
			column{title: "Unavailable", unit: units.Short, expr: unavailableDevices("cluster, driver")},
			column{title: "Pools", unit: units.Short, expr: `count by (cluster, driver) (max by (` + poolLabels + `) (dra_devices{@fleet, state="free"}))`},
		),
		incompletePools(),
		stairs(24, about{
			title: "Free devices of each class", unit: units.Short,
			reads: "At 0 with pending claims (alert DRAClassExhausted): add devices, or find idle claims in DRA / Claims. Not filtered by namespace.",
			empty: "no cluster role reads DeviceClasses and ResourceSlices",
		}, over(ofClass("free"), "{{deviceclass}} {{cluster}}")).ColorScheme(byName()),
	}
}

func taints() panel {
	const taint = "cluster, driver, key, effect"
	return listing(12, 10, about{
		title: "Tainted devices by taint", unit: units.Short,
		reads: "From slices or DeviceTaintRules. Claims that do not tolerate NoSchedule or NoExecute cannot get them. Not filtered by namespace and class.",
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
	return listing(12, 10, about{
		title: "Incomplete pools", unit: units.Short,
		reads: "Slices of the newest generation are missing: nothing is allocated. Normal while a driver starts; otherwise check the driver. 0 slices: all are missing while claims hold devices. Not filtered by namespace and class.",
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
		stacked(12, about{
			title: "Claims by state", unit: units.Short,
			reads: "pending: not allocated; allocated: hold devices that no pod uses. Claims that are not created yet are left out.",
			empty: "there is no claim, or no cluster role reads claims",
		}, over(claimsBy("cluster, state", "@claims"), "{{state}} {{cluster}}")),
		taints(),
		listing(12, 10, about{
			title: "Free devices by node", unit: units.Short,
			reads: "The " + listed + " nodes with the most. If each has one, large requests are fragmented. No node: devices of several nodes. Not filtered by namespace and class.",
			empty: noSlices,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "node", title: "Node", links: []link{toNode()}}},
			column{title: "Free", unit: units.Short, more: noneIsNoted(), expr: free},
			column{title: "Allocated", unit: units.Short, expr: devicesIn("allocated", "cluster, node") + ` and on (cluster, node) ` + free},
			column{title: "Unavailable", unit: units.Short, expr: `(` + unavailableDevices("cluster, node") + `) and on (cluster, node) ` + free},
		),
		listing(12, 10, about{
			title: "Capacities of devices that claims share", unit: units.Short,
			reads: "Consumed part of capacities that claims share, in its own unit. Not filtered by namespace and class.",
			empty: "no driver publishes shareable devices, or " + noSlices,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "driver", title: "Driver"},
			{label: "capacity", title: "Capacity"},
		},
			column{title: "Share", unit: units.PercentUnit, more: gauge(steps(good, step{0.8, warning}, step{0.95, critical})),
				expr: total("dra_capacity_consumed") + ` / on (` + capacity + `) (` + total("dra_capacity") + ` > 0)`},
			column{title: "Consumed", unit: units.SiShort, expr: total("dra_capacity_consumed")},
			column{title: "In all", unit: units.SiShort, expr: total("dra_capacity")},
		),
	}
}
