package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const requesterLabels = "cluster, namespace, requester_kind, requester, deviceclass"

// rightSizing is what claims use at most of what they hold. dra-exporter advise says what
// would be enough.
func rightSizing() Board {
	return Board{
		UID:         uidRightSizing,
		Title:       "DRA / Right-sizing",
		description: "The largest use of held devices by template, workload and claim. `dra-exporter advise` says what would be enough.",
		from:        "now-7d",
		variables: []cog.Builder[dashboard.VariableModel]{
			dataSource(), cluster(),
			several("class", "Device class", `label_values(dra_namespace_device_seconds_total{@fleet}, deviceclass)`),
		},
		rows: []row{{panels: append(requesterNumbers(), largestUse()...)}},
	}
}

// byRequester is a quantity of each requester in the range.
func byRequester(by, function, series string) string {
	return by + ` by (` + requesterLabels + `) (` + function + `requester:` + series + `[$__range]))`
}

func requesterHours() string {
	return byRequester("sum", "sum_over_time(", "dra_claim_device_seconds:increase5m{@classes}") + " / 3600"
}

func usedDevices() string {
	return byRequester("max", "max_over_time(", "dra_claim_used_devices:max5m{@classes}") +
		"\n/ " + byRequester("max", "max_over_time(", "dra_claim_devices:max{@classes}")
}

func usedMemory() string {
	return byRequester("max", "max_over_time(", `dra_claim_memory_used_bytes:max5m{@classes, attribution!="shared"}`) +
		"\n/ " + byRequester("min", "min_over_time(", "dra_claim_memory_allocated_bytes:min5m{@classes}")
}

func requesterNumbers() []panel {
	return []panel{
		number(6, about{
			title: "Device-hours in the range", unit: units.Short,
			reads: "Held, weighted by shares.",
			empty: needsAccounting,
		}, at(`sum(`+requesterHours()+`)`)).ColorScheme(always(neutral)).Decimals(2),
		number(6, about{
			title: "Templates and workloads in the range", unit: units.Short,
			reads: "That devices were held for, and claims without either.",
			empty: needsAccounting,
		}, at(`count(`+requesterHours()+`)`)).ColorScheme(always(neutral)),
		number(6, about{
			title: "Use half of their devices or fewer", unit: units.Short,
			reads: "Templates, workloads and claims; of the largest claim's devices, in the range.",
			none:  noneSeen,
			empty: "all use more, or " + needsAccounting,
		}, at(`count((`+usedDevices()+`) <= 0.5)`)).Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(6, about{
			title: "Use half of their memory or less", unit: units.Short,
			reads: "Templates, workloads and claims; the peak in the range, of the smallest device.",
			none:  noneSeen,
			empty: "all use more, or " + needsAccounting,
		}, at(`count((`+usedMemory()+`) <= 0.5)`)).Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
	}
}

func largestUse() []panel {
	largest := func(what string) string {
		return what + "\nand on (" + requesterLabels + ") topk(50, " + requesterHours() + ")"
	}
	return []panel{
		listing(24, 14, about{
			title: "Largest use of devices in the range", unit: units.Short,
			reads: "The fifty templates, workloads and claims with most device-hours. Devices used: of a claim in the same five minutes, of the largest claim's; without readings, unused. Memory: the peak, of the smallest device. SM activity, utilization: 99th percentile of five-minute peaks. Without shared devices. See dra-exporter advise.",
			empty: needsAccounting,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "namespace", title: "Namespace", links: []link{toNamespace()}},
			{label: "requester_kind", title: "Kind"},
			{label: "requester", title: "Requested by"},
			{label: "deviceclass", title: "Class"},
		},
			column{title: "Device-hours", unit: units.Short, more: hundredths(), expr: unknownClass("topk(50, " + requesterHours() + ")")},
			column{title: "Devices used", unit: units.PercentUnit, expr: unknownClass(largest(usedDevices()))},
			column{title: "Memory", unit: units.PercentUnit, expr: unknownClass(largest(usedMemory()))},
			column{title: "SM activity", unit: units.PercentUnit, expr: unknownClass(largest(byRequester("max", "quantile_over_time(0.99, ", `dra_claim_engine_active_ratio:max5m{@classes, engine="sm"}`)))},
			column{title: "Utilization", unit: units.PercentUnit, expr: unknownClass(largest(byRequester("max", "quantile_over_time(0.99, ", `dra_claim_utilization_ratio:max5m{@classes, attribution!="shared"}`)))},
		),
	}
}
