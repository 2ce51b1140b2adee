// Package otlp pushes what the exporter knows to an OpenTelemetry collector:
// the rows of the newest snapshot and the live metrics as metrics, by the
// names of Prometheus or by semantic conventions, and the ways of claims from
// waiting to running as traces.
//
//	snapshot rows ─▶ naming ─┐
//	registry ────────────────┴▶ producer ─▶ periodic reader ─▶ watched exporter ─▶ gRPC, HTTP
//	trace.Trace ─▶ queue ─▶ spans ──────────────────────────▶ watched exporter ─▶ gRPC, HTTP
//
// Rows are values at a moment and totals since one: a push that is lost is made
// up for by the next. Traces are pushed once; a bounded queue keeps them while
// no collector answers, and what does not fit is counted.
//
// The protocol, its retries and its encodings are those of the OpenTelemetry
// SDK (go.opentelemetry.io/otel/exporters/otlp).
package otlp
