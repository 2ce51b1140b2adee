package otlp

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// timesAt are those of a push: live metrics are of after the snapshot.
func timesAt(at time.Time) pushTimes {
	return pushTimes{rows: at, live: at.Add(time.Second / 2), elapsed: time.Duration(at.UnixNano())}
}

// book is what a backend knows after a push of a snapshot of some time: each
// series, and whether the push gives it a value or calls it off. Histograms are
// live metrics.
func lastValues(t *testing.T, metrics []metricdata.Metrics, at time.Time) map[string]bool {
	t.Helper()
	series := map[string]bool{}
	note := func(name string, set attribute.Set, value float64, time, at time.Time) {
		key := name + "{" + set.Encoded(attribute.DefaultEncoder()) + "}"
		if _, twice := series[key]; twice {
			t.Errorf("%s is there twice", key)
		}
		series[key] = math.Float64bits(value) != staleNaN
		if !time.Equal(at) {
			t.Errorf("%s is of %v, want %v", key, time, at)
		}
	}
	for _, m := range metrics {
		switch data := m.Data.(type) {
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				note(m.Name, p.Attributes, p.Value, p.Time, at)
			}
		case metricdata.Sum[float64]:
			if !data.IsMonotonic || data.Temporality != metricdata.CumulativeTemporality {
				t.Errorf("%s is no counter any more", m.Name)
			}
			for _, p := range data.DataPoints {
				note(m.Name, p.Attributes, p.Value, p.Time, at)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				note(m.Name, p.Attributes, p.Sum, p.Time, timesAt(at).live)
				if len(p.Bounds) != 2 || len(p.BucketCounts) != 3 {
					t.Errorf("%s has %d bounds and %d buckets", m.Name, len(p.Bounds), len(p.BucketCounts))
				}
			}
		case metricdata.ExponentialHistogram[float64]:
			for _, p := range data.DataPoints {
				note(m.Name, p.Attributes, p.Sum, p.Time, timesAt(at).live)
			}
		}
	}
	return series
}

