package otlp

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// TestEveryObservationIsInItsBucket looks for each in the bucket in which the
// definition of OTLP has it, a base to the power of the index below it.
func TestEveryObservationIsInItsBucket(t *testing.T) {
	histogram := phases()
	registry := prometheus.NewRegistry()
	registry.MustRegister(histogram)
	random := rand.New(rand.NewPCG(1, 2))
	values := []float64{1, 2, 0.5, 0, -1, 1e-7, 1024}
	for range 500 {
		values = append(values, math.Exp(random.Float64()*24-12), -math.Exp(random.Float64()*4))
	}
	sum := 0.0
	for _, value := range values {
		histogram.WithLabelValues("binding").Observe(value)
		sum += value
	}
	data := converted(t, true, registry)["dra_claim_phase_duration_seconds"].Data.(metricdata.ExponentialHistogram[float64])
	point := data.DataPoints[0]
	if data.Temporality != metricdata.CumulativeTemporality || point.Scale != 3 || point.ZeroCount != 2 || point.ZeroThreshold != 1e-6 ||
		point.Count != uint64(len(values)) || math.Abs(point.Sum-sum) > 1e-6 || point.StartTime.IsZero() {
		t.Fatalf("scale %d, %d of %d at zero (%g), sum %g, want %g", point.Scale, point.ZeroCount, point.Count, point.ZeroThreshold, point.Sum, sum)
	}
	for _, value := range values {
		if math.Abs(value) <= 1e-6 {
			continue
		}
		bucket := point.PositiveBucket
		if value < 0 {
			bucket = point.NegativeBucket
		}
		// Above base^index, and at most base^(index+1).
		index := int(math.Ceil(math.Log2(math.Abs(value))*8)) - 1 - int(bucket.Offset)
		if index < 0 || index >= len(bucket.Counts) || bucket.Counts[index] == 0 {
			t.Fatalf("%g is not in bucket %d of %v", value, index, bucket)
		}
		bucket.Counts[index]--
	}
	for _, counts := range [][]uint64{point.PositiveBucket.Counts, point.NegativeBucket.Counts} {
		for i, count := range counts {
			if count != 0 {
				t.Errorf("%d more than were observed in bucket %d", count, i)
			}
		}
	}
}

// TestWhichBuckets: classic ones unless the settings prefer native ones and all have them.
func TestWhichBuckets(t *testing.T) {
	opts := prometheus.HistogramOpts{Name: "h", Help: "H", Buckets: []float64{1}}
	native := opts
	native.NativeHistogramBucketFactor = 1.1
	only := native
	only.Buckets = nil
	for _, test := range []struct {
		name              string
		opts              prometheus.HistogramOpts
		asked, wantNative bool
	}{
		{"classic", opts, false, false}, {"classic, though native was asked for", opts, true, false},
		{"both", native, false, false}, {"both, and native was asked for", native, true, true},
		{"native alone", only, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			histogram := prometheus.NewHistogram(test.opts)
			registry := prometheus.NewRegistry()
			registry.MustRegister(histogram)
			for range 2 { // before anything is observed, and after
				_, isNative := converted(t, test.asked, registry)["h"].Data.(metricdata.ExponentialHistogram[float64])
				if isNative != test.wantNative {
					t.Errorf("exponential: %t", isNative)
				}
				histogram.Observe(2)
			}
		})
	}
}

// TestFamilyOfBothKinds: one kind for all of a family, which is the one that
// all have.
func TestFamilyOfBothKinds(t *testing.T) {
	classic := &dto.Histogram{SampleCount: new(uint64(1)), Bucket: []*dto.Bucket{{UpperBound: new(1.0), CumulativeCount: new(uint64(1))}}}
	both := &dto.Histogram{SampleCount: new(uint64(1)), Bucket: classic.Bucket, Schema: new(int32(3)), ZeroThreshold: new(1e-6), ZeroCount: new(uint64(1))}
	family := &dto.MetricFamily{Name: new("h"), Type: dto.MetricType_HISTOGRAM.Enum(), Metric: []*dto.Metric{{Histogram: both}, {Histogram: classic}}}
	data, _ := conversion{exponential: true}.data(family).(metricdata.Histogram[float64])
	if len(data.DataPoints) != 2 {
		t.Errorf("data %+v, want both with classic buckets", data)
	}
	// Buckets that are written down are no powers, though they have spans.
	custom := &dto.Histogram{SampleCount: new(uint64(1)), Schema: new(int32(-53)), PositiveSpan: []*dto.BucketSpan{{}}}
	family.Metric = []*dto.Metric{{Histogram: custom}}
	if data, isClassic := (conversion{exponential: true}).data(family).(metricdata.Histogram[float64]); !isClassic {
		t.Errorf("custom buckets are %+v", data)
	}
}

