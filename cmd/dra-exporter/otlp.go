package main

import (
	"fmt"
	"os"

	"github.com/dra-exporter/dra-exporter/internal/otlp"
)

// addPushFlags adds what is most often set of pushing by OTLP; the standard
// OTEL_* variables say the rest.
func addPushFlags(command flagSet) *otlp.Flags {
	f := &otlp.Flags{}
	command.Flag("otlp.endpoint", "Push to this OpenTelemetry collector as well, such as http://collector:4317. Also by OTEL_EXPORTER_OTLP_ENDPOINT; see docs/opentelemetry.md.").PlaceHolder("URL").StringVar(&f.Endpoint)
	command.Flag("otlp.protocol", "Protocol of the push. Without it, OTEL_EXPORTER_OTLP_PROTOCOL, else grpc at port 4317 and http/protobuf at others.").PlaceHolder("grpc|http/protobuf").StringVar(&f.Protocol)
	command.Flag("otlp.interval", "Time between two pushes of metrics. Without it, OTEL_METRIC_EXPORT_INTERVAL, else 60s.").PlaceHolder("60s").DurationVar(&f.Interval)
	command.Flag("otlp.naming", "Names of what is pushed: prometheus, as on the page, or semconv, OpenTelemetry's semantic conventions.").PlaceHolder("prometheus|semconv").StringVar(&f.Naming)
	command.Flag("otlp.cluster-name", "Name of this cluster, pushed as the resource attribute k8s.cluster.name.").PlaceHolder("NAME").StringVar(&f.ClusterName)
	return f
}

// pushSettings reads flags and environment; the error names what is wrong.
func pushSettings(flags *otlp.Flags) (otlp.Settings, error) {
	settings, err := otlp.Load(*flags, os.LookupEnv)
	if err != nil {
		return otlp.Settings{}, fmt.Errorf("prepare to push by OTLP: %w", err)
	}
	return settings, nil
}
