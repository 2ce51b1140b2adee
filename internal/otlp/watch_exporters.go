package otlp

import (
	"context"
	"errors"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// watchedMetrics exports metrics and keeps the books.
type watchedMetrics struct {
	sdkmetric.Exporter
	*watch
}

// Export exports, unless there is nothing to export, the round is over, or the
// collector asked to be left alone. It returns nil whatever happens: the SDK
// would tell a global handler of what has been counted and logged here.
func (w *watchedMetrics) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	points := dataPoints(metrics)
	if points == 0 || ctx.Err() != nil || !w.wanted() {
		return nil
	}
	began := w.clock()
	err := w.Exporter.Export(ctx, metrics)
	if !abandoned(ctx) {
		w.record(began, points, err)
	}
	return nil
}

// watchedSpans exports spans and keeps the books. Each export is a round of
// its own.
type watchedSpans struct {
	sdktrace.SpanExporter
	*watch
}

// ExportSpans exports, and returns what came of it to the tracer, which knows
// what to do then.
func (w *watchedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	w.begin()
	defer w.end()
	began := w.clock()
	err := w.SpanExporter.ExportSpans(ctx, spans)
	if !abandoned(ctx) {
		w.record(began, len(spans), err)
	}
	return err
}

// abandoned reports whether the export was cancelled by us, at the end: what
// became of it is unknown and says nothing about the collector.
func abandoned(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// dataPoints counts the data points of a request.
func dataPoints(metrics *metricdata.ResourceMetrics) int {
	points := 0
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			points += aggregated(m.Data)
		}
	}
	return points
}

// aggregated knows the kinds that a request has a message for, and no others.
func aggregated(data metricdata.Aggregation) int {
	switch data := data.(type) {
	case metricdata.Gauge[float64]:
		return len(data.DataPoints)
	case metricdata.Gauge[int64]:
		return len(data.DataPoints)
	case metricdata.Sum[float64]:
		return len(data.DataPoints)
	case metricdata.Sum[int64]:
		return len(data.DataPoints)
	case metricdata.Histogram[float64]:
		return len(data.DataPoints)
	case metricdata.ExponentialHistogram[float64]:
		return len(data.DataPoints)
	case metricdata.Summary:
		return len(data.DataPoints)
	}
	return 0
}
