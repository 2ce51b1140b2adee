package otlp

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/otlp/naming"
)

func snapshotTime() time.Time { return time.Date(2026, 11, 20, 10, 0, 0, 250_000_000, time.UTC) }

// produced is what one push of the rows and of the live metrics has.
func produced(t testing.TB, options Options) []metricdata.Metrics {
	t.Helper()
	scopes, err := newProducer(naming.NewPrometheus(), options).Produce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(scopes) != 1 || scopes[0].Scope.Name != scopeName {
		t.Fatalf("scopes %v, want ours alone", scopes)
	}
	return scopes[0].Metrics
}

func still(rows []metric.Row) func() ([]metric.Row, *model.Node, time.Time) {
	return func() ([]metric.Row, *model.Node, time.Time) { return rows, nil, snapshotTime() }
}

func stillClock() clock.Instant {
	return clock.Instant{Wall: snapshotTime().Add(time.Second), Elapsed: time.Hour}
}

func TestRowsUnderTheirOwnNames(t *testing.T) {
	var (
		power  = &metric.Family{Name: "dra_device_power_watts", Help: "Power drawn", Unit: "watts"}
		busy   = &metric.Family{Name: "dra_claim_busy_seconds_total", Help: "Busy", Unit: "seconds", Type: metric.Counter}
		energy = &metric.Family{Name: "dra_device_energy_joules_total", Help: "Energy", Unit: "joules", Type: metric.Counter}
		held   = &metric.Family{Name: "dra_claim_held", Help: "1 while held"}
		replay = &metric.Family{Name: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Help: "Replays", Type: metric.Counter}
	)
	first := metric.NewLabels([]string{"uuid", "node"}, "GPU-1", "node-a")
	second := metric.NewLabels([]string{"uuid", "node", "pool"}, "GPU-2", "node-a", "")
	start := snapshotTime().Add(-time.Hour)
	got := produced(t, Options{Clock: stillClock, Snapshot: still([]metric.Row{
		{Family: power, Labels: first, Value: 312.5}, {Family: power, Labels: second, Value: math.Inf(1)},
		{Family: busy, Labels: first, Value: 17.25, Start: start},
		{Family: energy, Labels: second, Value: 1e9},
		{Family: held, Labels: metric.NewLabels(nil), Value: 1},
		{Family: replay, Labels: first, Value: 3},
	})})
	one := attribute.NewSet(attribute.String("node", "node-a"), attribute.String("uuid", "GPU-1"))
	two := attribute.NewSet(attribute.String("node", "node-a"), attribute.String("uuid", "GPU-2"))
	at := snapshotTime()
	total := func(monotonic bool, points ...metricdata.DataPoint[float64]) metricdata.Sum[float64] {
		return metricdata.Sum[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality, IsMonotonic: monotonic}
	}
	metricdatatest.AssertEqual(t, metricdata.ScopeMetrics{Metrics: []metricdata.Metrics{
		{Name: "dra_device_power_watts", Description: "Power drawn", Unit: "W", Data: metricdata.Gauge[float64]{
			DataPoints: []metricdata.DataPoint[float64]{{Attributes: one, Time: at, Value: 312.5}, {Attributes: two, Time: at, Value: math.Inf(1)}}}},
		{Name: "dra_claim_busy_seconds_total", Description: "Busy", Unit: "s", Data: total(true,
			metricdata.DataPoint[float64]{Attributes: one, StartTime: start, Time: at, Value: 17.25})},
		{Name: "dra_device_energy_joules_total", Description: "Energy", Unit: "J", Data: total(true,
			metricdata.DataPoint[float64]{Attributes: two, Time: at, Value: 1e9})},
		{Name: "dra_claim_held", Description: "1 while held", Data: metricdata.Gauge[float64]{
			DataPoints: []metricdata.DataPoint[float64]{{Time: at, Value: 1}}}},
		{Name: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Description: "Replays", Data: total(false,
			metricdata.DataPoint[float64]{Attributes: one, Time: at, Value: 3})},
	}}, metricdata.ScopeMetrics{Metrics: got})
}

func TestNothingBeforeTheFirstSnapshot(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "process_open_fds", Help: "Open"}))
	scopes, err := newProducer(naming.NewPrometheus(), Options{
		Snapshot: func() ([]metric.Row, *model.Node, time.Time) { return nil, nil, time.Time{} }, Live: registry, Clock: stillClock,
	}).Produce(t.Context())
	if scopes != nil || err != nil {
		t.Errorf("produced %v, %v before the first snapshot", scopes, err)
	}
}

// TestGathererThatFails: what it has gathered is pushed, and the failure is logged
// when it begins, not at every push.
func TestGathererThatFails(t *testing.T) {
	var (
		text   bytes.Buffer
		broken error
		family = &dto.MetricFamily{Name: new("go_goroutines"), Type: dto.MetricType_GAUGE.Enum(),
			Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: new(7.0)}}}}
	)
	live := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return []*dto.MetricFamily{family}, broken })
	producer := newProducer(naming.NewPrometheus(), Options{
		Snapshot: still(nil), Live: live, Clock: stillClock, Log: slog.New(slog.NewTextHandler(&text, nil)),
	})
	for i, lines := range []int{0, 1, 1, 1, 2} {
		broken = nil
		if i == 1 || i == 2 || i == 4 {
			broken = errors.New("no procfs")
		}
		scopes, err := producer.Produce(t.Context())
		if err != nil || len(scopes) != 1 || len(scopes[0].Metrics) != 1 || scopes[0].Metrics[0].Name != "go_goroutines" {
			t.Fatalf("push %d: %v, %v", i, scopes, err)
		}
		if point := scopes[0].Metrics[0].Data.(metricdata.Gauge[float64]).DataPoints[0]; point.Value != 7 || !point.Time.Equal(stillClock().Wall) {
			t.Errorf("push %d: %+v, want the time of the push and not of the snapshot", i, point)
		}
		if got := strings.Count(text.String(), "no procfs"); got != lines {
			t.Errorf("push %d: logged %d times, want %d\n%s", i, got, lines, text.String())
		}
	}
}
