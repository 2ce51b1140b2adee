package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// line takes a series out of a stack: what the stack is to be compared with.
func line(colour string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{
		property("color", map[string]any{"mode": "fixed", "fixedColor": colour}),
		property("custom.stacking", map[string]any{"mode": "none", "group": "A"}),
		property("custom.fillOpacity", 0),
		property("custom.lineWidth", 2),
	}
}

// sharedUse is about one shared device: the row is repeated for each.
func sharedUse() []panel {
	const (
		on     = `{@node, uuid=~"$shared"}`
		splits = "not shared, or not split: see DRA / Node and docs/sharing.md"
	)
	one := func(metric string) string { return `max by (cluster, node, uuid) (` + metric + on + `)` }
	pods := func(metric string) string {
		return `max by (cluster, node, uuid, namespace, pod) (` + metric + on + `)`
	}
	return []panel{
		stacked(12, about{
			title: "Utilization by pod", unit: units.PercentUnit,
			reads: "By pods' processes, and those of no holder. The rest below the line is of no known process.",
			empty: splits,
		},
			over(pods("dra_pod_utilization_ratio"), "{{namespace}}/{{pod}}"),
			over(one("dra_device_unattributed_utilization_ratio"), "unattributed"),
			over(one("dra_device_utilization_ratio"), "the device")).
			OverrideByName("unattributed", fixed(warning)).
			OverrideByName("the device", line(unknown)),
		stacked(12, about{
			title: "Memory by pod", unit: units.BytesIEC,
			reads: "By pods' processes, and those of no holder. The given memory is not enforced: one pod can make the others fail.",
			empty: splits,
		},
			over(pods("dra_pod_memory_used_bytes"), "{{namespace}}/{{pod}}"),
			over(one("dra_device_unattributed_memory_bytes"), "unattributed"),
			over(one("dra_device_memory_used_bytes"), "the device"),
			over(one("dra_device_memory_size_bytes"), "size")).
			OverrideByName("unattributed", fixed(warning)).
			OverrideByName("the device", line(unknown)).
			OverrideByName("size", line(critical)),
	}
}

// deviceLines has a line for each device of a node; legends of sixteen need space.
func deviceLines(what about, queries ...query) *timeseries.PanelBuilder {
	return timeline(12, what, queries...).Height(10)
}

func devicesOverTime() []panel {
	return []panel{
		deviceLines(about{
			title: "Utilization", unit: units.PercentUnit,
			reads: "Share of time with work, with partitions.",
			empty: "not reported, or " + needsNode,
		}, over(ofDevice(`dra_device_utilization_ratio{@node}`), "{{device}}")).Max(1),
		deviceLines(about{
			title: "Memory in use", unit: units.PercentUnit,
			reads: "Near 1, a pod is about to fail, or allocates all memory at start.",
			empty: "not reported, or " + needsNode,
		}, over(onNode(`max by (cluster, node, uuid) (dra_device_memory_used_bytes{@node})
/ on (cluster, node, uuid) max by (cluster, node, uuid) (dra_device_memory_size_bytes{@node})`), "{{device}}")).Max(1),
		deviceLines(about{
			title: "Power", unit: units.Watt,
			reads: "Whole devices. Flat at the limit: at the power cap.",
			empty: "not reported, or " + needsNode,
		}, over(ofDevice(`dra_device_power_watts{@node}`), "{{device}}")),
		deviceLines(about{
			title: "Temperature", unit: units.Celsius,
			reads: "By device and sensor.",
			empty: "not reported, or " + needsNode,
		}, over(onNode(`max by (cluster, node, uuid, sensor) (dra_device_temperature_celsius{@node})`, "sensor"), "{{device}} {{sensor}}")),
	}
}

func clocksOverTime() []panel {
	return []panel{
		deviceLines(about{
			title: "Clock", unit: units.Hertz,
			reads: "If slower under load than similar devices, it is throttled: see the next panel.",
			empty: needsDefault + "not reported, or " + needsNode,
		}, over(ofDevice(`dra_device_clock_hertz{@node, clock="sm"}`), "{{device}}")),
		deviceLines(about{
			title: "Throttling by reason", unit: units.PercentUnit,
			reads: "Share of time by reason; no line means none. power_cap is configured.",
			none:  noneSeen,
			empty: "none was throttled, or not reported",
		}, over(onNode(`max by (cluster, node, uuid, reason) (rate(dra_device_throttled_seconds_total{@node}[$__rate_interval])) > 0`, "reason"), "{{device}} {{reason}}")).Max(1),
	}
}

// traffic is bytes per second both ways, of each device.
func traffic(title, reads, empty, sent, received string) panel {
	rate := func(metric string) string {
		return onNode(`max by (cluster, node, uuid) (rate(` + metric + `{@node}[$__rate_interval]))`)
	}
	return deviceLines(about{title: title, unit: units.BytesPerSecondSI, reads: reads, empty: empty},
		over(rate(sent), "{{device}} sent"), over(rate(received), "{{device}} received"))
}

