// Package otlp pushes metrics and traces to an OpenTelemetry collector: the rows
// of the newest snapshot and the live metrics, under the names of the scrape or
// by semantic conventions, and the progress of claims from pending to running as
// traces.
//
//	rows, model ─▶ naming ─┐
//	registry ──────────────┴▶ producer ─▶ periodic reader ─▶ recorder ─▶ encoder ─▶ gRPC, HTTP
//	trace.Trace ─▶ queue ─▶ spans ─────────────────────────▶ recorder ────────────▶ gRPC, HTTP
//
// Rows are values at a time and totals since their start: the next push makes up
// for one that is lost. Traces are pushed once; a bounded queue keeps them while
// no collector responds, and traces that do not fit are counted.
//
// Reading, batching and spans are the OpenTelemetry SDK's. Metrics are encoded
// here, with cached label sets, because the SDK's exporters take several times as
// long and cannot mark the end of a series; tests compare the result with theirs.
package otlp

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
)

// Options configure what is pushed, and how.
type Options struct {
	Settings settings.Settings
	Identity Identity
	// Snapshot returns the rows of the newest snapshot, the model that they are of,
	// and its time; the zero time if there is none yet. The cluster role has no such
	// model: nil. It is called at each push, and a few times a second before the
	// first. It must not block. Its results are only read.
	Snapshot func() (rows []metric.Row, node *model.Node, at time.Time)
	// Live are the metrics that are in no snapshot. They are pushed with the rows.
	Live prometheus.Gatherer
	// Registry registers the metrics about pushing.
	Registry prometheus.Registerer
	Clock    clock.Clock
	Log      *slog.Logger
}

// Identity describes the exporter as a resource.
type Identity struct {
	Version string // of the exporter
	Node    string // empty: on no node in particular
	// Instance is what the scrape's label instance would be: the name of the
	// node, or "cluster".
	Instance string
}

func (i Identity) version() string { return cmp.Or(i.Version, "unknown") }
