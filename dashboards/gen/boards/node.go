package boards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// needsNode is why panels of one node are empty, where nothing else is.
const needsNode = "no agent"

// needsDefault begins the reasons for which a panel is empty that reads what the level lean
// leaves out.
const needsDefault = "the level is lean, "

// node is everything about one node.
func node() Board {
	return Board{
		UID:         uidNode,
		Title:       "DRA / Node",
		description: "One node: claims by device, use and health of devices, and the agent's state. Choose one cluster: nodes of one name are added up.",
		variables:   append(nodeVariables(), sharedDevices()),
		marks:       marks{devices: "@node", exporters: agent},
		rows: []row{
			{panels: slices.Concat(nodeNumbers(), []panel{devicesNow()})},
			{title: "Signals, claims by device, and pods without claims", panels: []panel{signalsNow(), holdersNow(), occupancy(), pluginPods()}},
			{title: "Devices over time", panels: devicesOverTime()},
			{title: "Agent of the node", panels: agentPanels()},
			{title: "Use by namespace", folded: true, panels: []panel{namespacesOnNode()}},
			{title: "Use of $shared", repeat: "shared", folded: true, panels: sharedUse()},
			{title: "Clocks, links and buses", folded: true, panels: slices.Concat(clocksOverTime(), trafficOverTime())},
			{title: "Each NVLink", folded: true, panels: eachLink()},
		},
	}
}

// nodeVariables are the choices of the board.
func nodeVariables() []cog.Builder[dashboard.VariableModel] {
	return []cog.Builder[dashboard.VariableModel]{
		dataSource(), cluster(),
		one("node", "Node", `label_values(dra_device_info{@fleet}, node)`),
	}
}

// sharedDevices are the devices that several pods use and whose processes are
// attributed to pods: a row of the dashboard each. The variable is hidden.
func sharedDevices() cog.Builder[dashboard.VariableModel] {
	return several("shared", "Shared devices", `label_values(dra_pod_utilization_ratio{@node}, uuid)`).
		Hide(dashboard.VariableHideHideVariable)
}

// onNode gives each series of a device of the node its name, and leaves the node
// out.
func onNode(expr string, more ...string) string {
	by := "cluster, uuid, device"
	for _, label := range more {
		by += ", " + label
	}
	return "max by (" + by + ") (" + withDevice("@node", expr) + ")"
}

// ofDevice is a quantity of each device of the node, by name, over time.
func ofDevice(metric string) string {
	return onNode(`max by (cluster, node, uuid) (` + metric + `)`)
}

func nodeNumbers() []panel {
	const whole = `@node, parent_uuid=""`
	perDevice := func(metric string) string {
		return `max by (cluster, node, uuid) (` + metric + `{` + whole + `})`
	}
	return []panel{
		number(4, about{
			title: "Whole devices", unit: units.Short,
			reads: "Whole devices, held completely or partly.",
			empty: needsNode + ", or no rules dra-exporter.devices",
		}, each(`sum(node:dra_device_held:sum{@node})`, "held"), each(`sum(node:dra_devices:count{@node})`, "all")).
			ColorScheme(always(neutral)),
		number(4, about{
			title: "Mean utilization", unit: units.PercentUnit,
			reads: "Mean over whole devices, held or free.",
			empty: "not reported, or " + needsNode,
		}, at(`avg(`+perDevice("dra_device_utilization_ratio")+`)`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Device memory in use", unit: units.PercentUnit,
			reads: "Of whole devices that report it.",
			empty: "not reported, or " + needsNode,
		}, at(`sum(`+perDevice("dra_device_memory_used_bytes")+`)
/ sum(`+perDevice("dra_device_memory_size_bytes")+` and on (cluster, node, uuid) dra_device_memory_used_bytes{`+whole+`})`)).
			Thresholds(steps(good, step{0.95, warning})).ColorScheme(byThresholds()),
		number(4, about{
			title: "Power of all devices", unit: units.Watt,
			reads: "All devices, and the sum of limits, which the level lean leaves out.",
			empty: "not reported, or " + needsNode,
		}, each(`sum(`+perDevice("dra_device_power_watts")+`)`, "drawn"), each(`sum(`+perDevice("dra_device_power_limit_watts")+`)`, "limit")).
			ColorScheme(always(neutral)),
		number(4, about{
			title: "Hottest device", unit: units.Celsius,
			reads: "GPUs throttle at about 85 to 90 °C, their memory at 95 to 105 °C.",
			empty: "not reported, or " + needsNode,
		}, each(`max by (sensor) (dra_device_temperature_celsius{@node})`, "{{sensor}}")).
			Thresholds(steps(good, step{85, warning}, step{95, critical})).ColorScheme(byThresholds()).
			OverrideByName("memory", tinted(steps(good, step{95, warning}, step{105, critical}))[:1]),
		number(4, about{
			title: "Unhealthy devices", unit: units.Short,
			reads: "driver and kubelet count partitions too. Reasons are below.",
			empty: "not reported, or " + needsNode,
		}, each(`sum by (by) (1 - min by (cluster, node, uuid, by) (
  dra_device_healthy{@node, by="hardware", parent_uuid=""} or dra_device_healthy{@node, by!="hardware"}
))`, "{{by}}")).Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
	}
}

