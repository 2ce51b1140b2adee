package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	sourceRules  = "no recording rules or exporters"
	allExporters = " Not filtered by job and node."
)

func sourcePanels() []panel {
	return []panel{
		listing(12, 10, about{
			title: "Failed reads by exporter in the range", unit: units.Short,
			reads: "The 20 with most failed reads.",
			none:  noneSeen,
			empty: "no read has failed, or " + noExporter,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "instance", title: "Node", links: []link{instanceNode()}},
			{label: "source", title: "Source"},
		}, column{title: "Failed", unit: units.Short, expr: `topk(20, round(sum by (cluster, instance, source) (increase(dra_exporter_source_errors_total{@exporters}[$__range]))) > 0)`}),
		timeline(12, about{
			title: "Share of exporters whose source is up", unit: units.PercentUnit,
			reads: "If one line falls, a driver or library fails; if resource… and pods all fall, check the API server." + allExporters,
			empty: sourceRules,
		}, over(`sum by (cluster, source) (source:dra_exporter_source_up:sum{@fleet}) / sum by (cluster, source) (source:dra_exporter_source_up:count{@fleet})`, "{{source}} {{cluster}}")).Max(1),
		listing(24, 14, about{
			title: "Delayed watches", unit: units.Seconds,
			reads: "The 20 with the oldest queued events. Above 10 s the source is impaired: its data is older than that.",
			empty: noExporter,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "instance", title: "Node", links: []link{instanceNode()}},
			{label: "source", title: "Source"},
		},
			column{title: "Lag", unit: units.Seconds, more: tinted(steps(good, step{10, warning})), expr: `topk(20, max by (cluster, instance, source) (dra_exporter_source_lag_seconds{@exporters}))`},
			column{title: "Events", unit: units.Short, expr: `topk(20, max by (cluster, instance, source) (dra_exporter_source_queued_events{@exporters}))`}),
	}
}

func readDetails() []panel {
	return []panel{
		listing(12, 14, about{
			title: "Reads by source", unit: units.Short,
			reads: "Reads that failed completely or partly, and the mean duration in the last minutes.",
			empty: noExporter,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "source", title: "Source"}},
			column{title: "Failed in the range", unit: units.Short, more: tinted(anyIs(warning)), expr: `round(sum by (cluster, source) (increase(dra_exporter_source_errors_total{@exporters}[$__range])))`},
			column{title: "Mean duration", unit: units.Seconds, expr: `sum by (cluster, source) (rate(dra_exporter_source_read_duration_seconds_sum{@exporters}[$__rate_interval]))
/ on (cluster, source) (sum by (cluster, source) (rate(dra_exporter_source_read_duration_seconds_count{@exporters}[$__rate_interval])) > 0)`},
		),
		timeline(12, about{
			title: "Read duration (p95)", unit: units.Seconds,
			reads: "If longer than the sampling interval, samples are old." + allExporters,
			empty: sourceRules,
		}, over(recordedQuantile("0.95", "cluster, source", `source:dra_exporter_source_read_duration_seconds_bucket:rate5m{@fleet}`), "{{source}} {{cluster}}")),
	}
}

