package otlp

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// patience is how long a test waits for what must happen.
const patience = 3 * time.Minute

func startCollector(t *testing.T, options otelcollector.Options) *otelcollector.Collector {
	t.Helper()
	collector, err := otelcollector.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { goleak.VerifyNone(t) })
	t.Cleanup(collector.Close)
	return collector
}

// load reads settings from flags and NAME=value pairs.
func load(t *testing.T, flags settings.Flags, pairs ...string) settings.Settings {
	t.Helper()
	loaded, err := settings.Load(flags, environment(pairs...))
	if err != nil {
		t.Fatalf("Load(%+v, %q): %v", flags, pairs, err)
	}
	return loaded
}

// environment is a lookup of NAME=value pairs.
func environment(pairs ...string) func(string) (string, bool) {
	values := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return func(name string) (string, bool) {
		value, found := values[name]
		return value, found
	}
}

// oneGauge is as little as can be exported.
func oneGauge() *metricdata.ResourceMetrics {
	return &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{
		Scope: instrumentation.Scope{Name: "test"},
		Metrics: []metricdata.Metrics{{
			Name: "answer", Data: metricdata.Gauge[float64]{DataPoints: []metricdata.DataPoint[float64]{{Value: 42}}},
		}},
	}}}
}

func oneSpan() []sdktrace.ReadOnlySpan {
	return tracetest.SpanStubs{{Name: "preparation"}}.Snapshots()
}

