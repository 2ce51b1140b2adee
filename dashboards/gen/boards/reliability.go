package boards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	modelKindLabels = "cluster, model, driver_version, kind"

	noIncidents    = "no agent, or no source"
	noIncidentSeen = "no incident, or " + noIncidents
)

// reliability is how often devices fail, which fail again and again, and how available
// classes are.
func reliability() Board {
	return Board{
		UID:         uidReliability,
		Title:       "DRA / Reliability",
		description: "How often devices of each model fail, how sure that is, devices and nodes that fail repeatedly, and error budgets. Needs a cluster role that reads nodes, claims, ResourceSlices and DeviceClasses.",
		from:        "now-7d",
		variables: []cog.Builder[dashboard.VariableModel]{
			dataSource(), cluster(),
			several("class", "Device class", `label_values({__name__=~"dra_class_devices|dra_class_devices_down", @fleet}, deviceclass)`),
		},
		rows: []row{
			{panels: slices.Concat(reliabilityNumbers(), budgetTable(), lemonTable())},
			{title: "Incidents and history", panels: append(incidentTable(), reliabilityHistory()...)},
		},
	}
}

func reliabilityNumbers() []panel {
	return []panel{
		number(6, about{
			title: "Failures in the range", unit: units.Short,
			reads: "Devices or partitions that became unhealthy by hardware. Not filtered by class.",
			none:  noneSeen,
			empty: noIncidentSeen,
		}, at(`sum(sum_over_time(model_kind:dra_incidents:increase5m{@fleet, kind="unhealthy"}[$__range]))`)).ColorScheme(always(neutral)).Decimals(0),
		number(6, about{
			title: "Claims affected in the range", unit: units.Short,
			reads: "Held a device when it became unhealthy. Not filtered by class.",
			none:  noneSeen,
			empty: noIncidentSeen,
		}, at(`sum(sum_over_time(model_kind:dra_incident_claims:increase5m{@fleet, kind="unhealthy"}[$__range]))`)).ColorScheme(always(neutral)).Decimals(0),
		number(6, about{
			title: "Unhealthy hours in the range", unit: units.Short,
			reads: "Device-hours unhealthy by hardware. Not filtered by class.",
			none:  noneSeen,
			empty: noIncidentSeen,
		}, at(`sum(sum_over_time(model_kind:dra_incident_seconds:increase5m{@fleet, kind="unhealthy"}[$__range])) / 3600`)).ColorScheme(always(neutral)).Decimals(2),
		number(6, about{
			title: "Devices down now", unit: units.Short,
			reads: "The largest number of a class, because classes may overlap. Cordons count.",
			empty: noPermission,
		}, at(`max(sum by (cluster, deviceclass) (max by (cluster, deviceclass, reason) (dra_class_devices_down{@classes})))`)).Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
	}
}

func incidentTable() []panel {
	hours := func(record string) string {
		return "max by (" + modelKindLabels + ") (last_over_time(model_kind:dra_incident_watched_seconds:" + record + "{@fleet}[15m])) / 3600"
	}
	return []panel{
		listing(24, 10, about{
			title: "Incidents by model in 28 days", unit: units.Short,
			reads: "Mean hours of a device between incidents, with the 95 % interval; without incidents, only its lower bound. One event can be of several kinds. Not filtered by class.",
			empty: noIncidents,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "model", title: "Model"}, {label: "driver_version", title: "Driver"}, {label: "kind", title: "Kind"}},
			column{title: "Incidents", unit: units.Short, more: whole(), expr: "max by (" + modelKindLabels + ") (last_over_time(model_kind:dra_incidents:sum28d{@fleet}[15m]))"},
			column{title: "Watched hours", unit: units.Short, expr: hours("sum28d")},
			column{title: "Hours between", unit: units.Short, expr: hours("mtbf28d")},
			column{title: "At least", unit: units.Short, expr: hours("mtbf_lower28d")},
			column{title: "At most", unit: units.Short, expr: hours("mtbf_upper28d")},
		),
	}
}

func lemonTable() []panel {
	return []panel{
		listing(12, 14, about{
			title: "Devices that failed in use", unit: units.Short,
			reads: "Became unhealthy in 28 days while held. Three times are an alert. Not filtered by class.",
			none:  noneSeen,
			empty: noIncidentSeen,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "node", title: "Node", links: []link{toNode()}}, {label: "device", title: "Device"}, {label: "uuid", title: "UUID", hidden: true}},
			column{title: "Failures", unit: units.Short, more: whole(tinted(steps(warning))...), expr: shortUUID("max by (cluster, node, uuid) (last_over_time(device:dra_device_held_failures:sum28d{@fleet}[15m]))")},
		),
	}
}

func budgetTable() []panel {
	by := "max by (cluster, deviceclass) "
	return []panel{
		listing(12, 14, about{
			title: "Availability by class", unit: units.PercentUnit,
			reads: "The worst first: share not down in 28 days, and the rest of the error budget for 99 %; below 0 it is used up. Cordons and taint rules do not count.",
			empty: noPermission,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "deviceclass", title: "Class"}},
			column{title: "Available", unit: units.PercentUnit, more: tinted(steps(critical, step{0.99, warning}, step{0.999, good})),
				expr: "1 - " + by + "(avg_over_time(class:dra_class_devices_down:ratio{@classes}[28d]))"},
			column{title: "Budget left", unit: units.PercentUnit, more: tinted(steps(critical, step{0, warning}, step{0.5, good})),
				expr: "1 - " + by + "(avg_over_time(class:dra_class_devices_down:ratio{@classes}[28d])) / 0.01"},
		).SortBy(byColumn("Available", false)),
	}
}

func reliabilityHistory() []panel {
	return []panel{
		stairs(12, about{
			title: "Incidents of each kind", unit: units.Short,
			reads: "In five minutes, all models. Not filtered by class.",
			none:  noneSeen,
			empty: noIncidentSeen,
		}, recorded(`sum by (cluster, kind) (last_over_time(model_kind:dra_incidents:increase5m{@fleet}[10m]))`, "{{kind}} {{cluster}}")),
		timeline(12, about{
			title: "Share of each class that is down", unit: units.PercentUnit,
			reads: "Share of devices, without cordons and taint rules.",
			empty: noPermission,
		}, over(`max by (cluster, deviceclass) (class:dra_class_devices_down:ratio{@classes})`, "{{deviceclass}} {{cluster}}")).ColorScheme(byName()),
		stacked(12, about{
			title: "Devices that are down, by reason", unit: units.Short,
			reads: "Devices of several classes count for each.",
			none:  noneSeen,
			empty: noPermission,
		}, over(`sum by (cluster, reason) (max by (cluster, deviceclass, reason) (dra_class_devices_down{@classes}) > 0)`, "{{reason}} {{cluster}}")),
		timeline(12, about{
			title: "Share of devices that is unhealthy, by model", unit: units.PercentUnit,
			reads: "Of the watched time of all devices, by hardware. Not filtered by class.",
			none:  noneSeen,
			empty: noIncidentSeen,
		}, recorded(`sum by (cluster, model) (last_over_time(model_kind:dra_incident_seconds:increase5m{@fleet, kind="unhealthy"}[10m]))
/ (sum by (cluster, model) (
  last_over_time(model_kind:dra_incident_seconds:increase5m{@fleet, kind="unhealthy"}[10m])
  + last_over_time(model_kind:dra_incident_watched_seconds:increase5m{@fleet, kind="unhealthy"}[10m])
) > 0)`, "{{model}} {{cluster}}")),
	}
}
