package otlp

import (
	"math"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// histograms converts a family to one kind for all of its metrics: exponential
// buckets if all have native ones and either the settings prefer them or there
// are no classic ones; else explicit buckets. It is nil if nothing is left.
//
// Inconsistent histograms (decreasing buckets, bounds out of order, more in the
// buckets than the count) are omitted, and so are float histograms, which OTLP
// does not have.
func (c conversion) histograms(family *dto.MetricFamily) metricdata.Aggregation {
	var classic, native, all int
	for _, m := range family.GetMetric() {
		if h := m.GetHistogram(); h != nil && !isFloat(h) {
			all++
			if len(h.GetBucket()) > 0 {
				classic++
			}
			if isNative(h) {
				native++
			}
		}
	}
	if native == all && (c.exponential || classic == 0) {
		return c.exponentials(family)
	}
	return c.explicits(family)
}

func isFloat(h *dto.Histogram) bool {
	return h.GetSampleCountFloat() > 0 || h.GetZeroCountFloat() > 0 || len(h.GetPositiveCount())+len(h.GetNegativeCount()) > 0
}

func (c conversion) explicits(family *dto.MetricFamily) metricdata.Aggregation {
	var points []metricdata.HistogramDataPoint[float64]
	for _, m := range family.GetMetric() {
		h := m.GetHistogram()
		if h == nil || isFloat(h) {
			continue
		}
		bounds, counts, ok := explicitBuckets(h)
		if !ok {
			continue
		}
		points = append(points, metricdata.HistogramDataPoint[float64]{
			Attributes: labelSet(m.GetLabel()), StartTime: exemplarTime(h.GetCreatedTimestamp()), Time: c.time(m),
			Count: h.GetSampleCount(), Sum: h.GetSampleSum(), Bounds: bounds, BucketCounts: counts,
			Exemplars: bucketExemplars(h),
		})
	}
	if len(points) == 0 {
		return nil
	}
	return metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality}
}

// explicitBuckets are the bounds and the counts between them, one more than
// bounds. Prometheus' buckets are cumulative, and the last, +Inf, may be missing.
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

func (c conversion) exponentials(family *dto.MetricFamily) metricdata.Aggregation {
	var points []metricdata.ExponentialHistogramDataPoint[float64]
	for _, m := range family.GetMetric() {
		h := m.GetHistogram()
		if h == nil || isFloat(h) {
			continue
		}
		scale, positive, negative, ok := exponentialBuckets(h)
		if !ok {
			continue
		}
		point := metricdata.ExponentialHistogramDataPoint[float64]{
			Attributes: labelSet(m.GetLabel()), StartTime: exemplarTime(h.GetCreatedTimestamp()), Time: c.time(m),
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

const (
	// minScale and maxScale are Prometheus' schemas with exponential buckets: each
	// is the scale of the same number in OTLP.
	// https://prometheus.io/docs/specs/native_histograms/#schema
	minScale, maxScale = -4, 8
	// maxDense is the most buckets on one side of a histogram, including empty
	// ones. Beyond that neighbours are merged: Prometheus' encoding skips gaps,
	// OTLP's does not.
	maxDense = 1024
)

// isNative reports whether a histogram has exponential buckets, or would have
// them after an observation.
func isNative(h *dto.Histogram) bool {
	return h.Schema != nil && h.GetSchema() >= minScale && h.GetSchema() <= maxScale &&
		(len(h.GetPositiveSpan())+len(h.GetNegativeSpan()) > 0 || h.GetZeroThreshold() > 0 || h.GetZeroCount() > 0)
}

// exponentialBuckets are the native buckets of a histogram. It returns false if
// they are inconsistent, or if they have more observations than the count. (There
// may be fewer: NaN is in no bucket.)
func exponentialBuckets(h *dto.Histogram) (scale int32, positive, negative metricdata.ExponentialBucket, ok bool) {
	above, ok := sparseBuckets(h.GetPositiveSpan(), h.GetPositiveDelta())
	if !ok {
		return 0, positive, negative, false
	}
	below, ok := sparseBuckets(h.GetNegativeSpan(), h.GetNegativeDelta())
	if !ok {
		return 0, positive, negative, false
	}
	rest := h.GetSampleCount()
	for _, taken := range [...]uint64{h.GetZeroCount(), above.total, below.total} {
		if taken > rest {
			return 0, positive, negative, false
		}
		rest -= taken
	}
	down := max(above.downscale(), below.downscale())
	return h.GetSchema() - int32(down), above.dense(down), below.dense(down), true
}

// sparse are the non-empty buckets of one side, by rising index. OTLP's index is
// one less than Prometheus' for the same bounds: bucket i of Prometheus has base^i
// as its upper bound, that of OTLP as its lower bound.
type sparse struct {
	indexes []int64
	counts  []uint64
	total   uint64
}

// sparseBuckets decodes spans and deltas. It is not ok if their numbers differ, a
// count is negative, or an index does not fit into 32 bits.
func sparseBuckets(spans []*dto.BucketSpan, deltas []int64) (sparse, bool) {
	var (
		found sparse
		index int64 = -1 // of OTLP
		value int64
	)
	for i, span := range spans {
		if i > 0 && span.GetOffset() < 0 || int(span.GetLength()) > len(deltas) {
			return sparse{}, false
		}
		index += int64(span.GetOffset())
		for _, delta := range deltas[:span.GetLength()] {
			value += delta // an overflow is negative, and refused
			if value < 0 || index < math.MinInt32 || index > math.MaxInt32 {
				return sparse{}, false
			}
			if value > 0 {
				found.indexes, found.counts = append(found.indexes, index), append(found.counts, uint64(value))
				found.total += uint64(value)
				if found.total > math.MaxInt64 {
					return sparse{}, false
				}
			}
			index++
		}
		deltas = deltas[span.GetLength():]
	}
	return found, len(deltas) == 0
}

// downscale is how often neighbouring buckets must be merged for at most maxDense
// to remain.
func (s sparse) downscale() (down uint) {
	if len(s.indexes) == 0 {
		return 0
	}
	first, last := s.indexes[0], s.indexes[len(s.indexes)-1]
	for last>>down-first>>down >= maxDense {
		down++
	}
	return down
}

// dense includes empty buckets, and merges each 2^down neighbours.
func (s sparse) dense(down uint) metricdata.ExponentialBucket {
	if len(s.indexes) == 0 {
		return metricdata.ExponentialBucket{}
	}
	first, last := s.indexes[0]>>down, s.indexes[len(s.indexes)-1]>>down
	counts := make([]uint64, last-first+1)
	for i, index := range s.indexes {
		counts[index>>down-first] += s.counts[i]
	}
	return metricdata.ExponentialBucket{Offset: int32(first), Counts: counts}
}
