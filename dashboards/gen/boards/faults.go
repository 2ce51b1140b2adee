package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// errorsOf is what a rule of dra-exporter.errors counted in the range, for each
// device that has any.
func errorsOf(rule, by string) string {
	return `sum by (` + by + `) (sum_over_time(` + rule + `[$__range])) > 0`
}

// whole is for counts that Prometheus has extrapolated.
func whole(more ...dashboard.DynamicConfigValue) []dashboard.DynamicConfigValue {
	return append(more, property("decimals", 0))
}

// hundredths is for hours of devices, which are few in a short range.
func hundredths() []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{property("decimals", 2)}
}

const perDevice = "cluster, node, uuid"

func xidTable() panel {
	const last = `dra_device_xid_last_timestamp_seconds{@nodes}`
	table := listing(24, 10, about{
		title: "Xids by device and code", unit: units.Short,
		reads: "Red: reset or repair; orange: attention; grey: of the application. In the range counts full five minutes, up to five minutes late.",
		none:  noneSeen,
		empty: "there was no Xid since the agents started, or no NVIDIA device",
	}, deviceKeys(key{label: "xid", title: "Xid"}),
		column{title: "Last", unit: units.DateTimeFromNow, expr: `1000 * max by (cluster, node, uuid, xid) (` + last + `)`},
		column{title: "In the range", expr: errorsOf(`device:dra_device_xid_errors:increase5m{@nodes}`, "cluster, node, uuid, xid"), more: whole()},
		heldNow(last),
		names(last),
	)
	table.OverrideByName("Xid", append(asText(), property("mappings", xidMappings())))
	return table
}

func memoryErrors() panel {
	const (
		uncorrected = `device:dra_device_ecc_errors:increase5m{@nodes, severity="uncorrected"}`
		corrected   = `device:dra_device_ecc_errors:increase5m{@nodes, severity="corrected"}`
		any         = `(
  dra_device_remapped_rows{@nodes} > 0
  or dra_device_row_remap_pending{@nodes} == 1 or dra_device_row_remap_failed{@nodes} == 1
  or dra_device_retired_pages{@nodes} > 0
  or sum_over_time(device:dra_device_ecc_errors:increase5m{@nodes}[$__range])
)`
	)
	return listing(24, 10, about{
		title: "Memory errors in the range, and remapped rows", unit: units.Short,
		reads: "Uncorrected errors damaged an application's data. A reset remaps pending rows; replace devices with failed remapping. Observe growing corrected errors and remapped rows.",
		none:  noneSeen,
		empty: "there is none, or no device counts them",
	}, deviceKeys(),
		column{title: "Uncorrected", expr: errorsOf(uncorrected, perDevice), more: whole(tinted(steps(critical))...)},
		column{title: "Corrected", expr: errorsOf(corrected, perDevice), more: whole()},
		column{title: "Remapped rows", expr: `sum by (cluster, node, uuid) (max by (cluster, node, uuid, severity) (dra_device_remapped_rows{@nodes} > 0))`},
		column{title: "Remapping", expr: `max by (cluster, node, uuid) (
  dra_device_row_remap_failed{@nodes} * 2 > 0 or dra_device_row_remap_pending{@nodes} == 1
)`, more: append(tinted(steps(warning, step{2, critical})),
			property("mappings", words(named{"1", "pending a reset", warning}, named{"2", "failed", critical})))},
		column{title: "Retired pages", expr: `sum by (cluster, node, uuid) (max by (cluster, node, uuid, severity) (dra_device_retired_pages{@nodes} > 0))`},
		names(any),
	)
}

func links() panel {
	const (
		inactive = `dra_device_nvlink_links{@nodes, state="inactive"} > 0`
		down     = `dra_device_network_link_state{@nodes, state="active"} == 0`
		any      = `(
  ` + inactive + ` or ` + down + `
  or sum_over_time(device:dra_device_nvlink_errors:increase5m{@nodes}[$__range])
  or sum_over_time(device:dra_device_pcie_replays:increase5m{@nodes}[$__range])
  or increase(dra_device_xgmi_errors_total{@nodes, severity="uncorrected"}[$__range]) > 0
)`
	)
	return listing(24, 10, about{
		title: "Link errors in the range, and links down", unit: units.Short,
		reads: "An inactive NVLink is a fault, unless all similar devices have one. Ports: network and RDMA devices.",
		none:  noneSeen,
		empty: "no problem, or " + needsErrors,
	}, deviceKeys(),
		column{title: "NVLink errors", expr: errorsOf(`device:dra_device_nvlink_errors:increase5m{@nodes}`, perDevice), more: whole(tinted(steps(warning))...)},
		column{title: "NVLinks inactive", expr: `max by (cluster, node, uuid) (` + inactive + `)`, more: tinted(steps(warning))},
		column{title: "Ports down", expr: `count by (cluster, node, uuid) (max by (cluster, node, uuid, port) (` + down + `))`, more: tinted(steps(warning))},
		column{title: "PCIe replays", expr: errorsOf(`device:dra_device_pcie_replays:increase5m{@nodes}`, perDevice), more: whole()},
		column{title: "xGMI uncorrected", expr: `round(max by (cluster, node, uuid) (increase(dra_device_xgmi_errors_total{@nodes, severity="uncorrected"}[$__range]) > 0))`},
		names(any),
	)
}

