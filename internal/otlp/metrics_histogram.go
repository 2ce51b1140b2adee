package otlp

import (
	"math"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// histograms converts a family to the one kind that fits all of its metrics:
// native buckets if all have them and they were asked for, or if there are no
// classic ones that could be taken instead; else classic ones. It is nil if
// nothing is left.
//
// What contradicts itself (buckets that shrink, bounds out of order, more in
// the buckets than in all) is left out, and so are histograms of fractions,
// which OTLP does not know.
func (c liveConversion) histograms(family *dto.MetricFamily) metricdata.Aggregation {
	var classic, native, all int
	for _, m := range family.GetMetric() {
		if h := m.GetHistogram(); h != nil && !fractional(h) {
			all++
			classic += count(len(h.GetBucket()) > 0)
			native += count(isNative(h))
		}
	}
	if native == all && (c.exponential || classic == 0) {
		return c.exponentials(family)
	}
	return c.explicits(family)
}

func count(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

func fractional(h *dto.Histogram) bool {
	return h.GetSampleCountFloat() > 0 || h.GetZeroCountFloat() > 0 || len(h.GetPositiveCount())+len(h.GetNegativeCount()) > 0
}

func (c liveConversion) explicits(family *dto.MetricFamily) metricdata.Aggregation {
	var points []metricdata.HistogramDataPoint[float64]
	for _, m := range family.GetMetric() {
		h := m.GetHistogram()
		if h == nil || fractional(h) {
			continue
		}
		bounds, counts, ok := explicitBuckets(h)
		if !ok {
			continue
		}
		points = append(points, metricdata.HistogramDataPoint[float64]{
			Attributes: pairSet(m.GetLabel()), StartTime: timeOf(h.GetCreatedTimestamp()), Time: c.time(m),
			Count: h.GetSampleCount(), Sum: h.GetSampleSum(), Bounds: bounds, BucketCounts: counts,
			Exemplars: bucketExemplars(h),
		})
	}
	if len(points) == 0 {
		return nil
	}
	return metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality}
}

// explicitBuckets are bounds and, one more than those, the counts between
// them. Prometheus counts in each bucket what is in those below it too, and
// need not state the last, which has everything.
func explicitBuckets(h *dto.Histogram) (bounds []float64, counts []uint64, ok bool) {
	bounds = make([]float64, 0, len(h.GetBucket()))
	counts = make([]uint64, 0, len(h.GetBucket())+1)
	below, last := uint64(0), math.Inf(-1)
	for _, bucket := range h.GetBucket() {
		bound, cumulative := bucket.GetUpperBound(), bucket.GetCumulativeCount()
		if !(bound > last) || cumulative < below || bucket.GetCumulativeCountFloat() > 0 {
			return nil, nil, false
		}
		last = bound
		if math.IsInf(bound, 1) {
			break
		}
		bounds, counts = append(bounds, bound), append(counts, cumulative-below)
		below = cumulative
	}
	if h.GetSampleCount() < below {
		return nil, nil, false
	}
	return bounds, append(counts, h.GetSampleCount()-below), true
}

func bucketExemplars(h *dto.Histogram) []metricdata.Exemplar[float64] {
	var all []*dto.Exemplar
	for _, bucket := range h.GetBucket() {
		all = append(all, bucket.GetExemplar())
	}
	return exemplars(all...)
}

func (c liveConversion) exponentials(family *dto.MetricFamily) metricdata.Aggregation {
	var points []metricdata.ExponentialHistogramDataPoint[float64]
	for _, m := range family.GetMetric() {
		h := m.GetHistogram()
		if h == nil || fractional(h) {
			continue
		}
		scale, positive, negative, ok := exponentialBuckets(h)
		if !ok {
			continue
		}
		point := metricdata.ExponentialHistogramDataPoint[float64]{
			Attributes: pairSet(m.GetLabel()), StartTime: timeOf(h.GetCreatedTimestamp()), Time: c.time(m),
			Count: h.GetSampleCount(), Sum: h.GetSampleSum(), Scale: scale,
			ZeroCount: h.GetZeroCount(), ZeroThreshold: h.GetZeroThreshold(),
			PositiveBucket: positive, NegativeBucket: negative, Exemplars: exemplars(h.GetExemplars()...),
		}
		if len(point.Exemplars) == 0 {
			point.Exemplars = bucketExemplars(h)
		}
		points = append(points, point)
	}
	if len(points) == 0 {
		return nil
	}
	return metricdata.ExponentialHistogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality}
}