// export sends both signals once and ends the exporters, of which nothing must
// be left.
func export(t *testing.T, s settings.Settings) error {
	t.Helper()
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	metrics, err := newMetricExporter(s)
	if err != nil {
		t.Fatal(err)
	}
	spans, err := newSpanExporter(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.Join(metrics.Export(ctx, oneGauge()), spans.ExportSpans(ctx, oneSpan()))
	if err := errors.Join(metrics.Shutdown(ctx), spans.Shutdown(ctx)); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	goleak.VerifyNone(t, before)
	return failed
}

// bothRequests returns the two requests that the collector got: one of each signal.
func bothRequests(t *testing.T, collector *otelcollector.Collector) (metrics, traces otelcollector.Request) {
	t.Helper()
	requests := collector.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	slices.SortFunc(requests, func(a, b otelcollector.Request) int { return strings.Compare(a.Signal, b.Signal) })
	return requests[0], requests[1]
}

// Every setting reaches the wire, by both protocols.
func TestExports(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		for _, compression := range []string{"", "gzip"} {
			t.Run(protocol+" "+compression, func(t *testing.T) {
				collector := startCollector(t, otelcollector.Options{MetricsPath: "/in to/v1/metrics", TracesPath: "/own"})
				endpoint := "http://" + collector.Address(protocol)
				pairs := []string{"OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol, "OTEL_EXPORTER_OTLP_COMPRESSION=" + compression,
					"OTEL_EXPORTER_OTLP_HEADERS=X-Scope=all%20of%20it", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=x-scope=traces"}
				if protocol == "grpc" {
					pairs = append(pairs, "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint)
				} else {
					pairs = append(pairs, "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint+"/in%20to", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+endpoint+"/own")
				}
				settings := load(t, settings.Flags{}, pairs...)
				settings.Agent = "dra-exporter/1.2.3"
				if err := export(t, settings); err != nil {
					t.Fatal(err)
				}
				metrics, traces := bothRequests(t, collector)
				for scope, request := range map[string]otelcollector.Request{"all of it": metrics, "traces": traces} {
					if request.Protocol != protocol || request.Compression != compression || request.Header.Get("X-Scope") != scope ||
						!strings.HasPrefix(request.Header.Get("User-Agent"), "dra-exporter/1.2.3") {
						t.Errorf("%s: by %s, compressed by %q, %v", request.Signal, request.Protocol, request.Compression, request.Header)
					}
				}
			})
		}
	}
}

func TestExportsThroughSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	collector := startCollector(t, otelcollector.Options{Socket: path})
	if err := export(t, load(t, settings.Flags{Endpoint: "unix://" + path})); err != nil {
		t.Fatal(err)
	}
	bothRequests(t, collector)
}

// hostile is an environment that contradicts the settings, or that the SDK
// complains about, in every variable that its exporters read.
func hostile(t *testing.T) map[string]string {
	missing := filepath.Join(t.TempDir(), "missing.pem")
	variables := map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_METRIC_EXPORT_INTERVAL": "x"}
	for name, value := range map[string]string{
		"ENDPOINT": "https://127.0.0.1:1/env", "PROTOCOL": "http/json", "HEADERS": "x-env=1,x-hush",
		"COMPRESSION": "gzip", "TIMEOUT": "1", "CERTIFICATE": missing, "CLIENT_CERTIFICATE": missing, "CLIENT_KEY": missing,
		"INSECURE": "false", "TEMPORALITY_PREFERENCE": "delta", "DEFAULT_HISTOGRAM_AGGREGATION": "nonsense",
	} {
		for _, signal := range []string{"", "METRICS_", "TRACES_"} {
			variables["OTEL_EXPORTER_OTLP_"+signal+name] = value
		}
	}
	return variables
}

// What the settings say wins over what the SDK reads by itself.
func TestSettingsWinOverEnvironment(t *testing.T) {
	authority, err := otelcollector.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(bundle, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]map[string]string{
		"malformed":       {},
		"other bad words": {"ENDPOINT": "127.0.0.1:1", "PROTOCOL": "grpc", "TIMEOUT": "soon", "HEADERS": "x-env=%zz", "INSECURE": "true", "TEMPORALITY_PREFERENCE": "x"},
		"plaintext":       {"ENDPOINT": "http://127.0.0.1:1", "INSECURE": "true", "COMPRESSION": "none"},
		// With an authority the SDK uses TLS by gRPC, whatever the scheme,
		// and refuses an http:// endpoint by HTTP.
		"authority": {"CERTIFICATE": bundle},
	} {
		for _, protocol := range []string{"grpc", "http/protobuf"} {
			for _, secure := range []bool{false, true} {
				t.Run(strings.Join([]string{name, protocol, map[bool]string{true: "TLS"}[secure]}, " "), func(t *testing.T) {
					for variable, value := range hostile(t) {
						for suffix, changed := range change {
							if strings.HasSuffix(variable, suffix) && !strings.HasSuffix(variable, "CLIENT_CERTIFICATE") {
								value = changed
							}
						}
						t.Setenv(variable, value)
					}
					checkWins(t, authority, bundle, protocol, secure, name == "plaintext")
				})
			}
		}
	}
}

func checkWins(t *testing.T, authority *otelcollector.Authority, bundle, protocol string, secure, compressed bool) {
	var options otelcollector.Options
	scheme, pairs := "http", []string{"OTEL_EXPORTER_OTLP_HEADERS=x-ours=1", "OTEL_EXPORTER_OTLP_COMPRESSION=none"}
	if compressed {
		pairs[1] = "OTEL_EXPORTER_OTLP_COMPRESSION=gzip"
	}
	if secure {
		server, err := authority.Server()
		if err != nil {
			t.Fatal(err)
		}
		options.TLS, scheme = server, "https"
		pairs = append(pairs, "OTEL_EXPORTER_OTLP_CERTIFICATE="+bundle)
	}
	collector := startCollector(t, options)
	settings := load(t, settings.Flags{Endpoint: scheme + "://" + collector.Address(protocol), Protocol: protocol}, pairs...)
	if err := export(t, settings); err != nil {
		t.Fatal(err)
	}
	metrics, traces := bothRequests(t, collector)
	for _, request := range []otelcollector.Request{metrics, traces} {
		if request.Header.Get("X-Ours") != "1" || request.Header.Get("X-Env") != "" {
			t.Errorf("headers: %v", request.Header)
		}
		if (request.Compression == "gzip") != compressed {
			t.Errorf("compressed by %q", request.Compression)
		}
	}
	exporter, err := newMetricExporter(settings)
	if err != nil {
		t.Fatal(err)
	}
	defer exporter.Shutdown(t.Context())
	if got := exporter.Temporality(3); got != metricdata.CumulativeTemporality {
		t.Errorf("temporality %v", got)
	}
}

// The SDK logs nothing, neither about variables that it refuses nor secrets in
// them.
func TestSDKIsSilent(t *testing.T) {
	if os.Getenv("OTLP_TEST_SILENCE") != "" {
		settings := load(t, settings.Flags{Endpoint: "http://127.0.0.1:1"})
		for _, make := range []func() error{
			func() error { _, err := newMetricExporter(settings); return err },
			func() error { _, err := newSpanExporter(t.Context(), settings); return err },
		} {
			if err := make(); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), binary, "-test.run=^TestSDKIsSilent$")
	child.Env = []string{"OTLP_TEST_SILENCE=1"}
	for variable, value := range hostile(t) {
		child.Env = append(child.Env, variable+"="+value)
	}
	output, err := child.CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != "PASS" {
		t.Errorf("%v\n%s", err, output)
	}
}

// A retryable error is retried, after the delay that the collector asks for; if
// that is longer than the timeout the export ends immediately.
func TestRetries(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			collector := startCollector(t, otelcollector.Options{})
			settings := load(t, settings.Flags{Endpoint: "http://" + collector.Address(protocol), Protocol: protocol}, "OTEL_EXPORTER_OTLP_TIMEOUT=30000")
			exporter, err := newMetricExporter(settings)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = exporter.Shutdown(t.Context()) }()
			attempts := 0
			collector.Answer(func(otelcollector.Request) otelcollector.Answer {
				if attempts++; attempts == 1 {
					return otelcollector.Answer{Code: codes.Unavailable, RetryAfter: time.Second}
				}
				return otelcollector.Answer{}
			})
			if err := exporter.Export(t.Context(), oneGauge()); err != nil || attempts != 2 {
				t.Errorf("%d attempts: %v", attempts, err)
			}
			collector.Answer(otelcollector.Always(otelcollector.Answer{Code: codes.Unavailable, RetryAfter: time.Hour, Message: "later"}))
			before := collector.Counts().Requests
			err = exporter.Export(t.Context(), oneGauge())
			if err == nil || !strings.Contains(err.Error(), "later") || strings.Contains(err.Error(), "retry") || retryAfter(err) != time.Hour || collector.Counts().Requests != before+1 {
				t.Errorf("after %d attempts: %v, again after %v", collector.Counts().Requests-before, err, retryAfter(err))
			}
			// Spans are handed over again by who has them.
			spans, err := newSpanExporter(t.Context(), settings)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = spans.Shutdown(t.Context()) }()
			collector.Answer(otelcollector.Always(otelcollector.Answer{Code: codes.Unavailable}))
			before = collector.Counts().Requests
			if err := spans.ExportSpans(t.Context(), oneSpan()); err == nil || !retryable(err) || collector.Counts().Requests != before+1 {
				t.Errorf("after %d attempts with spans: %v", collector.Counts().Requests-before, err)
			}
			collector.Answer(otelcollector.Always(otelcollector.Answer{Code: codes.InvalidArgument, Message: "never"}))
			before = collector.Counts().Requests
			if err := exporter.Export(t.Context(), oneGauge()); err == nil || collector.Counts().Requests != before+1 {
				t.Errorf("after %d attempts: %v", collector.Counts().Requests-before, err)
			}
		})
	}
}

