package otlp

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
)

// variables are all that Load reads.
func variables() []string {
	names := []string{"OTEL_SDK_DISABLED", "OTEL_METRICS_EXPORTER", "OTEL_TRACES_EXPORTER", "OTEL_METRIC_EXPORT_INTERVAL",
		"OTEL_METRIC_EXPORT_TIMEOUT", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
		"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_EXPORT_TIMEOUT",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"}
	for _, name := range []string{"ENDPOINT", "PROTOCOL", "HEADERS", "COMPRESSION", "TIMEOUT", "INSECURE", "CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		for _, signal := range []string{"", "METRICS_", "TRACES_"} {
			names = append(names, "OTEL_EXPORTER_OTLP_"+signal+name)
		}
	}
	return names
}

// Whatever stands in a variable, Load ends, an error names a flag or a
// variable on one line, and the exporters accept what it accepts.
func FuzzLoad(f *testing.F) {
	for i := range variables() {
		f.Add("http://c:4318", i, "x")
	}
	for _, endpoint := range []string{"c:4317", "https://[::1]:4317/", "unix:///a b", "http://c/%2f%00", "::", "//c", "http://c:4317/x", "http://%41:1", "unix:///%zz"} {
		f.Add(endpoint, 0, "")
	}
	for i, value := range []string{"a=b", "a=%20,b=c", "=", "a=b,", "grpc", "1000", "1e3", "\xff=\xff", "-1"} {
		f.Add("http://c:4318", i, value) // each seed is run before the fuzzing begins
	}
	f.Fuzz(func(t *testing.T, endpoint string, which int, value string) {
		names := variables()
		name := names[uint(which)%uint(len(names))]
		if strings.Contains(name, "CERTIFICATE") || strings.Contains(name, "KEY") {
			value = strings.ReplaceAll(value, "/", "") // no files but those beside the test
		}
		s, err := settings.Load(settings.Flags{Endpoint: endpoint}, environment(name+"="+value))
		if err != nil {
			text := err.Error()
			if !strings.HasPrefix(text, "--otlp.endpoint") && !strings.HasPrefix(text, "OTEL_") || strings.ContainsAny(text, "\n\r") {
				t.Fatalf("%q", text)
			}
			return
		}
		for _, signal := range []settings.SignalSettings{s.Metrics, s.Traces} {
			if signal.On && (signal.Endpoint == "" || signal.Timeout <= 0 || signal.Insecure != (signal.TLS == nil) ||
				signal.Protocol == settings.ProtocolHTTP && !strings.HasPrefix(signal.Path, "/")) {
				t.Fatalf("%+v", signal)
			}
		}
		makeExporters(t, s)
	})
}

func makeExporters(t *testing.T, s settings.Settings) {
	if s.Metrics.On {
		exporter, err := newMetricExporter(s)
		if err != nil {
			t.Fatalf("%v: %v", s, err)
		}
		_ = exporter.Shutdown(t.Context())
	}
	if s.Traces.On {
		exporter, err := newSpanExporter(t.Context(), s)
		if err != nil {
			t.Fatalf("%v: %v", s, err)
		}
		_ = exporter.Shutdown(t.Context())
	}
}
