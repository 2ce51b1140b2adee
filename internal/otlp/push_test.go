package otlp

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// The first push comes with the first snapshot, not before and not an interval
// later; the last one comes at the end, with what is newest.
func TestPushesFirstAndLast(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, func(s *setting) {
			s.Settings.Interval = time.Hour
			s.World.newest.Store(nil)
		})
		until(t, "it has looked for a snapshot", func() bool { return p.looks.Load() > 2 })
		if counts := p.collector.Counts(); counts.Requests != 0 {
			t.Errorf("without a snapshot it pushed %d times", counts.Requests)
		}
		p.set(1)
		p.arrives(t, 1)
		until(t, "the first push is counted", func() bool { return p.exports(t, resultSuccess) == 1 })
		p.set(2)
		p.finish()
		pushed := p.collector.Metrics()
		if len(pushed) != 2 || !p.stands(t, pushed, 2) {
			t.Errorf("want two pushes, the last with the newest snapshot; got %d: %v", len(pushed), pushed)
		}
		if got := p.exports(t, resultSuccess); got != 2 {
			t.Errorf("%g exports were taken, want 2", got)
		}
		p.checkLogged(t, 0, 0)
	})
}

func TestPushesNothingWithoutASnapshot(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, func(s *setting) { s.World.newest.Store(nil) })
		until(t, "it has looked for a snapshot", func() bool { return p.looks.Load() > 1 })
		p.finish()
		if counts := p.collector.Counts(); counts.Requests != 0 {
			t.Errorf("it pushed %d times", counts.Requests)
		}
		if _, there := p.value(t, "dra_exporter_otlp_up", signalMetrics); there {
			t.Error("dra_exporter_otlp_up is there before the first export")
		}
	})
}

func TestSaysWhoPushes(t *testing.T) {
	p := startPushing(t, settings.ProtocolGRPC, func(s *setting) {
		s.Settings.Attributes = []attribute.KeyValue{attribute.String("k8s.cluster.name", "blue"), attribute.String("service.name", "mine")}
	})
	p.arrives(t, 1)
	pushed := p.collector.Metrics()[0]
	got := map[string]string{}
	for _, pair := range pushed.GetResource().GetAttributes() {
		got[pair.GetKey()] = pair.GetValue().GetStringValue()
	}
	for key, want := range map[string]string{
		"service.name": "mine", "service.version": "1.2.3", "service.instance.id": "node-a", "k8s.node.name": "node-a",
		"k8s.cluster.name": "blue", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.language": "go",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if agent := p.collector.Requests()[0].Header.Get("User-Agent"); !strings.HasPrefix(agent, "dra-exporter/1.2.3") {
		t.Errorf("the user agent is %q", agent)
	}
	if pushed.GetSchemaUrl() != "https://opentelemetry.io/schemas/1.44.0" {
		t.Errorf("the schema is %q", pushed.GetSchemaUrl())
	}
}

// A page with more points than a request may have is split.
func TestSplitsPushes(t *testing.T) {
	const devices = mostPointsPerRequest * 5 / 4 // two points each
	p := startPushing(t, settings.ProtocolHTTP, func(s *setting) {
		s.World = newPushSource(devices)
		s.World.set(1)
		s.Settings.Interval = time.Hour
		s.Settings.Metrics.Timeout = patience
	})
	until(t, "three requests are counted", func() bool { return p.exports(t, resultSuccess) == 3 })
	seen := map[string]bool{}
	for _, request := range p.collector.Metrics() {
		points := append(pointsOf(request, "dra_test_energy_joules_total"), pointsOf(request, "dra_test_power_watts")...)
		if len(points) > mostPointsPerRequest {
			t.Errorf("one request has %d points", len(points))
		}
		for _, point := range pointsOf(request, "dra_test_energy_joules_total") {
			seen[point.GetAttributes()[0].GetValue().GetStringValue()] = true
		}
	}
	if len(seen) != devices {
		t.Errorf("%d of %d devices arrived", len(seen), devices)
	}
	sent, _ := p.value(t, "dra_exporter_otlp_sent_total", signalMetrics)
	total := 0
	for _, request := range p.collector.Metrics() {
		total += allPoints(request)
	}
	if int(sent) != total || total <= 2*devices {
		t.Errorf("%g points are counted, %d arrived", sent, total)
	}
}