func trafficOverTime() []panel {
	return []panel{
		traffic("NVLink", "All links of a device. A slower one has a bad link, or others wait for it.",
			needsDefault+"no NVLink, or no counter of its bytes, or "+needsNode,
			"dra_device_nvlink_transmit_bytes_total", "dra_device_nvlink_receive_bytes_total"),
		traffic("PCIe", "Between device and host. High with low utilization: the pod waits for data.",
			needsDefault+"devices do not count it (docs/sources.md), or "+needsNode,
			"dra_device_pcie_transmit_bytes_total", "dra_device_pcie_receive_bytes_total"),
		traffic("Network", "Of network and RDMA devices.",
			needsDefault+"no agent reads such a device here, or "+needsNode,
			"dra_device_network_transmit_bytes_total", "dra_device_network_receive_bytes_total"),
		deviceLines(about{
			title: "Errors on links and buses per hour", unit: units.Short,
			reads: "No line means none. If permanent, check cable, connector and slot.",
			none:  noneSeen,
			empty: "there was none, or devices do not count any",
		},
			over(onNode(`3600 * max by (cluster, node, uuid, kind) (rate(dra_device_nvlink_errors_total{@node}[$__rate_interval])) > 0`, "kind"), "{{device}} NVLink {{kind}}"),
			over(onNode(`3600 * max by (cluster, node, uuid) (rate(dra_device_pcie_replays_total{@node}[$__rate_interval])) > 0`), "{{device}} PCIe replays"),
			over(onNode(`3600 * max by (cluster, node, uuid, kind) (rate(dra_device_network_errors_total{@node}[$__rate_interval])) > 0`, "kind"), "{{device}} {{kind}}")),
	}
}

func eachLink() []panel {
	const empty = needsDefault + "links are not read (--device.nvlink-links), or there is no NVLink"
	rate := func(metric string) string {
		return onNode(`max by (cluster, node, uuid, link, peer) (rate(`+metric+`{@node}[$__rate_interval]))`, "link", "peer")
	}
	return []panel{
		deviceLines(about{
			title: "Sent over each NVLink", unit: units.BytesPerSecondSI,
			reads: "By link and its other end. Links of one pair have equal traffic: one with less is degraded.",
			empty: empty,
		}, over(rate("dra_device_nvlink_link_transmit_bytes_total"), "{{device}} {{link}} → {{peer}}")),
		deviceLines(about{
			title: "Received over each NVLink", unit: units.BytesPerSecondSI,
			reads: "By link and its other end.",
			empty: empty,
		}, over(rate("dra_device_nvlink_link_receive_bytes_total"), "{{device}} {{link}} ← {{peer}}")),
	}
}

// agent selects what the node's agent says of itself: such series have no node, but
// the shipped monitors make the node's name their instance.
const agent = `@fleet, instance="$node"`

func agentPanels() []panel {
	const monitors = "no agent, or its instance is not the node's name"
	return []panel{
		number(12, about{
			title: "Age of the readings", unit: units.Seconds,
			reads: "At the last scrape. Above a scrape interval and seconds, the agent or a library hangs.",
			empty: "no device could be read yet, or " + monitors,
		}, at(`time() - max(dra_exporter_sample_timestamp_seconds{`+agent+`})`)).
			Thresholds(steps(good, step{60, warning}, step{120, critical})).ColorScheme(byThresholds()),
		number(12, about{
			title: "Split of use by process", unit: units.Short,
			reads: "ok: shared devices are split. Otherwise the reason why not; see docs/sharing.md.",
			empty: monitors,
		}, each(`max by (reason) (dra_exporter_process_attribution{`+agent+`}) == 1`, "{{reason}}")).
			TextMode(common.BigValueTextModeName).ColorScheme(always(neutral)),
		listing(24, 4, about{
			title: "Unmatched devices", unit: units.Short,
			reads: "published: allocated, without known hardware; hardware: not published by the driver. Only devices that a source reads count. See runbook DRAExporterUnmatchedDevices.",
			none:  noneSeen,
			empty: "all match, or " + monitors,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "driver", title: "Driver"}, {label: "side", title: "Side"}},
			column{title: "Devices", expr: `max by (cluster, driver, side) (dra_exporter_unmatched_devices{` + agent + `}) > 0`, more: tinted(steps(warning))},
		),
		listing(24, 10, about{
			title: "Sources", unit: units.Short,
			reads: "Values of a source that is down are absent: see runbook DRAExporterSourceDown, and the agent's log.",
			empty: monitors,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "source", title: "Source"}},
			column{title: "State", expr: `max by (cluster, source) (dra_exporter_source_up{` + agent + `})`,
				more: append(tinted(steps(critical, step{1, good})), property("mappings", words(named{"0", "down", critical}, named{"1", "up", good})))},
			column{title: "Last success", unit: units.DateTimeFromNow, expr: `1000 * max by (cluster, source) (dra_exporter_source_last_success_timestamp_seconds{` + agent + `})`},
			column{title: "Errors in the range", expr: `round(sum by (cluster, source) (increase(dra_exporter_source_errors_total{` + agent + `}[$__range])))`, more: tinted(steps(good, step{1, warning}))},
			column{title: "Slowest reads (p99)", unit: units.Seconds, expr: `histogram_quantile(0.99, max by (cluster, source, le) (rate(dra_exporter_source_read_duration_seconds_bucket{` + agent + `}[$__rate_interval]))) >= 0`},
		).SortBy(byColumn("State", false)),
	}
}