// missingPanels are what the pages lack, and why.
func missingPanels() []panel {
	return []panel{
		listing(12, 4, about{
			title: "Unmatched devices by node", unit: units.Short,
			reads: "published: allocated, without known hardware; hardware: not published by the driver. Only devices that a source reads count. See runbook DRAExporterUnmatchedDevices.",
			empty: "all are matched, or " + noAgent, none: noneSeen,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "instance", title: "Node", links: []link{instanceNode()}},
			{label: "driver", title: "Driver"},
			{label: "side", title: "Side"},
		}, column{title: "Devices", unit: units.Short, more: tinted(anyIs(warning)), expr: `max by (cluster, instance, driver, side) (dra_exporter_unmatched_devices{@exporters}) > 0`}),
		listing(12, 4, about{
			title: "Families with dropped series", unit: units.Short,
			reads: "Above --metrics.max-series: raise the limit, or find the cause.",
			empty: "no series are dropped, or " + noExporter, none: noneSeen,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "family", title: "Family"}},
			column{title: "Dropped in the range", unit: units.Short, more: tinted(anyIs(warning)), expr: `round(sum by (cluster, family) (increase(dra_exporter_series_dropped_total{@exporters}[$__range]))) > 0`}),
		listing(24, 4, about{
			title: "Conflicting, uncounted and unresolved devices", unit: units.Short,
			reads: "The 20 nodes with most. Conflicting: held under several names. Uncounted: without device-seconds, because admin access, pods of other nodes or shares are unknown. Unresolved: ids of device plugins without hardware.",
			empty: noAgent,
		}, []key{
			{label: "cluster", title: "Cluster"},
			{label: "instance", title: "Node", links: []link{instanceNode()}},
		},
			column{title: "Conflicting", unit: units.Short, more: tinted(anyIs(warning)), expr: `topk(20, max by (cluster, instance) (dra_exporter_conflicting_devices{@exporters}))`},
			column{title: "Uncounted", unit: units.Short, more: tinted(anyIs(warning)), expr: `topk(20, sum by (cluster, instance) (max by (` + process + `, reason) (dra_exporter_uncounted_devices{@exporters})))`},
			column{title: "Unresolved", unit: units.Short, more: tinted(anyIs(warning)), expr: `topk(20, sum by (cluster, instance) (max by (` + process + `, form) (dra_exporter_unresolved_plugin_devices{@exporters})))`}),
		listing(24, 2, about{
			title: "Claims too large to be diagnosed", unit: units.Short,
			reads: "Claims and templates that exceed a limit (docs/security.md): their reason is undetermined.",
			empty: "none is too large, or " + noClusterRole, none: noneSeen,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "limit", title: "Limit"}},
			column{title: "Claims and templates", unit: units.Short, more: tinted(anyIs(warning)), expr: `sum by (cluster, limit) (dra_exporter_oversized_specs{@exporters}) > 0`}),
		notReloaded(),
	}
}

// correctedDetails are what the exporters had to leave out or to correct.
func correctedDetails() []panel {
	return []panel{
		bars(8, about{
			title: "Split of shared devices by process", unit: units.Short,
			reads: "ok, or why agents do not split shared devices; then values have attribution=\"shared\" (docs/sharing.md).",
			empty: noAgent,
		}, at(`sum by (cluster, reason) (max by (`+process+`, reason) (dra_exporter_process_attribution{@exporters})) > 0`).LegendFormat("{{reason}} {{cluster}}")),
		listing(8, 4, about{
			title: "Resets of hardware counters", unit: units.Short,
			reads: "A GPU was reset, a driver reloaded, or another source took over. The exporter's own counters do not fall.",
			empty: "there was none, or " + noAgent, none: noneSeen,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "instance", title: "Node", links: []link{instanceNode()}}},
			column{title: "Resets in the range", unit: units.Short, expr: `topk(20, round(sum by (cluster, instance) (increase(dra_exporter_hardware_resets_total{@exporters}[$__range]))) > 0)`}),
		listing(8, 4, about{
			title: "Durations with contradicting clocks", unit: units.Short,
			reads: "Clocks contradict each other; most such phases have no duration. If many: check NTP.",
			empty: "there is none, or " + noClusterRole, none: noneSeen,
		}, []key{{label: "cluster", title: "Cluster"}, {label: "phase", title: "Phase"}},
			column{title: "Contradictions in the range", unit: units.Short, more: tinted(anyIs(warning)), expr: `round(sum by (cluster, phase) (increase(dra_exporter_clock_anomalies_total{@exporters}[$__range]))) > 0`}),
	}
}

// gpuPanels are how agents have access to NVIDIA's GPUs, and whether they keep them open.
func gpuPanels() []panel {
	return []panel{
		bars(12, about{
			title: "Access to NVIDIA's GPUs", unit: units.Short,
			reads: "By mode, and why: set, or found by the chart (docs/access.md).",
			empty: "no agent knows it (--access.mode), or " + noAgent,
		}, at(`count by (cluster, mode, reason) (group by (`+process+`, mode, reason) (dra_exporter_access_mode_info{@exporters}))`).LegendFormat("{{mode}}, {{reason}} {{cluster}}")),
		bars(12, about{
			title: "GPUs kept open", unit: units.Short,
			reads: "Or released for an upgrade, a reset or passthrough (docs/runbooks/DRAExporterReleased.md).",
			empty: "no agent reads NVIDIA's GPUs, or " + noAgent,
		}, at(`sum by (cluster, state, reason) (max by (`+process+`, state, reason) (dra_exporter_device_access{@exporters})) > 0`).LegendFormat("{{state}}, {{reason}} {{cluster}}")),
	}
}