// somePush has some of ten series of each of four kinds, and some of those
// kinds not at all. Histograms are live.
func somePush(random *rand.Rand, at time.Time) (rows, live []metricdata.Metrics) {
	var sets []attribute.Set
	for i := range 10 {
		if random.IntN(4) > 0 {
			sets = append(sets, attribute.NewSet(attribute.Int("i", i)))
		}
	}
	var (
		gauge       metricdata.Gauge[float64]
		sum         = metricdata.Sum[float64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
		histogram   metricdata.Histogram[float64]
		exponential metricdata.ExponentialHistogram[float64]
	)
	for _, set := range sets {
		gauge.DataPoints = append(gauge.DataPoints, metricdata.DataPoint[float64]{Attributes: set, Time: at, Value: math.NaN()})
		sum.DataPoints = append(sum.DataPoints, metricdata.DataPoint[float64]{Attributes: set, Time: at, Value: 1})
		histogram.DataPoints = append(histogram.DataPoints, metricdata.HistogramDataPoint[float64]{
			Attributes: set, Time: timesAt(at).live, Count: 1, Bounds: []float64{1, 2}, BucketCounts: []uint64{0, 1, 0}})
		exponential.DataPoints = append(exponential.DataPoints, metricdata.ExponentialHistogramDataPoint[float64]{Attributes: set, Time: timesAt(at).live, Count: 1})
	}
	for i, data := range []metricdata.Aggregation{gauge, sum, histogram, exponential} {
		if random.IntN(4) > 0 {
			all := []*[]metricdata.Metrics{&rows, &rows, &live, &live}[i]
			*all = append(*all, metricdata.Metrics{Name: fmt.Sprintf("metric_%d", i), Unit: "s", Description: "Some", Data: data})
		}
	}
	for _, all := range [][]metricdata.Metrics{rows, live} {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return rows, live
}

// TestWhatIsGoneIsCalledOff: whatever comes and goes, and whichever pushes are
// taken, a backend that keeps the books knows after each push that it takes
// just what there is; and nothing is called off that it does not have or that
// a push before has called off.
func TestWhatIsGoneIsCalledOff(t *testing.T) {
	for seed := range uint64(200) {
		random, v := rand.New(rand.NewPCG(seed, 0)), newStaleSeries()
		known, pushed := map[string]bool{}, map[string]bool{} // to the backend; ever, since the last push that was taken
		for turn := range 30 {
			at := snapshotTime().Add(time.Duration(turn) * time.Second)
			rows, live := somePush(random, at)
			want := lastValues(t, slices.Concat(rows, live), at)
			got := lastValues(t, v.add(rows, live, timesAt(at)), at)
			for key, alive := range got {
				if alive != want[key] || !alive && !known[key] && !pushed[key] {
					t.Fatalf("seed %d, turn %d: %s has a value: %t", seed, turn, key, alive)
				}
				pushed[key] = true
			}
			if random.IntN(3) == 0 {
				continue // it got lost
			}
			v.delivered()
			if v.count > 0 {
				t.Fatalf("seed %d, turn %d: %d are pending, though all were delivered", seed, turn, v.count)
			}
			for key, alive := range got {
				if known[key] = alive; !alive {
					delete(known, key)
				}
			}
			clear(pushed)
			if !maps.Equal(known, want) {
				t.Fatalf("seed %d, turn %d: the backend has\n%v\nand there is\n%v", seed, turn, known, want)
			}
		}
	}
}

// TestCallingOffChangesNothingElse: points of several metrics lie in one slab,
// and the metrics stay the caller's.
func TestCallingOffChangesNothingElse(t *testing.T) {
	at, v := snapshotTime(), newStaleSeries()
	given := func(first int) []metricdata.Metrics {
		slab := make([]metricdata.DataPoint[float64], 4)
		for i := range slab {
			slab[i] = metricdata.DataPoint[float64]{Attributes: attribute.NewSet(attribute.Int("i", i)), Time: at, Value: float64(i)}
		}
		return []metricdata.Metrics{
			{Name: "one", Data: metricdata.Gauge[float64]{DataPoints: slab[:first]}}, {Name: "two", Data: metricdata.Gauge[float64]{DataPoints: slab[first:]}},
		}
	}
	v.add(given(2), nil, timesAt(at))
	metrics := given(1)
	metrics[1].Data = metricdata.Gauge[float64]{DataPoints: metrics[1].Data.(metricdata.Gauge[float64]).DataPoints[1:]}
	called := v.add(metrics, nil, timesAt(at))
	for i := range called {
		if got := called[i].Data.(metricdata.Gauge[float64]).DataPoints; len(got) != 2 {
			t.Errorf("%d points of %s", len(got), called[i].Name)
		}
	}
	if first := metrics[1].Data.(metricdata.Gauge[float64]).DataPoints[0]; first.Value != 2 {
		t.Errorf("a point of another metric is %+v now", first)
	}
	if spare := metrics[0].Data.(metricdata.Gauge[float64]).DataPoints[:2]; spare[1].Value != 1 {
		t.Errorf("what lies behind its points is %+v now", spare[1])
	}
	if left := metrics[0].Data.(metricdata.Gauge[float64]).DataPoints; len(left) != 1 {
		t.Errorf("the caller has %d points now", len(left))
	}
}

// TestCallingOffIsBounded in number and in time, whatever the wall clock does.
func TestCallingOffIsBounded(t *testing.T) {
	many := func(from, to int, at time.Time) []metricdata.Metrics {
		var gauge metricdata.Gauge[float64]
		for i := from; i < to; i++ {
			gauge.DataPoints = append(gauge.DataPoints, metricdata.DataPoint[float64]{Attributes: attribute.NewSet(attribute.Int("i", i)), Time: at})
		}
		return []metricdata.Metrics{{Name: "dra_claim_held", Data: gauge}}
	}
	v, at := newStaleSeries(), snapshotTime()
	v.add(many(0, mostStale+10, at), nil, timesAt(at))
	for turn, want := range []int{mostStale, mostStale, mostStale, 0} {
		at = at.Add(staleTimeout / 2)
		times := timesAt(at)
		times.rows = times.rows.Add([]time.Duration{time.Hour, -time.Hour}[turn%2]) // a wall clock that is set
		points := v.add(many(0, 1, at), nil, times)[0].Data.(metricdata.Gauge[float64]).DataPoints
		if got := len(points) - 1; got != want || v.count != want {
			t.Errorf("turn %d: %d of %d are called off, want %d", turn, got, v.count, want)
		}
	}
	if len(v.ended) > 0 {
		t.Errorf("%v is remembered", slices.Collect(maps.Keys(v.ended)))
	}
}

// TestMarkersOfHistogramsHaveASum, of nothing: who makes a series of it takes
// that to be called off only where there is one.
func TestMarkersOfHistogramsHaveASum(t *testing.T) {
	gone := pushedMetric{bounds: []float64{1, 2}, ended: map[attribute.Distinct]endedSeries{{}: {}}}
	data := gone.join(metricdata.Histogram[float64]{}, snapshotTime()).(metricdata.Histogram[float64])
	point := histogramPoints(data.DataPoints)[0]
	const flag = uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
	if point.GetFlags() != flag || point.Sum == nil || point.GetSum() != 0 || point.GetCount() != 0 || len(point.GetBucketCounts()) != 3 {
		t.Errorf("called off by %v", point)
	}
}

// TestCalledOffUntilItIsTaken looks at what arrives: no value, and the flag,
// until the collector has accepted it.
func TestCalledOffUntilItIsTaken(t *testing.T) {
	for _, protocol := range []string{settings.ProtocolGRPC, settings.ProtocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			collector := startCollector(t, otelcollector.Options{})
			held := &metric.Family{Name: "dra_claim_held", Help: "1 while held"}
			rows := []metric.Row{
				{Family: held, Labels: metric.NewLabels([]string{"resourceclaim"}, "a"), Value: 1},
				{Family: held, Labels: metric.NewLabels([]string{"resourceclaim"}, "b"), Value: 1},
			}
			at := snapshotTime()
			registry := prometheus.NewRegistry()
			pusher, err := New(t.Context(), Options{
				Settings: settings.Settings{Metrics: settings.SignalSettings{On: true, Protocol: protocol, Endpoint: collector.Address(protocol), Path: "/v1/metrics",
					Insecure: true, Timeout: patience}, Naming: settings.NamingPrometheus, Interval: time.Second, Timeout: patience},
				Snapshot: func() ([]metric.Row, *model.Node, time.Time) { return rows, nil, at },
				Live:     registry, Registry: registry, Clock: clock.System(), Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			reader := pusher.newReader()
			provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(pusher.resource), sdkmetric.WithReader(reader))
			push := func(want ...string) {
				t.Helper()
				at = at.Add(time.Second)
				collector.Forget()
				pusher.push(t.Context(), reader)
				var got []string
				for _, request := range collector.Requests() {
					for _, of := range request.Metrics {
						got = append(got, heldPoints(t, of)...)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%v arrive, want %v", got, want)
				}
			}
			push("a=1", "b=1")
			rows = rows[:1]
			collector.Answer(otelcollector.Always(otelcollector.Answer{Status: 400, Code: 3}))
			push("a=1", "b gone")
			push("a=1", "b gone")
			collector.Answer(nil)
			push("a=1", "b gone")
			push("a=1")
			rows = rows[:0]
			push("a gone")
			push()
			if err := provider.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func heldPoints(t *testing.T, of *metricspb.ResourceMetrics) (points []string) {
	t.Helper()
	for _, scope := range of.GetScopeMetrics() {
		for _, m := range scope.GetMetrics() {
			for _, point := range m.GetGauge().GetDataPoints() {
				if m.GetName() != "dra_claim_held" {
					continue
				}
				name := point.GetAttributes()[0].GetValue().GetStringValue()
				const flag = uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
				switch {
				case point.GetValue() == nil && point.GetFlags() == flag:
					points = append(points, name+" gone")
				case point.GetFlags() == 0:
					points = append(points, fmt.Sprintf("%s=%g", name, point.GetAsDouble()))
				default:
					t.Errorf("%s has a value and none", name)
				}
			}
		}
	}
	slices.SortFunc(points, strings.Compare)
	return points
}