// nodeDeviceKeys are the columns of a device where the node is known.
func nodeDeviceKeys(more ...key) []key {
	return append([]key{
		{label: "cluster", title: "Cluster"},
		{label: "device", title: "Device"},
		{label: "uuid", title: "UUID", hidden: true},
	}, more...)
}

func devicesNow() *table.PanelBuilder {
	of := func(metric string) string { return ofDevice(metric) }
	return listing(24, 14, about{
		title: "Devices now", unit: units.Short,
		reads: "Claims counts those of the device or its partitions; empty means unknown.",
		empty: needsNode,
	}, nodeDeviceKeys(),
		column{title: "Claims", expr: onNode(holders("@node"))},
		column{title: "Utilization", unit: units.PercentUnit, expr: of(`dra_device_utilization_ratio{@node}`), more: gauge(steps(neutral))},
		column{title: "Memory used", unit: units.BytesIEC, expr: of(`dra_device_memory_used_bytes{@node}`)},
		column{title: "Temperature", unit: units.Celsius, expr: of(`dra_device_temperature_celsius{@node, sensor="gpu"}`), more: tinted(steps(good, step{85, warning}, step{95, critical}))},
		column{title: "Health", expr: onNode(unhealthyBy(func(by string) string { return healthBy("@node", by) })), more: unhealthyWords()},
	).SortBy(byColumn("Health", true))
}

func signalsNow() panel {
	return listing(24, 4, about{
		title: "Health signals and taints", unit: units.Short,
		reads: "Now, critical ones first. Taints and Xids are in DRA / Device health.",
		none:  noneSeen,
		empty: "there is no signal, or " + needsNode,
	}, nodeDeviceKeys(key{label: "signal", title: "Signal"}),
		column{title: "Severity", expr: onNode(severityOf("@node"), "signal"), more: severities()},
	)
}

func namespacesOnNode() panel {
	total := func(metric string) string {
		return `sum by (cluster, namespace) (max by (cluster, node, namespace, deviceclass, model) (increase(` + metric + `{@node}[$__range])))`
	}
	return listing(24, 10, about{
		title: "Use of this node by namespace in the range", unit: units.Short,
		reads: "Weighted by the held share. Busy and energy: exclusive or split devices; Not split: the rest.",
		none:  noneSeen,
		empty: "no claim held a device, or " + needsNode,
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
	},
		column{title: "Device-hours", unit: units.Short, more: hundredths(), expr: total("dra_namespace_device_seconds_total") + " / 3600"},
		column{title: "Busy hours", unit: units.Short, more: hundredths(), expr: total("dra_namespace_busy_seconds_total") + " / 3600"},
		column{title: "Not split, hours", unit: units.Short, more: hundredths(), expr: total("dra_namespace_shared_device_seconds_total") + " / 3600"},
		column{title: "Energy", unit: units.WattHour, expr: total("dra_namespace_energy_joules_total") + " / 3600"},
	)
}