func allPoints(request *metricspb.ResourceMetrics) int {
	points := 0
	for _, scope := range request.GetScopeMetrics() {
		for _, m := range scope.GetMetrics() {
			points += len(m.GetGauge().GetDataPoints()) + len(m.GetSum().GetDataPoints()) + len(m.GetHistogram().GetDataPoints()) +
				len(m.GetExponentialHistogram().GetDataPoints()) + len(m.GetSummary().GetDataPoints())
		}
	}
	return points
}

// The pushed metrics about pushing are those of the registry.
func TestPushesItsOwnMetrics(t *testing.T) {
	p := startPushing(t, settings.ProtocolGRPC, nil)
	until(t, "a few pushes were taken", func() bool { return p.exports(t, resultSuccess) > 3 })
	p.finish()
	pushed := p.collector.Metrics()
	points := pointsOf(pushed[len(pushed)-1], "dra_exporter_otlp_exports_total")
	if len(points) != 3 {
		t.Fatalf("dra_exporter_otlp_exports_total has %d series, want one a result: %v", len(points), points)
	}
	// The push itself is not over when it is put together.
	var most float64
	for _, point := range points {
		most = max(most, point.GetAsDouble())
	}
	if want := p.exports(t, resultSuccess) - 1; most != want {
		t.Errorf("the last push says %g exports, want %g", most, want)
	}
	for _, name := range []string{"dra_exporter_otlp_queued_traces", "dra_exporter_otlp_dropped_traces_total"} {
		if _, there := p.value(t, name); there {
			t.Errorf("%s is there, and no traces are pushed", name)
		}
	}
}

func TestPushesTraces(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, func(s *setting) {
			s.Settings.Traces = s.Settings.Metrics
			s.Settings.Traces.Timeout = patience
		})
		one := lifecycle(1)
		if !p.Sampled(one.ID()) {
			t.Error("a trace is not sampled, and all are")
		}
		p.Trace([]trace.Trace{one})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if !p.collector.Await(ctx, func(c *otelcollector.Collector) bool { return len(c.Spans()) > 0 }) {
			t.Fatal("no spans arrived")
		}
		until(t, "the spans are counted", func() bool {
			sent, _ := p.value(t, "dra_exporter_otlp_sent_total", signalTraces)
			return int(sent) == len(one.Spans)
		})
		p.arrives(t, 1)
		// One offered just before the end is exported by the last flush.
		taken := len(p.collector.Spans())
		p.Trace([]trace.Trace{lifecycle(2)})
		p.finish()
		if got := len(p.collector.Spans()); got != taken+1 {
			t.Errorf("the last flush brought %d requests of spans, want 1", got-taken)
		}
		for _, reason := range []string{reasonQueueFull, reasonRefused, reasonShutdown} {
			if dropped, there := p.value(t, "dra_exporter_otlp_dropped_traces_total", reason); !there || dropped != 0 {
				t.Errorf("%g traces are dropped for %s, there: %t", dropped, reason, there)
			}
		}
	})
}

func TestTakesNoTracesWhereNoneArePushed(t *testing.T) {
	p := startPushing(t, settings.ProtocolGRPC, nil)
	one := lifecycle(1)
	p.Trace([]trace.Trace{one})
	if p.Sampled(one.ID()) {
		t.Error("a trace that goes nowhere is said to be sampled")
	}
	p.arrives(t, 1)
	if got := p.collector.Spans(); len(got) != 0 {
		t.Errorf("spans arrived: %v", got)
	}
}

func TestRefusesToPushNowhereOrNever(t *testing.T) {
	for _, settings := range []settings.Settings{{}, {Metrics: settings.SignalSettings{On: true, Protocol: settings.ProtocolGRPC, Endpoint: "127.0.0.1:1", Insecure: true}}} {
		if _, err := New(t.Context(), Options{Settings: settings, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("a pusher of %v was made", settings)
		}
	}
}

// OpenTelemetry's global handler writes to standard error, past the log.
func TestGlobalHandlerGetsNoErrors(t *testing.T) {
	handled := make(chan error, 100)
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { handled <- err }))
	defer otel.SetErrorHandler(before)
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, func(s *setting) { s.Settings.Interval = time.Millisecond })
		p.arrives(t, 1)
		p.collector.Stop()
		until(t, "pushes have failed", func() bool { return p.exports(t, resultFailure) > 1 })
		p.finish()
	})
	select {
	case err := <-handled:
		t.Errorf("it was called with %v", err)
	default:
	}
}
