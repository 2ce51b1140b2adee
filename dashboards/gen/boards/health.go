package boards

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	// needsErrors is why panels of counted errors are empty.
	needsErrors = "the recording rules of the group dra-exporter.errors are not loaded, or were less than ten minutes ago"
	// needsHealth is why panels of who is unhealthy are empty.
	needsHealth = "the recording rules of the group dra-exporter.health are not loaded"
)

// health is which devices are unhealthy, which source reports that and why, and which
// claims are affected.
func health() Board {
	return Board{
		UID:   uidHealth,
		Title: "DRA / Device health",
		description: "Unhealthy devices as reported by hardware, driver or kubelet, the reasons, " +
			"and the affected claims. docs/health.md explains sources, signals and Xids.",
		variables: healthVariables(),
		marks:     marks{devices: "@nodes", exporters: agents},
		rows: []row{
			{panels: slices.Concat(healthNumbers(), unhealthyNow())},
			{title: "Reasons", panels: []panel{signalsAndTaints(), xidTable(), memoryErrors(), links(), hottestDevices(), recoveries()}},
			{title: "Over time", panels: healthOverTime()},
			{title: "Disagreements", panels: disagreements()},
		},
	}
}

// healthDetails are taints, fabrics and heat, and the violations by class.
func healthDetails() Board {
	return Board{
		UID:         uidHealth + details,
		detailsOf:   uidHealth,
		Title:       "DRA / Device health details",
		description: "Violations by device class, tainted devices, NVLink fabrics, temperature and throttling.",
		variables:   healthVariables(),
		marks:       marks{devices: "@nodes", exporters: agents},
		rows: []row{
			{panels: violations()},
			{title: "Taints", panels: tainted()},
			{title: "NVLink, temperature and throttling", panels: slices.Concat(nvlinkDetails(), heatDetails())},
		},
	}
}

// agents selects what the chosen nodes' agents report of themselves.
const agents = `@fleet, instance=~"$node"`

// healthVariables are the choices of both boards.
func healthVariables() []cog.Builder[dashboard.VariableModel] {
	return []cog.Builder[dashboard.VariableModel]{
		dataSource(), cluster(),
		several("node", "Node", `label_values(dra_device_info{@fleet}, node)`),
	}
}

// errorsIn is how many errors a rule of dra-exporter.errors has counted in the
// range, and 0 where there are none, though the rule was there to see them and the
// device's own counter, of which watched is a part, to be seen.
func errorsIn(rule, watched string) string {
	return `sum(sum_over_time(` + rule + `[$__range]))
or 0 * (
  count(` + watched + `)
  + count(last_over_time(job_instance:dra_exporter_build_info:last5m{@fleet}[10m]))
)`
}

