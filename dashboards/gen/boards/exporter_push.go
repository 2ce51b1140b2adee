package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// noPush is why panels about pushing are empty.
const noPush = "nothing is pushed by OTLP, or " + noExporter

func pushPanels() []panel {
	return []panel{
		pushes(),
		timeline(8, about{
			title: "Exports to the collector per second", unit: units.Short,
			reads: "One export is one request, with its retries. success was taken; of partial the collector rejected some points; failure was not taken, and metrics are made up for by the next.",
			empty: noPush,
		}, over(`sum by (cluster, signal, result) (rate(dra_exporter_otlp_exports_total{@exporters}[$__rate_interval])) > 0`, "{{signal}} {{result}} {{cluster}}")),
		sparse(timeline(8, about{
			title: "How long exports take (p95)", unit: units.Seconds,
			reads: "Of all chosen exporters, retries included. What comes near the timeout (10 s unless told otherwise) is a collector that is too slow.",
			empty: noPush,
		}, over(`histogram_quantile(0.95, sum by (cluster, signal, le) (rate(dra_exporter_otlp_export_duration_seconds_bucket{@exporters}[$__rate_interval]))) >= 0`, "{{signal}} {{cluster}}"))),
		timeline(8, about{
			title: "What is pushed per second, and waits", unit: units.Short,
			reads: "Data points and spans that the collector took, and traces that wait in the cluster role. Traces that pile up are lost when their queue is full.",
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
		title: "What does the OpenTelemetry collector not take?", unit: units.Short,
		reads: "Exporters whose last push by OTLP failed, and traces that were never pushed in the chosen time. Metrics are made up for by the next push. The alert DRAExporterPushFailing fires after some minutes.",
		empty: "all is taken, or nothing is pushed, or " + noExporter, none: noneSeen,
	}, []key{
		{label: "cluster", title: "Cluster"},
		{label: "instance", title: "Node", links: []link{instanceNode()}},
		{label: "signal", title: "Signal"},
	},
		column{title: "State", more: append(tinted(steps(critical)), property("mappings", words(named{"0", "refused", critical}))), expr: failing},
		column{title: "Last push that was taken", unit: units.DateTimeFromNow, expr: `1000 * max by (` + signal + `) (dra_exporter_otlp_last_success_timestamp_seconds{@exporters}) and on (` + signal + `) (` + failing + `)`},
		column{title: "Traces lost", unit: units.Short, more: tinted(anyIs(warning)), expr: `label_replace(round(sum by (cluster, instance) (increase(dra_exporter_otlp_dropped_traces_total{@exporters}[$__range]))) > 0, "signal", "traces", "instance", ".*")`},
	)
}
