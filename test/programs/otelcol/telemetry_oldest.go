//go:build oldest

package main

import "go.opentelemetry.io/collector/otelcol"

// addTelemetry does nothing: the oldest version (oldest.mod) has no choice of how
// the collector reports on itself.
func addTelemetry(*otelcol.Factories) {}
