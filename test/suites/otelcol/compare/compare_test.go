package compare

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/proto"
)

// found compares a push with pages before and after it.
func found(pushed ...pmetric.Metrics) error {
	before, same, after := testPage(4), testPage(5), testPage(6)
	before.Answered = snapshotTime().Add(100 * time.Millisecond)
	same.Answered = snapshotTime().Add(200 * time.Millisecond)
	after.Asked, after.Answered = snapshotTime().Add(time.Second), snapshotTime().Add(time.Second)
	_, err := Find([]*Page{before, same, after}, Pushes(pushed), Prometheus())
	return err
}

func TestTheSame(t *testing.T) {
	if err := found(pushedPage()); err != nil {
		t.Error(err)
	}
	if err := found(pushedPage(), pushedPage()); err != nil {
		t.Errorf("a request that came twice: %v", err)
	}
	if err := found(); !errors.Is(err, ErrNoPush) {
		t.Errorf("of no push it says %v", err)
	}
	rows, live := pushedPage(), pushedPage() // one collection in two requests
	rows.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Type() == pmetric.MetricTypeHistogram })
	live.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Type() != pmetric.MetricTypeHistogram })
	if err := found(rows, live); err != nil {
		t.Error(err)
	}
	if err := found(rows); !errors.Is(err, ErrNoPush) {
		t.Errorf("without live metrics it says %v", err)
	}
}

// TestDifferences: each difference of a push is reported, and nothing else.
func TestDifferences(t *testing.T) {
	const power, held, energy, times = 0, 1, 2, 3
	tests := map[string]struct {
		change func(all pmetric.Metrics)
		want   string
	}{
		"value": {func(all pmetric.Metrics) { at(all, power).Gauge().DataPoints().At(0).SetDoubleValue(70.50000000000001) }, "pushed as map[:70.50000000000001]"},
		"no value": {func(all pmetric.Metrics) {
			p := at(all, power).Gauge().DataPoints().At(1)
			p.SetFlags(p.Flags().WithNoRecordedValue(true))
		}, "is not pushed"},
		"called off and there": {func(all pmetric.Metrics) {
			p := at(all, power).Gauge().DataPoints()
			p.At(0).CopyTo(p.AppendEmpty())
			p.At(2).SetFlags(p.At(2).Flags().WithNoRecordedValue(true))
		}, "is called off, and pushed all the same"},
		"unit":    {func(all pmetric.Metrics) { at(all, power).SetUnit("kW") }, `is in "W", pushed in "kW"`},
		"help":    {func(all pmetric.Metrics) { at(all, power).SetDescription("") }, `pushed with ""`},
		"name":    {func(all pmetric.Metrics) { at(all, power).SetName("power") }, "is not on the page"},
		"missing": {func(all pmetric.Metrics) { at(all, power).SetEmptyGauge() }, "is not pushed"},
		"one too many": {func(all pmetric.Metrics) {
			at(all, power).Gauge().DataPoints().At(0).CopyTo(at(all, power).Gauge().DataPoints().AppendEmpty())
			at(all, power).Gauge().DataPoints().At(2).Attributes().PutStr("uuid", "c")
		}, "is not on the page"},
		"two values": {func(all pmetric.Metrics) {
			p := at(all, power).Gauge().DataPoints()
			p.At(0).CopyTo(p.AppendEmpty())
			p.At(2).SetDoubleValue(1)
		}, "is pushed twice"},
		"label": {func(all pmetric.Metrics) { at(all, power).Gauge().DataPoints().At(0).Attributes().PutStr("pod", "p") }, "is not pushed"},
		"start": {func(all pmetric.Metrics) { at(all, held).Sum().DataPoints().At(0).SetStartTimestamp(0) }, "pushed as an unknown time"},
		"made up": {func(all pmetric.Metrics) {
			at(all, energy).Sum().DataPoints().At(0).SetStartTimestamp(pcommon.NewTimestampFromTime(startTime()))
		}, "began at an unknown time"},
		"delta": {func(all pmetric.Metrics) {
			at(all, held).Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}, "pushed as a Delta counter"},
		"may fall": {func(all pmetric.Metrics) { at(all, held).Sum().SetIsMonotonic(false) }, "pushed as a updowncounter"},
		"beyond":   {func(all pmetric.Metrics) { at(all, times).Histogram().DataPoints().At(0).SetSum(6.5) }, "sum grew from 5 to 6, pushed as 6.5"},
		"behind":   {func(all pmetric.Metrics) { at(all, times).Histogram().DataPoints().At(0).SetCount(3) }, "count grew from 5 to 6, pushed as 3"},
		"cumulated": {func(all pmetric.Metrics) {
			at(all, times).Histogram().DataPoints().At(0).BucketCounts().FromRaw([]uint64{4, 5})
		}, "le +Inf grew from 5 to 6, pushed as 9"},
		"bounds": {func(all pmetric.Metrics) {
			at(all, times).Histogram().DataPoints().At(0).ExplicitBounds().FromRaw([]float64{0.25})
		}, "le 0.5 is not pushed"},
		"no histogram": {func(all pmetric.Metrics) {
			at(all, times).Histogram().DataPoints().At(0).Attributes().PutStr("source", "dcgm")
		}, "is not pushed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pushed := pushedPage()
			test.change(pushed)
			var difference *Difference
			if err := found(pushed); !errors.As(err, &difference) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v and not %q", err, test.want)
			} else if len(difference.Lines) > 4 {
				t.Errorf("it says too much: %v", err)
			}
		})
	}
}

