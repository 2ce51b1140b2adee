package otlp

import (
	"math"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

const (
	// minScale and maxScale are the schemas of Prometheus whose buckets are
	// bounded by powers: each is the scale of the same number in OTLP.
	// https://prometheus.io/docs/specs/native_histograms/#schema
	minScale, maxScale = -4, 8
	// maxDense is how many buckets a side of a histogram may have, the empty
	// ones between others counted. Beyond that neighbours are put together:
	// Prometheus skips gaps, OTLP writes them out.
	maxDense = 1024
)

// isNative reports whether a histogram has buckets of powers, or would have
// if anything had been observed.
func isNative(h *dto.Histogram) bool {
	return h.Schema != nil && h.GetSchema() >= minScale && h.GetSchema() <= maxScale &&
		(len(h.GetPositiveSpan())+len(h.GetNegativeSpan()) > 0 || h.GetZeroThreshold() > 0 || h.GetZeroCount() > 0)
}

// exponentialBuckets are the native buckets of a histogram. It is not ok if
// they contradict themselves or the count of all observations. (There may be
// fewer in the buckets: an observation that is no number is in none.)
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
	down := max(above.tooFine(), below.tooFine())
	return h.GetSchema() - int32(down), above.dense(down), below.dense(down), true
}

// sparse are the buckets of one side that count something, by rising index.
// That of OTLP is one less than Prometheus', for the same bounds: Prometheus
// counts in bucket i what is at most base^i, OTLP what is above.
type sparse struct {
	indexes []int64
	counts  []uint64
	total   uint64
}

// sparseBuckets decodes spans and deltas. It is not ok if there are more of
// the one than of the other, a count is negative, or an index has no 32 bits.
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

// tooFine is how often neighbouring buckets must be put together for there to
// be few enough.
func (s sparse) tooFine() (down uint) {
	if len(s.indexes) == 0 {
		return 0
	}
	first, last := s.indexes[0], s.indexes[len(s.indexes)-1]
	for last>>down-first>>down >= maxDense {
		down++
	}
	return down
}

// dense writes the gaps out, after each 2^down neighbours have become one.
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
