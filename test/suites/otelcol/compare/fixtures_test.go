package compare

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// snapshotTime is the time of the tests' snapshot.
func snapshotTime() time.Time { return time.Unix(1_800_000_000, 250_000_000) }

func startTime() time.Time { return snapshotTime().Add(-time.Hour) }

// testPage has a gauge, a counter, one without a start time, and a histogram,
// which is live.
func testPage(observed uint64) *Page {
	label := func(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
	family := func(kind dto.MetricType, name, unit string, metrics ...*dto.Metric) *dto.MetricFamily {
		f := &dto.MetricFamily{Name: &name, Help: proto.String("About " + name), Type: kind.Enum(), Metric: metrics}
		if unit != "" {
			f.Unit = &unit
		}
		return f
	}
	began := timestamppb.New(startTime())
	families := []*dto.MetricFamily{
		family(dto.MetricType_GAUGE, "dra_device_power_watts", "watts",
			&dto.Metric{Label: []*dto.LabelPair{label("node", "n"), label("uuid", "a"), label("parent_uuid", "")}, Gauge: &dto.Gauge{Value: proto.Float64(70.5)}},
			&dto.Metric{Label: []*dto.LabelPair{label("node", "n"), label("uuid", "b"), label("parent_uuid", "a")}, Gauge: &dto.Gauge{Value: proto.Float64(0)}}),
		family(dto.MetricType_COUNTER, "dra_claim_held_seconds_total", "seconds",
			&dto.Metric{Label: []*dto.LabelPair{label("node", "n"), label("namespace", "x"), label("resourceclaim", "y"), label("uuid", "a")}, Counter: &dto.Counter{Value: proto.Float64(12), CreatedTimestamp: began}}),
		family(dto.MetricType_COUNTER, "dra_device_energy_joules_total", "joules",
			&dto.Metric{Label: []*dto.LabelPair{label("node", "n"), label("uuid", "a"), label("parent_uuid", "")}, Counter: &dto.Counter{Value: proto.Float64(1e9)}}),
		family(dto.MetricType_HISTOGRAM, "dra_exporter_source_read_duration_seconds", "",
			&dto.Metric{Label: []*dto.LabelPair{label("source", "nvml")}, Histogram: &dto.Histogram{
				SampleCount: proto.Uint64(observed), SampleSum: proto.Float64(float64(observed)), CreatedTimestamp: began,
				Bucket: []*dto.Bucket{{UpperBound: proto.Float64(0.5), CumulativeCount: proto.Uint64(observed - 1)}, {UpperBound: proto.Float64(math.Inf(1)), CumulativeCount: proto.Uint64(observed)}},
			}}),
	}
	page := &Page{Families: map[string]*dto.MetricFamily{}}
	for _, f := range families {
		page.Families[f.GetName()] = f
	}
	return page
}

// pushedPage is a push of testPage(5), row by row as a sender would make it.
func pushedPage() pmetric.Metrics {
	all := pmetric.NewMetrics()
	metrics := all.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	add := func(name, unit string) pmetric.Metric {
		m := metrics.AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		m.SetDescription("About " + name)
		return m
	}
	fill := func(p pmetric.NumberDataPoint, value float64, attributes ...string) {
		p.SetTimestamp(pcommon.NewTimestampFromTime(snapshotTime()))
		p.SetDoubleValue(value)
		for i := 0; i < len(attributes); i += 2 {
			p.Attributes().PutStr(attributes[i], attributes[i+1])
		}
	}
	power := add("dra_device_power_watts", "W").SetEmptyGauge().DataPoints()
	fill(power.AppendEmpty(), 70.5, "node", "n", "uuid", "a")
	fill(power.AppendEmpty(), 0, "node", "n", "uuid", "b", "parent_uuid", "a")
	total := func(name, unit string) pmetric.NumberDataPoint {
		sum := add(name, unit).SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return sum.DataPoints().AppendEmpty()
	}
	held := total("dra_claim_held_seconds_total", "s")
	fill(held, 12, "node", "n", "namespace", "x", "resourceclaim", "y", "uuid", "a")
	held.SetStartTimestamp(pcommon.NewTimestampFromTime(startTime()))
	fill(total("dra_device_energy_joules_total", "J"), 1e9, "node", "n", "uuid", "a")
	times := add("dra_exporter_source_read_duration_seconds", "s").SetEmptyHistogram()
	times.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := times.DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(snapshotTime().Add(time.Second / 2)))
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(startTime()))
	p.Attributes().PutStr("source", "nvml")
	p.SetCount(5)
	p.SetSum(5)
	p.ExplicitBounds().FromRaw([]float64{0.5})
	p.BucketCounts().FromRaw([]uint64{4, 1})
	return all
}

// at returns the i-th metric of the push.
func at(all pmetric.Metrics, i int) pmetric.Metric {
	return all.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(i)
}
