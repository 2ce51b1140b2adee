//go:build !oldest

package main

import (
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// addTelemetry adds how the collector reports on itself.
func addTelemetry(f *otelcol.Factories) { f.Telemetry = otelconftelemetry.NewFactory() }
