package otlp

import (
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// naming spells the rows of a snapshot as OpenTelemetry metrics. It may
// remember from one call to the next, and is not safe for concurrent use.
type naming interface {
	// metrics returns the rows as gauges and sums with the time of the
	// snapshot. What it returns belongs to the caller, but for the attribute
	// sets, which are immutable.
	metrics(rows []metric.Row, at time.Time) []metricdata.Metrics
}
