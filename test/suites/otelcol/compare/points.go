package compare

import (
	"fmt"
	"iter"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// point has the methods that points of all kinds have.
type point interface {
	Attributes() pcommon.Map
	StartTimestamp() pcommon.Timestamp
	Timestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}

// points returns the points of a metric with their times.
func points(m pmetric.Metric) iter.Seq2[uint64, series] {
	return func(yield func(uint64, series) bool) {
		give := func(kind string, p point, values parts) bool {
			return yield(uint64(p.Timestamp()), series{
				metric: m.Name(), attributes: stringMap(p.Attributes()), kind: kind, unit: m.Unit(),
				help: m.Description(), start: uint64(p.StartTimestamp()), parts: values,
				ended: p.Flags().NoRecordedValue(),
			})
		}
		each(m, give)
	}
}

func each(m pmetric.Metric, give func(string, point, parts) bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			if !give(gauge, p, value(p)) {
				return
			}
		}
	case pmetric.MetricTypeSum:
		kind := upDownCounter
		if m.Sum().IsMonotonic() {
			kind = counter
		}
		for _, p := range m.Sum().DataPoints().All() {
			if !give(cumulative(kind, m.Sum().AggregationTemporality()), p, value(p)) {
				return
			}
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			if !give(cumulative(histogram, m.Histogram().AggregationTemporality()), p, explicitParts(p)) {
				return
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			if !give(cumulative(exponential, m.ExponentialHistogram().AggregationTemporality()), p, exponentialParts(p)) {
				return
			}
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			values := parts{"count": float64(p.Count()), "sum": p.Sum()}
			for _, q := range p.QuantileValues().All() {
				values["quantile "+number(q.Quantile())] = q.Value()
			}
			if !give(summary, p, values) {
				return
			}
		}
	}
}

// cumulative returns the name of a kind. With delta temporality, it is another
// kind.
func cumulative(kind string, temporality pmetric.AggregationTemporality) string {
	if temporality == pmetric.AggregationTemporalityCumulative {
		return kind
	}
	return fmt.Sprintf("%s %s", temporality, kind)
}

// value returns the value of a point of a gauge or a sum.
func value(p pmetric.NumberDataPoint) parts {
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeEmpty:
		return parts{}
	case pmetric.NumberDataPointValueTypeInt:
		return parts{"": float64(p.IntValue())}
	default:
		return parts{"": p.DoubleValue()}
	}
}

// explicitParts cumulates the buckets, as Prometheus does.
func explicitParts(p pmetric.HistogramDataPoint) parts {
	all := parts{"count": float64(p.Count()), "sum": p.Sum()}
	below := uint64(0)
	for i, count := range p.BucketCounts().All() {
		below += count
		if i < p.ExplicitBounds().Len() {
			all["le "+number(p.ExplicitBounds().At(i))] = float64(below)
		} else {
			all["le +Inf"] = float64(below)
		}
	}
	return all
}

func exponentialParts(p pmetric.ExponentialHistogramDataPoint) parts {
	all := parts{"count": float64(p.Count()), "sum": p.Sum(), "zero": float64(p.ZeroCount())}
	for sign, buckets := range map[string]pmetric.ExponentialHistogramDataPointBuckets{
		"positive": p.Positive(), "negative": p.Negative(),
	} {
		for i, count := range buckets.BucketCounts().All() {
			if count > 0 {
				all[bucketName(sign, p.Scale(), buckets.Offset()+int32(i))] = float64(count)
			}
		}
	}
	return all
}

// bucketName returns the name of one bucket of an exponential histogram.
func bucketName(sign string, scale, index int32) string {
	return fmt.Sprintf("%s bucket %d of scale %d", sign, index, scale)
}
