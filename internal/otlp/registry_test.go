package otlp

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/otlptest"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	someTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	someSpan  = "00f067aa0ba902b7"
)

func converted(t testing.TB, exponential bool, gatherer prometheus.Gatherer) map[string]metricdata.Metrics {
	t.Helper()
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]metricdata.Metrics{}
	for _, metrics := range (conversion{at: snapshotTime(), exponential: exponential}).metrics(families) {
		if _, twice := byName[metrics.Name]; twice {
			t.Errorf("%s appears twice", metrics.Name)
		}
		byName[metrics.Name] = metrics
	}
	if len(byName) != len(families) {
		t.Errorf("%d metrics of %d families", len(byName), len(families))
	}
	return byName
}

// phases is a histogram of both kinds, as those of the cluster role are.
func phases() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "dra_claim_phase_duration_seconds", Help: "How long", Buckets: []float64{0.1, 1, 10},
		NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: 1e-6,
	}, []string{"phase"})
}

func TestLiveMetricsOfTheProcess(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	metrics := converted(t, false, registry)
	for name, unit := range map[string]string{
		"go_gc_duration_seconds": "s", "go_goroutines": "", "go_info": "", "go_gc_gogc_percent": "%",
		"process_cpu_seconds_total": "s", "process_resident_memory_bytes": "By", "process_open_fds": "", "process_start_time_seconds": "s",
	} {
		if got, found := metrics[name]; !found || got.Unit != unit || got.Description == "" {
			t.Errorf("%s: %t, unit %q, want %q", name, found, got.Unit, unit)
		}
	}
	summary := metrics["go_gc_duration_seconds"].Data.(metricdata.Summary).DataPoints[0]
	if len(summary.QuantileValues) != 5 || !summary.Time.Equal(snapshotTime()) {
		t.Errorf("the summary has %v at %v", summary.QuantileValues, summary.Time)
	}
	if used := metrics["process_cpu_seconds_total"].Data.(metricdata.Sum[float64]); !used.IsMonotonic || len(used.DataPoints) != 1 {
		t.Errorf("processor time is %v", used)
	}
	if opened := metrics["process_open_fds"].Data.(metricdata.Gauge[float64]).DataPoints; len(opened) != 1 || opened[0].Value < 1 {
		t.Errorf("open files are %v", opened)
	}
	for name, m := range metrics {
		if got := otlptest.SeriesName(m); got != name {
			t.Errorf("%s would become %s", name, got)
		}
	}
}

func TestCountersKeepStartAndExemplar(t *testing.T) {
	registry := prometheus.NewRegistry()
	before := time.Now().Add(-time.Second)
	exports := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dra_exporter_otlp_exports_total", Help: "Exports"}, []string{"signal", "result"})
	registry.MustRegister(exports)
	exports.WithLabelValues("metrics", "").(prometheus.ExemplarAdder).AddWithExemplar(3, prometheus.Labels{"trace_id": someTrace, "span_id": someSpan, "why": "test"})
	point := converted(t, false, registry)["dra_exporter_otlp_exports_total"].Data.(metricdata.Sum[float64]).DataPoints[0]
	if want := attribute.NewSet(attribute.String("signal", "metrics")); point.Value != 3 || !point.Attributes.Equals(&want) {
		t.Errorf("point %+v, want 3 of metrics alone", point)
	}
	if point.StartTime.Before(before) || point.StartTime.After(time.Now()) {
		t.Errorf("it starts at %v", point.StartTime)
	}
	exemplar := point.Exemplars[0]
	if hex.EncodeToString(exemplar.TraceID) != someTrace || hex.EncodeToString(exemplar.SpanID) != someSpan || exemplar.Value != 3 ||
		exemplar.Time.Before(before) || len(exemplar.FilteredAttributes) != 1 || exemplar.FilteredAttributes[0] != attribute.String("why", "test") {
		t.Errorf("exemplar %+v", exemplar)
	}
}

// TestExemplarsWithoutUsableIDs: an invalid id is not exported, the exemplar
// itself is.
func TestExemplarsWithoutUsableIDs(t *testing.T) {
	for _, test := range []struct{ name, trace, span, wantTrace, wantSpan string }{
		{"both", someTrace, someSpan, someTrace, someSpan},
		{"capitals are digits too", strings.ToUpper(someTrace), someSpan, someTrace, someSpan},
		{"no span", someTrace, "", someTrace, ""},
		{"no trace", "", someSpan, "", ""},
		{"a trace that is a UUID", "4bf92f35-77b3-4da6-a3ce-929d0e0e4736", someSpan, "", ""},
		{"too short", someTrace[2:], someSpan, "", ""},
		{"too long", someTrace + "00", someSpan, "", ""},
		{"zeroes", strings.Repeat("0", 32), someSpan, "", ""},
		{"a span of zeroes", someTrace, strings.Repeat("0", 16), someTrace, ""},
		{"no digits", strings.Repeat("x", 32), someSpan, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			pair := func(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
			got := exemplars(nil, &dto.Exemplar{
				Label: []*dto.LabelPair{pair("trace_id", test.trace), pair("span_id", test.span), pair("pod", "a")},
				Value: new(2.5), Timestamp: timestamppb.New(snapshotTime()),
			})
			if len(got) != 1 || got[0].Value != 2.5 || !got[0].Time.Equal(snapshotTime()) || len(got[0].FilteredAttributes) != 1 {
				t.Fatalf("exemplars %+v", got)
			}
			if trace, span := hex.EncodeToString(got[0].TraceID), hex.EncodeToString(got[0].SpanID); trace != test.wantTrace || span != test.wantSpan {
				t.Errorf("trace %q, span %q, want %q and %q", trace, span, test.wantTrace, test.wantSpan)
			}
		})
	}
}