// A collector that is away when an export begins and back before its time is
// up gets the export; an export to one that stays away ends in its time.
func TestCollectorReturns(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			collector := startCollector(t, otelcollector.Options{})
			settings := load(t, settings.Flags{Endpoint: "http://" + collector.Address(protocol), Protocol: protocol}, "OTEL_EXPORTER_OTLP_TIMEOUT=1000")
			settings.Metrics.Timeout = patience
			collector.Stop()
			exporter, err := newMetricExporter(settings)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = exporter.Shutdown(t.Context()) }()
			done := make(chan error)
			go func() { done <- exporter.Export(t.Context(), oneGauge()) }()
			time.AfterFunc(500*time.Millisecond, func() { _ = collector.Restart() })
			if err := <-done; err != nil || len(collector.Requests()) != 1 {
				t.Errorf("%d requests: %v", len(collector.Requests()), err)
			}
			collector.Answer(otelcollector.Always(otelcollector.Answer{Hang: true}))
			defer collector.Release()
			spans, err := newSpanExporter(t.Context(), settings)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = spans.Shutdown(t.Context()) }()
			if err := spans.ExportSpans(t.Context(), oneSpan()); err == nil || !retryable(err) || !strings.Contains(err.Error(), "no answer within 1s") &&
				!strings.Contains(err.Error(), "code = Canceled") { // the server may be quicker to end it
				t.Errorf("a collector that hangs: %v", err)
			}
		})
	}
}
