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
	needsErrors = "no rules dra-exporter.errors"
	// needsHealth is why panels of who is unhealthy are empty.
	needsHealth = "no rules dra-exporter.health"
)

// health is which devices are unhealthy, which source reports that and why, and which
// claims are affected.
func health() Board {
	return Board{
		UID:         uidHealth,
		Title:       "DRA / Device health",
		description: "Unhealthy devices by hardware, driver or kubelet, reasons, and affected claims; see docs/health.md. Errors begin ten minutes after the rules are loaded.",
		variables:   healthVariables(),
		marks:       marks{devices: "@nodes", exporters: agents},
		rows: []row{
			{panels: slices.Concat(healthNumbers(), unhealthyNow(), disagreements())},
			{title: "Reasons", panels: []panel{signalsAndTaints(), xidTable(), memoryErrors(), links(), hottestDevices(), recoveries()}},
			{title: "Over time", panels: healthOverTime()},
			{title: "Violations by device class", folded: true, panels: violations()},
			{title: "Taints", folded: true, panels: tainted()},
			{title: "NVLink, temperature and throttling", folded: true, panels: slices.Concat(nvlinkDetails(), heatDetails())},
		},
	}
}

// agents selects what the chosen nodes' agents report of themselves.
const agents = `@fleet, instance=~"$node"`

// healthVariables are the choices of the board.
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
			reads: "hardware counts whole devices; driver (taints) and kubelet also partitions. Reasons are below.",
			empty: "not reported, or " + needsHealth,
		}, each(`sum by (by) (node_by:dra_device_unhealthy:count{@nodes})
or 0 * sum by (by) (node_by:dra_device_healthy:count{@nodes})`, "{{by}}")).Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Claims affected now", unit: units.Short,
			reads: "Their pods may fail, hang or compute wrong results; listed below.",
			empty: "no held device, health not reported, or " + needsHealth,
		}, at(`count(count by (cluster, namespace, resourceclaim) (claim_device:dra_device_unhealthy:held{@nodes}))
or 0 * (count(dra_claim_held{@nodes}) + count(node:dra_devices:count{@nodes}) + count(node_by:dra_device_healthy:count{@nodes}))`)).Thresholds(anyIs(critical)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Xids in the range", unit: units.Short,
			reads: "Many are faults of applications; fatal Xids are red in the table below.",
			empty: "no NVIDIA device, or " + needsErrors,
		}, at(errorsIn(`device:dra_device_xid_errors:increase5m{@nodes}`, `dra_device_xid_errors_total{@nodes, xid="79"}`))).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()).Decimals(0),
		number(5, about{
			title: "ECC errors in the range", unit: units.Short,
			reads: "Uncorrected ones: each damaged an application's data. If a device has them again, reset and test it.",
			empty: "not counted, or " + needsErrors,
		}, at(errorsIn(`device:dra_device_ecc_errors:increase5m{@nodes, severity="uncorrected"}`,
			`dra_device_ecc_errors_total{@nodes, severity="uncorrected"}`))).
			Thresholds(anyIs(critical)).ColorScheme(byThresholds()).Decimals(0),
		number(3, about{
			title: "Resets due", unit: units.Short,
			reads: "The next reset remaps a memory row. They work: reset them when free.",
			empty: "not reported",
		}, at(`sum(max by (cluster, node, uuid) (dra_device_row_remap_pending{@nodes}))`)).
			Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
		number(4, about{
			title: "Throttled devices", unit: units.Short,
			reads: "By heat or supply: recently in thermal slowdown or under the power brake for much of a minute (--health.throttle-ratio). A power cap does not count.",
			empty: "not reported",
		}, at(`count(max by (cluster, node, uuid) (`+slowed+`))
or 0 * count(dra_device_throttled_seconds_total{@nodes, reason=~"(hw_)?thermal"})`)).Thresholds(anyIs(warning)).ColorScheme(byThresholds()),
	}
}

func healthOverTime() []panel {
	return []panel{
		stairs(8, about{
			title: "Unhealthy devices by source", unit: units.Short,
			reads: "By source; no line means none.",
			none:  noneSeen,
			empty: "no device was unhealthy, or " + needsHealth,
		}, over(`sum by (by) (node_by:dra_device_unhealthy:count{@nodes})`, "{{by}}")).
			OverrideByName("hardware", fixed(critical)).
			OverrideByName("driver", fixed(warning)).
			OverrideByName("kubelet", fixed(neutral)),
		stairs(8, about{
			title: "Health signals", unit: units.Short,
			reads: "In the whole cluster, whatever the node. Critical signals make a device unhealthy, warnings do not.",
			none:  noneSeen,
			empty: "there was no signal, or " + needsHealth,
		}, over(`sum by (signal, severity) (signal:dra_device_health_signal_info:count{@fleet})`, "{{signal}} ({{severity}})")),
		stacked(8, about{
			title: "Xids by code", unit: units.Short,
			reads: "In five minutes. One code on one device: the device; one code on many: driver, fabric or application.",
			none:  noneSeen,
			empty: "there was no Xid, or " + needsErrors,
		}, recorded(`sum by (xid) (last_over_time(device:dra_device_xid_errors:increase5m{@nodes}[10m]))`, "{{xid}}")).
			DrawStyle(common.GraphDrawStyleBars).
			FillOpacity(80),
	}
}

// violations are for those who promise something of a class.
func violations() []panel {
	return []panel{
		listing(24, 8, about{
			title: "Violations by device class", unit: units.Short,
			reads: "While a claim held the device. If devices overheat or lose links repeatedly, check their machines.",
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