// TestSemantic: rows are compared under their other names, with the attributes
// of info rows, and not under their own names.
func TestSemantic(t *testing.T) {
	n := Semantic()
	rows, _ := scraped(testPage(5))
	spelled := map[string]series{}
	for _, row := range rows {
		s := n.expect(row)
		spelled[s.key()] = s
	}
	for key, want := range map[string]series{
		`hw.power{hw.id="a"}`:               {kind: gauge, unit: "W"},
		`hw.power{hw.id="b",hw.parent="a"}`: {kind: gauge, unit: "W"},
		`hw.energy{hw.id="a"}`:              {kind: counter, unit: "J"},
		`dra.resourceclaim.device.held.time{dra.resourceclaim.name="y",hw.id="a",k8s.namespace.name="x"}`: {kind: counter, unit: "s"},
	} {
		if got := spelled[key]; got.kind != want.kind || got.unit != want.unit {
			t.Errorf("%s is a %s in %q", key, got.kind, got.unit)
		}
	}
	point := series{metric: "dra.resourceclaim.device.held.time", attributes: attributes{"hw.id": "a", "dra.resourceclaim.uid": "u"}}
	if plain, row := n.plain(point); !row || plain.attributes.String() != `{hw.id="a"}` {
		t.Errorf("without what is of other rows it is %s", plain.key())
	}
	if _, row := n.plain(series{metric: "hw.status"}); row {
		t.Error("a row must stand for hw.status")
	}
}

// TestNativeBuckets: both numberings denote the same buckets.
func TestNativeBuckets(t *testing.T) {
	scraped := histogramParts(&dto.Histogram{
		SampleCount: proto.Uint64(6), Schema: proto.Int32(3), ZeroCount: proto.Uint64(1),
		PositiveSpan: []*dto.BucketSpan{{Offset: proto.Int32(2), Length: proto.Uint32(2)}, {Offset: proto.Int32(3), Length: proto.Uint32(1)}}, PositiveDelta: []int64{1, 1, -1},
	})
	point := pmetric.NewExponentialHistogramDataPoint()
	point.SetCount(6)
	point.SetScale(3)
	point.SetZeroCount(1)
	point.Positive().SetOffset(1)
	point.Positive().BucketCounts().FromRaw([]uint64{1, 2, 0, 0, 0, 1})
	pushed := exponentialParts(point)
	delete(scraped, "le +Inf")
	if !same(scraped, pushed) {
		t.Errorf("%v is pushed as %v", scraped, pushed)
	}
}

// TestEndedSeries: points without a value, of any kind, are not rows, and not
// a difference if the page does not have them either.
func TestEndedSeries(t *testing.T) {
	const power, times = 0, 3
	pushed := pushedPage()
	gauges := at(pushed, power).Gauge().DataPoints()
	gauges.At(0).CopyTo(gauges.AppendEmpty())
	gauges.At(2).Attributes().PutStr("uuid", "c")
	gauges.At(2).SetFlags(gauges.At(2).Flags().WithNoRecordedValue(true))
	histograms := at(pushed, times).Histogram().DataPoints()
	histograms.At(0).CopyTo(histograms.AppendEmpty())
	histograms.At(1).Attributes().PutStr("source", "dcgm")
	histograms.At(1).SetFlags(histograms.At(1).Flags().WithNoRecordedValue(true))
	if err := found(pushed); err != nil {
		t.Error(err)
	}
	gone := Pushes([]pmetric.Metrics{pushed})[0].EndedSeries()
	if want := []string{`dra_device_power_watts{node="n",uuid="c"}`, `dra_exporter_source_read_duration_seconds{source="dcgm"}`}; !slices.Equal(gone, want) {
		t.Errorf("%q are called off, not %q", gone, want)
	}
}
