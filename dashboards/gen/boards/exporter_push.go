package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// noPush is why panels about pushing are empty.
const noPush = "no OTLP push, or " + noExporter

func pushDetails() []panel {
	return []panel{
		timeline(8, about{
			title: "Exports to the collector per second", unit: units.Short,
			reads: "With retries. partial: the collector rejected some points; failure: not accepted. The next push replaces metrics.",
			empty: noPush,
		}, over(`sum by (cluster, signal, result) (rate(dra_exporter_otlp_exports_total{@exporters}[$__rate_interval])) > 0`, "{{signal}} {{result}} {{cluster}}")),
		timeline(8, about{
			title: "Export duration (p95)", unit: units.Seconds,
			reads: "With retries. Near the timeout (10 s by default), the collector is too slow.",
			empty: noPush,
		}, over(`histogram_quantile(0.95, sum by (cluster, signal, le) (rate(dra_exporter_otlp_export_duration_seconds_bucket{@exporters}[$__rate_interval]))) >= 0`, "{{signal}} {{cluster}}")),
		timeline(8, about{
			title: "Pushed per second, and queued", unit: units.Short,
			reads: "Accepted points and spans, and queued traces of the cluster role. If the queue is full, traces are lost.",
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
	return listing(24, 4, about{
		title: "Failed pushes to the OpenTelemetry collector", unit: units.Short,
		reads: "The next push replaces metrics; discarded traces are lost. The alert DRAExporterPushFailing fires after some minutes.",
		empty: "all are accepted, no OTLP push, or " + noExporter, none: noneSeen,
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