func TestClassicHistogram(t *testing.T) {
	histogram := phases()
	registry := prometheus.NewRegistry()
	registry.MustRegister(histogram)
	of := histogram.WithLabelValues("binding").(prometheus.ExemplarObserver)
	for _, value := range []float64{0.05, 0.1, 0.5, 5, 100} {
		of.ObserveWithExemplar(value, prometheus.Labels{"trace_id": someTrace, "span_id": someSpan})
	}
	histogram.WithLabelValues("scheduling")
	data := converted(t, false, registry)["dra_claim_phase_duration_seconds"].Data.(metricdata.Histogram[float64])
	if data.Temporality != metricdata.CumulativeTemporality || len(data.DataPoints) != 2 {
		t.Fatalf("data %+v", data)
	}
	point := data.DataPoints[0]
	checkCounts(t, point.Bounds, []float64{0.1, 1, 10})
	checkCounts(t, point.BucketCounts, []uint64{2, 1, 1, 1})
	if point.Count != 5 || point.Sum != 105.65 || point.StartTime.IsZero() || len(point.Exemplars) != 4 {
		t.Errorf("point %+v", point)
	}
	if _, known := point.Max.Value(); known {
		t.Error("the largest value is said to be known")
	}
	checkCounts(t, data.DataPoints[1].BucketCounts, []uint64{0, 0, 0, 0})
}

func checkCounts[N comparable](t *testing.T, got, want []N) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// TestHistogramsThatContradictThemselves are left out, and others of the same
// family stay.
func TestHistogramsThatContradictThemselves(t *testing.T) {
	bucket := func(bound float64, cumulative uint64) *dto.Bucket {
		return &dto.Bucket{UpperBound: &bound, CumulativeCount: &cumulative}
	}
	infinite := math.Inf(1)
	for _, test := range []struct {
		name    string
		buckets []*dto.Bucket
		points  int
	}{
		{"well", []*dto.Bucket{bucket(1, 2), bucket(2, 3)}, 2},
		{"with the last bucket", []*dto.Bucket{bucket(1, 2), bucket(infinite, 4)}, 2},
		{"no buckets", nil, 2},
		{"shrinks", []*dto.Bucket{bucket(1, 2), bucket(2, 1)}, 1},
		{"more than all", []*dto.Bucket{bucket(1, 5)}, 1},
		{"out of order", []*dto.Bucket{bucket(2, 1), bucket(1, 2)}, 1},
		{"twice the same", []*dto.Bucket{bucket(1, 1), bucket(1, 2)}, 1},
		{"no number", []*dto.Bucket{bucket(math.NaN(), 1)}, 1},
		{"after infinity", []*dto.Bucket{bucket(infinite, 4), bucket(infinite, 4)}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			family := &dto.MetricFamily{Name: new("h"), Type: dto.MetricType_HISTOGRAM.Enum(), Metric: []*dto.Metric{
				{Histogram: &dto.Histogram{SampleCount: new(uint64(4)), SampleSum: new(6.0), Bucket: test.buckets}},
				{Histogram: &dto.Histogram{SampleCount: new(uint64(1)), SampleSum: new(1.0), Bucket: []*dto.Bucket{bucket(1, 1)}}},
			}}
			data, _ := conversion{at: snapshotTime()}.data(family).(metricdata.Histogram[float64])
			if len(data.DataPoints) != test.points {
				t.Fatalf("%d points, want %d: %+v", len(data.DataPoints), test.points, data)
			}
			for _, point := range data.DataPoints {
				all := uint64(0)
				for _, count := range point.BucketCounts {
					all += count
				}
				if all != point.Count || len(point.BucketCounts) != len(point.Bounds)+1 {
					t.Errorf("%d of %d in %v", all, point.Count, point.BucketCounts)
				}
			}
		})
	}
}

func TestFamiliesWithNothingToReport(t *testing.T) {
	number := &dto.Metric{Gauge: &dto.Gauge{Value: new(1.0)}}
	for _, family := range []*dto.MetricFamily{
		{Name: new("no_metrics"), Type: dto.MetricType_COUNTER.Enum()},
		{Name: new("none_of_its_type"), Type: dto.MetricType_SUMMARY.Enum(), Metric: []*dto.Metric{number}},
		{Name: new("may_shrink"), Type: dto.MetricType_GAUGE_HISTOGRAM.Enum(), Metric: []*dto.Metric{{Histogram: &dto.Histogram{}}}},
		{Name: new("fractions"), Type: dto.MetricType_HISTOGRAM.Enum(), Metric: []*dto.Metric{{Histogram: &dto.Histogram{SampleCountFloat: new(0.5)}}}},
		{Name: new("nothing"), Type: dto.MetricType_HISTOGRAM.Enum(), Metric: []*dto.Metric{number}},
	} {
		if got := (conversion{}).metrics([]*dto.MetricFamily{family}); len(got) != 0 {
			t.Errorf("%s: %+v", family.GetName(), got)
		}
	}
	family := &dto.MetricFamily{Name: new("foreign"), Type: dto.MetricType_UNTYPED.Enum(), Metric: []*dto.Metric{
		{Untyped: &dto.Untyped{Value: new(4.0)}, TimestampMs: new(int64(1000))},
	}}
	point := (conversion{}).data(family).(metricdata.Gauge[float64]).DataPoints[0]
	if point.Value != 4 || !point.Time.Equal(time.Unix(1, 0)) {
		t.Errorf("an untyped sample with its own time is %+v", point)
	}
}