func healthNumbers() []panel {
	return []panel{
		number(4, about{
			title: "Unhealthy devices", unit: units.Short,
			reads: "By source: hardware counts whole devices; driver (taints) and kubelet also count partitions. " +
				"The tables below explain values above 0. A source that reports nothing has no value.",
			empty: "no device reports its health, or " + needsHealth,
		}, each(`sum by (by) (node_by:dra_device_unhealthy:count{@nodes})
or 0 * sum by (by) (node_by:dra_device_healthy:count{@nodes})`, "{{by}}")).Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Claims on unhealthy devices", unit: units.Short,
			reads: "Claims that hold an unhealthy device or partition. Their pods may fail, hang or compute wrong results: the table below lists them.",
			empty: "no claim holds a device, no device reports its health, or " + needsHealth,
		}, at(`count(count by (cluster, namespace, resourceclaim) (claim_device:dra_device_unhealthy:held{@nodes}))
or 0 * (count(dra_claim_held{@nodes}) + count(node:dra_devices:count{@nodes}) + count(node_by:dra_device_healthy:count{@nodes}))`)).Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(3, about{
			title: "Xids in the range", unit: units.Short,
			reads: "Errors of the range that NVIDIA's driver reported. Many are faults of the application; the table of Xids has their meaning, with fatal Xids in red.",
			empty: "no NVIDIA device reports Xids, or " + needsErrors,
		}, at(errorsIn(`device:dra_device_xid_errors:increase5m{@nodes}`, `dra_device_xid_errors_total{@nodes, xid="79"}`))).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(6, about{
			title: "Uncorrected ECC errors in the range", unit: units.Short,
			reads: "ECC errors of the range that could not be corrected: each damaged data of an application. If a device has them again, reset and test it.",
			empty: "no device counts ECC errors, or " + needsErrors,
		}, at(errorsIn(`device:dra_device_ecc_errors:increase5m{@nodes, severity="uncorrected"}`,
			`dra_device_ecc_errors_total{@nodes, severity="uncorrected"}`))).
			Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(3, about{
			title: "Pending resets", unit: units.Short,
			reads: "Devices with a memory row that the next reset remaps. They continue to work: reset them when they are free.",
			empty: "no device reports row remapping",
		}, at(`sum(max by (cluster, node, uuid) (dra_device_row_remap_pending{@nodes}))`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Throttled by heat or supply", unit: units.Short,
			reads: "Devices that recently spent a large part of a minute in thermal slowdown or under the power brake (--health.throttle-ratio). A configured power cap does not count.",
			empty: "no device reports why it is throttled",
		}, at(`count(max by (cluster, node, uuid) (`+slowed+`))
or 0 * count(dra_device_throttled_seconds_total{@nodes, reason=~"(hw_)?thermal"})`)).Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
	}
}

func healthOverTime() []panel {
	return []panel{
		stairs(8, about{
			title: "Unhealthy devices by source", unit: units.Short,
			reads: "Number of devices that each source reports as unhealthy. There is no line while there are none.",
			none:  noneSeen,
			empty: "no device was unhealthy, or " + needsHealth,
		}, over(`sum by (by) (node_by:dra_device_unhealthy:count{@nodes})`, "{{by}}")).
			OverrideByName("hardware", fixed(critical)).
			OverrideByName("driver", fixed(warning)).
			OverrideByName("kubelet", fixed(neutral)),
		stairs(8, about{
			title: "Health signals", unit: units.Short,
			reads: "Devices with each signal, of the whole cluster, whatever nodes are chosen. Critical signals make a device unhealthy, warnings do not.",
			none:  noneSeen,
			empty: "there was no signal, or " + needsHealth,
		}, over(`sum by (signal, severity) (signal:dra_device_health_signal_info:count{@fleet})`, "{{signal}} ({{severity}})")),
		stacked(8, about{
			title: "Xids by code", unit: units.Short,
			reads: "Xids reported in five minutes. One code repeated on one device is a fault of the device; one code on many devices is a fault of a driver, a fabric or an application.",
			none:  noneSeen,
			empty: "no Xid was reported, or " + needsErrors,
		}, recorded(`sum by (xid) (last_over_time(device:dra_device_xid_errors:increase5m{@nodes}[10m]))`, "{{xid}}")).
			DrawStyle(common.GraphDrawStyleBars).
			FillOpacity(80),
	}
}

// violations are for those who promise something of a class.
func violations() []panel {
	return []panel{
		listing(24, 6, about{
			title: "Violations by device class", unit: units.Short,
			reads: "How often a problem began on a device while a claim of the class held it. " +
				"If devices of a class overheat or lose links repeatedly, check their machines.",
			none:  noneSeen,
			empty: "there was no violation, or " + needsErrors,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "deviceclass", title: "Device class"},
			{label: "constraint", title: "Constraint"},
		}, column{
			title: "Times in the range",
			expr: `round(sum by (cluster, deviceclass, constraint) (
  max by (cluster, node, deviceclass, constraint) (sum_over_time(node_class:dra_constraint_violations:increase5m{@nodes}[$__range]))
)) > 0`,
			more: tinted(steps(warning)),
		}),
	}
}
