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
// Reading, batches and spans are the OpenTelemetry SDK's. Metrics are encoded
// here, from label sets that are remembered, because the SDK's exporters take
// several times as long and cannot say that a series has ended; they are what
// tests hold ours to. gRPC and net/http carry both.
package otlp