// nvlinkDetails are the NVLinks of a fabric.
func nvlinkDetails() []panel {
	const apart = `dra_device_fabric_state{@nodes, state="success"} == 0`
	return []panel{
		listing(12, 10, about{
			title: "Devices outside their NVLink fabric", unit: units.Short,
			reads: "Not registered, they cannot communicate with peers: check the node's fabric manager.",
			none:  noneSeen,
			empty: "all are registered, or belong to no fabric",
		}, deviceKeys(key{label: "state", title: "State"}),
			column{title: "Joined", expr: `max by (cluster, node, uuid, state) (dra_device_fabric_state{@nodes, state!="success"} == 1)`,
				more: append(tinted(steps(critical)), property("mappings", words(named{"1", "no", critical})))},
			heldNow(apart),
			names(apart),
		),
		stacked(12, about{
			title: "NVLink errors by kind", unit: units.Short,
			reads: "In five minutes. If replays and CRC errors grow on one device, a link is about to fail.",
			none:  noneSeen,
			empty: "no error, no NVLink, or " + needsErrors,
		}, recorded(`sum by (kind) (last_over_time(device:dra_device_nvlink_errors:increase5m{@nodes}[10m]))`, "{{kind}}")).
			DrawStyle(common.GraphDrawStyleBars).
			FillOpacity(80),
	}
}

func hottestDevices() panel {
	return listing(24, 10, about{
		title: "Hottest devices", unit: units.Celsius,
		reads: "The ten hottest GPU sensors. Throttled: thermal_throttling or power_brake. DRA / Node details has shares by reason.",
		empty: "no device reports its temperature",
	}, deviceKeys(),
		column{title: "GPU", expr: topHottest, more: tinted(steps(good, step{80, warning}, step{90, critical}))},
		column{title: "Memory", expr: among(topHottest, `dra_device_temperature_celsius{@nodes, sensor="memory"}`), more: tinted(steps(good, step{90, warning}, step{105, critical}))},
		column{title: "Throttled", expr: among(topHottest, slowed),
			more: append(tinted(steps(critical)), property("mappings", words(named{"1", "yes", critical})))},
		column{title: "Power", unit: units.Watt, expr: among(topHottest, `dra_device_power_watts{@nodes}`)},
		names(topHottest),
	)
}

func heatDetails() []panel {
	// hottest keeps the same ten nodes for the whole range, so that lines do not
	// come and go with a rank.
	const hottest = `node:dra_device_temperature_celsius:max{@nodes}
and on (cluster, node) topk(10, max by (cluster, node) (
  max_over_time(node:dra_device_temperature_celsius:max{@nodes}[$__range] @ end())
))`
	return []panel{
		timeline(12, about{
			title: "Hottest device of the ten hottest nodes", unit: units.Celsius,
			reads: "GPUs throttle at about 85 to 90 °C, their memory at 95 to 105 °C. If one node differs, check its fans and location.",
			empty: "not reported, or no rules dra-exporter.devices",
		}, over(hottest, "{{node}} {{sensor}} {{cluster}}")),
		timeline(12, about{
			title: "Throttled devices by reason", unit: units.Short,
			reads: "Mean of five minutes; each reason counts. power_cap is configured; heat and power brake are faults. Not filtered by node; DRA / Node details has devices.",
			empty: "not reported, or no rules dra-exporter.devices",
		}, over(`sum by (reason) (reason:dra_device_throttled_seconds:rate5m{@fleet})`, "{{reason}}")),
	}
}

// slowed are devices that heat or the power supply slows down more than a little.
const slowed = `dra_device_health_signal_info{@nodes, signal=~"thermal_throttling|power_brake"}`

const topHottest = `topk(10, max by (cluster, node, uuid) (dra_device_temperature_celsius{@nodes, sensor="gpu"}))`