// TestNativeHistogramsThatContradictThemselves are refused.
func TestNativeHistogramsThatContradictThemselves(t *testing.T) {
	span := func(offset int32, length uint32) *dto.BucketSpan {
		return &dto.BucketSpan{Offset: &offset, Length: &length}
	}
	for _, test := range []struct {
		name         string
		zero         uint64
		spans, other []*dto.BucketSpan
		deltas, more []int64
		ok           bool
	}{
		{name: "nothing yet", spans: []*dto.BucketSpan{span(0, 0)}, ok: true},
		{name: "all of ten", zero: 1, spans: []*dto.BucketSpan{span(-1, 2)}, deltas: []int64{2, 1}, other: []*dto.BucketSpan{span(0, 1)}, more: []int64{4}, ok: true},
		{name: "fewer than all", spans: []*dto.BucketSpan{span(0, 1)}, deltas: []int64{9}, ok: true},
		{name: "more than all", spans: []*dto.BucketSpan{span(0, 1)}, deltas: []int64{11}},
		{name: "more than all on both sides", spans: []*dto.BucketSpan{span(0, 1)}, deltas: []int64{6}, other: []*dto.BucketSpan{span(0, 1)}, more: []int64{5}},
		{name: "more than all with zero", zero: 2, spans: []*dto.BucketSpan{span(0, 1)}, deltas: []int64{9}},
		{name: "less than nothing", spans: []*dto.BucketSpan{span(0, 2)}, deltas: []int64{1, -2}},
		{name: "too few counts", spans: []*dto.BucketSpan{span(0, 2)}, deltas: []int64{1}},
		{name: "too many counts", spans: []*dto.BucketSpan{span(0, 1)}, deltas: []int64{1, 0}},
		{name: "too many counts below", other: []*dto.BucketSpan{span(0, 1)}, more: []int64{1, 0}},
		{name: "spans overlap", spans: []*dto.BucketSpan{span(5, 2), span(-1, 1)}, deltas: []int64{1, 0, 0}},
		{name: "beyond the smallest index", spans: []*dto.BucketSpan{span(math.MinInt32, 1)}, deltas: []int64{1}},
		{name: "beyond the largest index", spans: []*dto.BucketSpan{span(math.MaxInt32, 1), span(1, 1)}, deltas: []int64{1, 0}},
		{name: "an overflow", spans: []*dto.BucketSpan{span(0, 3)}, deltas: []int64{math.MaxInt64, 0, 0}},
		{name: "an overflow to five", spans: []*dto.BucketSpan{span(0, 3)}, deltas: []int64{math.MaxInt64, 0, 7 - math.MaxInt64}},
		{name: "an overflow of a count", spans: []*dto.BucketSpan{span(0, 2)}, deltas: []int64{1, math.MaxInt64}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, _, ok := exponentialBuckets(&dto.Histogram{
				Schema: new(int32(0)), SampleCount: new(uint64(10)), ZeroCount: &test.zero,
				PositiveSpan: test.spans, PositiveDelta: test.deltas, NegativeSpan: test.other, NegativeDelta: test.more,
			})
			if ok != test.ok {
				t.Errorf("taken: %t", ok)
			}
		})
	}
}