// notReloaded has a row for each exporter whose price list is older than its
// file.
func notReloaded() panel {
	failed := `max by (cluster, instance) (dra_exporter_config_last_reload_successful{@exporters}) == 0`
	return listing(24, 2, about{
		title: "Price lists that were not reloaded", unit: units.Short,
		reads: "Rejected at SIGHUP (--cost.prices); agents keep the previous list. Their logs have the error.",
		empty: "all were read, there is no price list, or " + noAgent, none: noneSeen,
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "instance", title: "Node", links: []link{instanceNode()}},
	},
		column{title: "State", more: append(tinted(steps(critical)), property("mappings", words(named{"0", "not reloaded", critical}))), expr: failed},
		column{title: "Last successful read", unit: units.DateTimeFromNow, expr: `1000 * max by (cluster, instance) (dra_exporter_config_last_reload_success_timestamp_seconds{@exporters}) and on (cluster, instance) (` + failed + `)`},
	)
}

func costPanels() []panel {
	return []panel{
		exporterCosts(),
		bars(24, about{
			title: "Running versions", unit: units.Short,
			reads: "Several for longer than a rollout takes: it is stuck.",
			empty: noExporter,
		}, at(`count by (cluster, version) (group by (`+process+`, version) (dra_exporter_build_info{@exporters}))`).LegendFormat("{{version}} {{cluster}}")),
	}
}

func costDetails() []panel {
	return []panel{
		timeline(12, about{
			title: "Memory of the exporters", unit: units.BytesIEC,
			reads: "Resident memory. If the maximum keeps growing, there is a leak, or more claims.",
			empty: "processes do not report it, or " + noExporter,
		},
			over(`max by (cluster) (process_resident_memory_bytes{@exporters})`, "greatest {{cluster}}"),
			over(`avg by (cluster) (process_resident_memory_bytes{@exporters})`, "mean {{cluster}}")),
		timeline(12, about{
			title: "Scrape duration", unit: units.Seconds,
			reads: "By Prometheus. Near the timeout (10 s in the shipped monitors), scrapes will fail.",
			empty: "no target of this job and node",
		},
			over(`max by (cluster) (scrape_duration_seconds{@exporters})`, "longest {{cluster}}"),
			over(`avg by (cluster) (scrape_duration_seconds{@exporters})`, "mean {{cluster}}")),
		timeline(12, about{
			title: "Duration of a step", unit: units.Seconds,
			reads: "Computing a new page. In the node role, keep it far below the sampling interval.",
			empty: noExporter,
		},
			over(`max by (cluster) (rate(dra_exporter_step_seconds_total{@exporters}[$__rate_interval]) / (rate(dra_exporter_steps_total{@exporters}[$__rate_interval]) > 0))`, "slowest {{cluster}}"),
			over(`sum by (cluster) (rate(dra_exporter_step_seconds_total{@exporters}[$__rate_interval])) / (sum by (cluster) (rate(dra_exporter_steps_total{@exporters}[$__rate_interval])) > 0)`, "mean {{cluster}}")),
		timeline(12, about{
			title: "Samples per scrape of all exporters", unit: units.Short,
			reads: "Of all chosen exporters; docs/benchmarks.md has expected numbers.",
			empty: "no target of this job and node",
		}, over(`sum by (cluster) (scrape_samples_scraped{@exporters})`, "samples {{cluster}}")),
	}
}

// exporterCosts has a row for each of the exporters with most memory.
func exporterCosts() panel {
	memory := `topk(` + listed + `, max by (` + process + `) (process_resident_memory_bytes{@exporters}))`
	of := func(expr string) string { return expr + ` and on (` + process + `) ` + memory }
	return listing(24, 10, about{
		title: "Resource use of each exporter", unit: units.Short,
		reads: "The " + listed + " with most memory. CPU is in cores.",
		empty: noExporter,
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "job", title: "Job"},
		{label: "instance", title: "Node", links: []link{instanceNode()}},
	},
		column{title: "Memory", unit: units.BytesIEC, expr: memory},
		column{title: "Processor", unit: units.Short, expr: of(`max by (` + process + `) (rate(process_cpu_seconds_total{@exporters}[$__rate_interval]))`)},
		column{title: "Scrape", unit: units.Seconds, expr: of(`max by (` + process + `) (scrape_duration_seconds{@exporters})`)},
		column{title: "Samples", unit: units.Short, expr: of(`max by (` + process + `) (scrape_samples_scraped{@exporters})`)},
		column{title: "Age of the sample", unit: units.Seconds, more: tinted(steps(plain, step{60, warning}, step{120, critical})), expr: of(`max by (` + process + `) (time() - dra_exporter_sample_timestamp_seconds{@exporters})`)},
		column{title: "Started", unit: units.DateTimeFromNow, expr: `1000 * (` + of(`max by (`+process+`) (process_start_time_seconds{@exporters})`) + `)`},
	)
}
