package otelcol

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

// TestGoneInPrometheus: a histogram that a push no longer has, has no value in
// a real Prometheus from then on, neither its count nor its sum nor a bucket,
// although Prometheus looks back for five minutes. This is so while snapshots
// hang, too, which are then older than the histogram's last value.
func TestGoneInPrometheus(t *testing.T) {
	t.Parallel()
	server := startPrometheus(t)
	for _, test := range []struct {
		name, aggregation string
		series            int // of one histogram
		hangs             bool
	}{
		{"classic", "explicit_bucket_histogram", 5, false},
		{"classic-hanging", "explicit_bucket_histogram", 5, true},
		{"native", "base2_exponential_bucket_histogram", 1, false},
		{"native-hanging", "base2_exponential_bucket_histogram", 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			histogram := prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: "test_duration_seconds", Help: "How long", Buckets: []float64{0.5, 2}, NativeHistogramBucketFactor: 1.1,
			}, []string{"class"})
			histogram.WithLabelValues("stays").Observe(1)
			histogram.WithLabelValues("goes").Observe(1)
			now := clock.System()
			first := now().Wall
			runPusher(t, otlp.Options{
				Identity: otlp.Identity{Instance: test.name}, Clock: now, Live: registered(histogram),
				Snapshot: func() ([]metric.Row, *model.Node, time.Time) {
					if test.hangs {
						return nil, nil, first
					}
					return nil, nil, now().Wall
				},
			}, server, test.aggregation)
			series := func(class string) string {
				return fmt.Sprintf(`count({__name__=~"test_duration_seconds.*", instance=%q, class=%q})`, test.name, class)
			}
			eventually(t, "the histogram", func() error {
				return hasSeries(server, fmt.Sprintf("%s == %d", series("goes"), test.series))
			})
			histogram.DeleteLabelValues("goes")
			eventually(t, "it to be gone", func() error { return hasSeries(server, "absent("+series("goes")+")") })
			if err := hasSeries(server, fmt.Sprintf("%s == %d", series("stays"), test.series)); err != nil {
				t.Errorf("the other one is gone as well: %v", err)
			}
		})
	}
}

// startPrometheus runs one that receives OTLP, including late samples.
func startPrometheus(t *testing.T) (url string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(config, []byte("storage: {tsdb: {out_of_order_time_window: 10m}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := porttest.OneAddress(t)
	start(t, program("prometheus/prometheus"), "http://"+server+"/-/ready", nil, "--config.file="+config, "--web.enable-otlp-receiver",
		"--storage.tsdb.path="+filepath.Join(t.TempDir(), "data"), "--web.listen-address="+server)
	return "http://" + server
}

func registered(collectors ...prometheus.Collector) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	return registry
}

// runPusher pushes to a Prometheus each second until the test ends.
func runPusher(t *testing.T, options otlp.Options, server, aggregation string) {
	t.Helper()
	variables := map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION": aggregation}
	settings, err := settings.Load(settings.Flags{Endpoint: server + "/api/v1/otlp", Interval: time.Second},
		func(name string) (string, bool) { value, found := variables[name]; return value, found })
	if err != nil {
		t.Fatal(err)
	}
	options.Settings, options.Registry, options.Log = settings, prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	pusher, err := otlp.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { pusher.Run(ctx) })
	t.Cleanup(func() {
		end()
		running.Wait()
	})
}
