package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// noPush is why panels about pushing are empty.
const noPush = "OTLP push is disabled, or " + noExporter

func pushDetails() []panel {
	return []panel{
		timeline(8, about{
			title: "Exports to the collector per second", unit: units.Short,
			reads: "One export is one request, with its retries. success: accepted; partial: the collector rejected some points; failure: not accepted; the next push replaces the metrics.",
			empty: noPush,
		}, over(`sum by (cluster, signal, result) (rate(dra_exporter_otlp_exports_total{@exporters}[$__rate_interval])) > 0`, "{{signal}} {{result}} {{cluster}}")),
		timeline(8, about{
			title: "Export duration (p95)", unit: units.Seconds,
			reads: "Of all chosen exporters, with retries. Durations near the timeout (10 s by default) mean that the collector is too slow.",
			empty: noPush,
		}, over(`histogram_quantile(0.95, sum by (cluster, signal, le) (rate(dra_exporter_otlp_export_duration_seconds_bucket{@exporters}[$__rate_interval]))) >= 0`, "{{signal}} {{cluster}}")),
		timeline(8, about{
			title: "Pushed per second, and queued", unit: units.Short,
			reads: "Data points and spans that the collector accepted, and traces that are queued in the cluster role. Traces are lost if their queue is full.",
			empty: noPush,
		},
			over(`sum by (cluster, signal) (rate(dra_exporter_otlp_sent_total{@exporters}[$__rate_interval]))`, "{{signal}} {{cluster}}"),
			over(`sum by (cluster) (dra_exporter_otlp_queued_traces{@exporters})`, "traces that wait {{cluster}}")),
	}
}

// pushes has a row for each exporter and signal that does not get through.
func pushes() panel {
	const signal = "cluster, instance, signal"
	failing := `max by (` + signal + `) (dra_exporter_otlp_up{@exporters}) == 0`
	return listing(24, 5, about{
		title: "Failed pushes to the OpenTelemetry collector", unit: units.Short,
		reads: "Exporters whose last push by OTLP failed, and traces that were discarded in the time range. The next push replaces metrics. The alert DRAExporterPushFailing fires after some minutes.",
		empty: "all pushes are accepted, or OTLP push is disabled, or " + noExporter, none: noneSeen,
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "instance", title: "Node", links: []link{instanceNode()}},
		{label: "signal", title: "Signal"},
	},
		column{title: "State", more: append(tinted(steps(critical)), property("mappings", words(named{"0", "refused", critical}))), expr: failing},
		column{title: "Last accepted push", unit: units.DateTimeFromNow, expr: `1000 * max by (` + signal + `) (dra_exporter_otlp_last_success_timestamp_seconds{@exporters}) and on (` + signal + `) (` + failing + `)`},
		column{title: "Traces lost in the range", unit: units.Short, more: tinted(anyIs(warning)), expr: `label_replace(round(sum by (cluster, instance) (increase(dra_exporter_otlp_dropped_traces_total{@exporters}[$__range]))) > 0, "signal", "traces", "instance", ".*")`},
	)
}