// TestNativeExemplars: those of the native buckets, or else of the classic ones.
func TestNativeExemplars(t *testing.T) {
	histogram := phases()
	registry := prometheus.NewRegistry()
	registry.MustRegister(histogram)
	of := histogram.WithLabelValues("binding").(prometheus.ExemplarObserver)
	for _, value := range []float64{0.2, 0.4, 5} {
		of.ObserveWithExemplar(value, prometheus.Labels{"trace_id": someTrace, "span_id": someSpan})
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{3, 2} {
		data := conversion{exponential: true}.data(families[0]).(metricdata.ExponentialHistogram[float64])
		if got := data.DataPoints[0].Exemplars; len(got) != want || len(got[0].TraceID) != 16 || len(got[0].SpanID) != 8 {
			t.Errorf("%d exemplars, want %d: %+v", len(got), want, got)
		}
		families[0].GetMetric()[0].GetHistogram().Exemplars = nil
	}
}

// TestFarBucketsArePutTogether: a gap costs Prometheus nothing and OTLP a byte
// a bucket, so that the scale is made coarser, and of both sides alike.
func TestFarBucketsArePutTogether(t *testing.T) {
	span := func(offset int32, length uint32) *dto.BucketSpan {
		return &dto.BucketSpan{Offset: &offset, Length: &length}
	}
	h := &dto.Histogram{
		Schema: new(int32(8)), SampleCount: new(uint64(10)), ZeroThreshold: new(1e-6), ZeroCount: new(uint64(1)),
		PositiveSpan: []*dto.BucketSpan{span(-2559, 2), span(5117, 1)}, PositiveDelta: []int64{1, 1, 2},
		NegativeSpan: []*dto.BucketSpan{span(257, 1)}, NegativeDelta: []int64{2},
	}
	scale, positive, negative, ok := exponentialBuckets(h)
	if !ok || scale != 5 || len(positive.Counts) > maxDense {
		t.Fatalf("scale %d with %d buckets, %t", scale, len(positive.Counts), ok)
	}
	// Of Prometheus' bucket 257 at schema 8, above 2 and at most 2^(257/256),
	// the one at scale 5 is above 2 and at most 2^(33/32).
	if negative.Offset != 32 || len(negative.Counts) != 1 || negative.Counts[0] != 2 {
		t.Errorf("negative %+v", negative)
	}
	last := len(positive.Counts) - 1
	if positive.Offset != -2560>>3 || positive.Counts[0] != 3 || positive.Counts[1] != 0 || positive.Counts[last] != 4 ||
		int(positive.Offset)+last != (2560-1)>>3 {
		t.Errorf("positive from %d, %d buckets, %d %d … %d", positive.Offset, len(positive.Counts), positive.Counts[0], positive.Counts[1], positive.Counts[last])
	}
	h.PositiveSpan, h.PositiveDelta, h.NegativeSpan, h.NegativeDelta = h.NegativeSpan, h.NegativeDelta, h.PositiveSpan, h.PositiveDelta
	scale, swappedNegative, swappedPositive, _ := exponentialBuckets(h)
	if scale != 5 || swappedNegative.Offset != negative.Offset || len(swappedPositive.Counts) != len(positive.Counts) {
		t.Errorf("scale %d with the sides exchanged, %d buckets", scale, len(swappedPositive.Counts))
	}
	for gap, want := range map[int32]int32{maxDense - 2: 8, maxDense - 1: 7} {
		far := &dto.Histogram{Schema: new(int32(8)), SampleCount: new(uint64(2)),
			PositiveSpan: []*dto.BucketSpan{span(1, 1), span(gap, 1)}, PositiveDelta: []int64{1, 0}}
		if scale, _, _, _ := exponentialBuckets(far); scale != want {
			t.Errorf("scale %d with %d buckets in all, want %d", scale, gap+2, want)
		}
	}
}

// FuzzNativeHistogram: whatever a registry contains, what is converted has the
// same buckets when it is converted back, or neighbours of them together, and
// never too many; what contradicts itself is refused.
func FuzzNativeHistogram(f *testing.F) {
	f.Add([]byte{3, 10, 1, 2, 2, 255, 1, 1, 2, 4, 1, 0, 1, 1, 1})
	f.Add([]byte{8, 200, 0, 2, 1, 0, 100, 2, 1, 1, 1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		h := histogramOf(data)
		scale, positive, negative, ok := exponentialBuckets(h)
		wantPositive, wellPositive := naive(h.GetPositiveSpan(), h.GetPositiveDelta())
		wantNegative, wellNegative := naive(h.GetNegativeSpan(), h.GetNegativeDelta())
		all := total(wantPositive) + total(wantNegative) + float64(h.GetZeroCount())
		if well := wellPositive && wellNegative && all <= float64(h.GetSampleCount()); ok != well {
			t.Fatalf("taken %t, but it is well %t: %v", ok, well, h)
		}
		if !ok {
			return
		}
		down := uint(h.GetSchema() - scale)
		sameBuckets(t, positive, wantPositive, down)
		sameBuckets(t, negative, wantNegative, down)
		if down > 0 && spread(wantPositive, down-1) <= maxDense && spread(wantNegative, down-1) <= maxDense {
			t.Errorf("scale %d of %d is coarser than it must be", scale, h.GetSchema())
		}
	})
}

// histogramOf makes a histogram of bytes; mostly one that contradicts itself
// in a place or two. Counts are small enough for sums to be exact.
func histogramOf(data []byte) *dto.Histogram {
	next := func() int64 {
		if len(data) == 0 {
			return 0
		}
		first := int64(int8(data[0]))
		if data = data[1:]; first == math.MinInt8 && len(data) >= 4 {
			first = int64(int32(binary.LittleEndian.Uint32(data)))
			data = data[4:]
		}
		return first
	}
	side := func() (spans []*dto.BucketSpan, deltas []int64) {
		for range next() & 3 {
			spans = append(spans, &dto.BucketSpan{Offset: new(int32(next())), Length: new(uint32(next() & 7))})
		}
		for range next() & 15 {
			deltas = append(deltas, next())
		}
		return spans, deltas
	}
	h := &dto.Histogram{Schema: new(int32(next()&15%13 - 4)), SampleCount: new(uint64(next() & math.MaxInt32)), ZeroCount: new(uint64(next() & 3))}
	h.PositiveSpan, h.PositiveDelta = side()
	h.NegativeSpan, h.NegativeDelta = side()
	return h
}

// naive are the counts by Prometheus' index, written down as its definition
// says it.
func naive(spans []*dto.BucketSpan, deltas []int64) (counts map[int64]int64, well bool) {
	counts = map[int64]int64{}
	index, value := int64(0), int64(0)
	for i, span := range spans {
		if i > 0 && span.GetOffset() < 0 {
			return nil, false
		}
		index += int64(span.GetOffset())
		for range span.GetLength() {
			if len(deltas) == 0 {
				return nil, false
			}
			value, deltas = value+deltas[0], deltas[1:]
			if value < 0 || index-1 < math.MinInt32 || index-1 > math.MaxInt32 {
				return nil, false
			}
			if value > 0 {
				counts[index] += value
			}
			index++
		}
	}
	return counts, len(deltas) == 0
}

func total(counts map[int64]int64) (all float64) {
	for _, count := range counts {
		all += float64(count)
	}
	return all
}

// spread is how many buckets there are from the first to the last.
func spread(counts map[int64]int64, down uint) int64 {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for index := range counts {
		first, last = min(first, (index-1)>>down), max(last, (index-1)>>down)
	}
	if len(counts) == 0 {
		return 0
	}
	return last - first + 1
}

func sameBuckets(t *testing.T, got metricdata.ExponentialBucket, want map[int64]int64, down uint) {
	t.Helper()
	if len(got.Counts) > maxDense || int64(len(got.Counts)) != spread(want, down) {
		t.Fatalf("%d buckets for a spread of %d", len(got.Counts), spread(want, down))
	}
	back := map[int64]uint64{}
	for index, count := range want {
		back[(index-1)>>down] += uint64(count)
	}
	for i, count := range got.Counts {
		index := int64(got.Offset) + int64(i)
		if back[index] != count {
			t.Errorf("%d in bucket %d, want %d", count, index, back[index])
		}
		delete(back, index)
	}
	if len(back) > 0 {
		t.Errorf("buckets %v are lost", back)
	}
}
