package otlp

import (
	"cmp"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// pushing is a pusher that runs against a simulated collector.
type pushing struct {
	*Pusher
	*pushSource
	collector *otelcollector.Collector
	registry  *prometheus.Registry
	logged    *lines
	stop      context.CancelFunc
	ended     chan struct{}
}

// setting is what a test changes before the pusher starts.
type setting struct {
	Options
	Collector otelcollector.Options
	World     *pushSource
	Dead      bool   // the collector, at start
	Elsewhere string // where is pushed to instead of to the collector
}

// startPushing runs a pusher with short intervals until the test ends or stop
// is called. The snapshot's counters stand at 1.
func startPushing(t *testing.T, protocol string, adjust func(*setting)) *pushing {
	t.Helper()
	// Registered first, so that it looks when all else has been cleaned up.
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	registry, logged := prometheus.NewRegistry(), &lines{}
	s := setting{World: newPushSource(2), Options: Options{
		Settings: settings.Settings{
			Metrics: settings.SignalSettings{On: true, Protocol: protocol, Insecure: true, Timeout: 300 * time.Millisecond},
			Naming:  settings.NamingPrometheus, Interval: 20 * time.Millisecond, Timeout: patience,
			QueueSize: 10_000, BatchSize: 100, Delay: 10 * time.Millisecond,
		},
		Identity: Identity{Version: "1.2.3", Node: "node-a", Instance: "node-a"},
		Live:     registry, Registry: registry, Clock: clock.System(), Log: slog.New(slog.NewTextHandler(logged, nil)),
	}}
	s.World.set(1)
	if adjust != nil {
		adjust(&s)
	}
	collector, err := otelcollector.Start(s.Collector)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(collector.Close)
	if s.Dead {
		collector.Stop()
	}
	for _, signal := range []*settings.SignalSettings{&s.Settings.Metrics, &s.Settings.Traces} {
		signal.Endpoint = cmp.Or(s.Elsewhere, collector.Address(protocol))
	}
	if protocol == settings.ProtocolHTTP {
		s.Settings.Metrics.Path, s.Settings.Traces.Path = "/v1/metrics", "/v1/traces"
	}
	s.Snapshot = s.World.snapshot
	p := &pushing{pushSource: s.World, collector: collector, registry: registry, logged: logged, ended: make(chan struct{})}
	if p.Pusher, err = New(t.Context(), s.Options); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() { defer close(p.ended); p.Run(ctx) }()
	t.Cleanup(func() { stop(); <-p.ended })
	return p
}

// finish ends the pusher, waits until it has returned, and says how long that
// took.
func (p *pushing) finish() time.Duration {
	began := time.Now()
	p.stop()
	<-p.ended
	return time.Since(began)
}

// value is that of a metric about pushing; absent: false.
func (p *pushing) value(t *testing.T, name string, labels ...string) (float64, bool) {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if carries(m, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()), true
			}
		}
	}
	return 0, false
}

// carries reports whether the metric has these values of labels, in whatever
// order.
func carries(m *dto.Metric, values []string) bool {
	for _, value := range values {
		found := false
		for _, pair := range m.GetLabel() {
			found = found || pair.GetValue() == value
		}
		if !found {
			return false
		}
	}
	return true
}

// exports is how many exports of metrics ended so.
func (p *pushing) exports(t *testing.T, result string) float64 {
	t.Helper()
	value, there := p.value(t, "dra_exporter_otlp_exports_total", signalMetrics, result)
	if !there {
		t.Fatalf("no counter of exports of metrics with the result %q", result)
	}
	return value
}

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// arrives waits until the collector has accepted a push in which the counters
// stand at this value.
func (p *pushing) arrives(t *testing.T, value float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !p.collector.Await(ctx, func(c *otelcollector.Collector) bool { return p.stands(t, c.Metrics(), value) }) {
		t.Fatalf("no push arrived with the counters at %g", value)
	}
}

// stands reports whether the newest counters among these stand at the value;
// whatever their value, their start and time must be those of the page.
func (p *pushing) stands(t *testing.T, pushed []*metricspb.ResourceMetrics, value float64) bool {
	t.Helper()
	for i := len(pushed) - 1; i >= 0; i-- {
		points := pointsOf(pushed[i], "dra_test_energy_joules_total")
		for _, point := range points {
			at := p.start.Add(time.Duration(point.GetAsDouble()) * time.Second)
			if point.GetStartTimeUnixNano() != uint64(p.start.UnixNano()) || point.GetTimeUnixNano() != uint64(at.UnixNano()) {
				t.Errorf("a counter at %g has the start %d and the time %d", point.GetAsDouble(), point.GetStartTimeUnixNano(), point.GetTimeUnixNano())
			}
		}
		if len(points) > 0 {
			return points[0].GetAsDouble() == value
		}
	}
	return false
}

// pointsOf are the points of the sum or gauge of that name.
func pointsOf(pushed *metricspb.ResourceMetrics, name string) []*metricspb.NumberDataPoint {
	var points []*metricspb.NumberDataPoint
	for _, scope := range pushed.GetScopeMetrics() {
		for _, m := range scope.GetMetrics() {
			if m.GetName() == name {
				points = append(append(points, m.GetSum().GetDataPoints()...), m.GetGauge().GetDataPoints()...)
			}
		}
	}
	return points
}
