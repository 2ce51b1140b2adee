package otlp

import (
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// numberPoints are the points of a gauge or a sum: nearly all that there are,
// so that what is of one kind lies in one slab.
func numberPoints[N int64 | float64](m *messages, points []metricdata.DataPoint[N]) []*metricspb.NumberDataPoint {
	var (
		slab     = make([]metricspb.NumberDataPoint, len(points))
		pointers = make([]*metricspb.NumberDataPoint, len(points))
		values   = newNumbers[N](len(points))
	)
	for i := range points {
		point, message := &points[i], &slab[i]
		message.StartTimeUnixNano, message.TimeUnixNano = nanoseconds(point.StartTime), nanoseconds(point.Time)
		message.Exemplars = exemplarMessages(point.Exemplars)
		if message.Flags = flagsOf(float64(point.Value)); message.Flags == 0 {
			values.set(message, i, point.Value)
		}
		// To the encoder, fields that it does not know are bytes that it
		// copies, which is what these are for.
		message.ProtoReflect().SetUnknown(m.encoded.of(point.Attributes))
		pointers[i] = message
	}
	return pointers
}

// numbers hands out the messages that hold values.
type numbers[N int64 | float64] struct {
	doubles  []metricspb.NumberDataPoint_AsDouble
	integers []metricspb.NumberDataPoint_AsInt
}

func newNumbers[N int64 | float64](size int) numbers[N] {
	var zero N
	if _, integer := any(zero).(int64); integer {
		return numbers[N]{integers: make([]metricspb.NumberDataPoint_AsInt, size)}
	}
	return numbers[N]{doubles: make([]metricspb.NumberDataPoint_AsDouble, size)}
}

func (n *numbers[N]) set(message *metricspb.NumberDataPoint, i int, value N) {
	if n.doubles != nil {
		n.doubles[i].AsDouble = float64(value)
		message.Value = &n.doubles[i]
		return
	}
	n.integers[i].AsInt = int64(value)
	message.Value = &n.integers[i]
}

func histogramPoints(points []metricdata.HistogramDataPoint[float64]) []*metricspb.HistogramDataPoint {
	messages := make([]*metricspb.HistogramDataPoint, len(points))
	for i := range points {
		point := &points[i]
		message := &metricspb.HistogramDataPoint{
			Attributes:        setMessages(point.Attributes),
			StartTimeUnixNano: nanoseconds(point.StartTime), TimeUnixNano: nanoseconds(point.Time),
			Count: point.Count, BucketCounts: point.BucketCounts, ExplicitBounds: point.Bounds,
			Exemplars: exemplarMessages(point.Exemplars), Flags: flagsOf(point.Sum),
			Min: extremum(point.Min), Max: extremum(point.Max),
		}
		// To Prometheus the sum is a series of its own, which it takes to be
		// called off only where there is a sum, as it does with each bucket.
		if message.Sum = new(float64); message.Flags == 0 {
			*message.Sum = point.Sum
		}
		messages[i] = message
	}
	return messages
}

func exponentialPoints(points []metricdata.ExponentialHistogramDataPoint[float64]) []*metricspb.ExponentialHistogramDataPoint {
	messages := make([]*metricspb.ExponentialHistogramDataPoint, len(points))
	for i := range points {
		point := &points[i]
		message := &metricspb.ExponentialHistogramDataPoint{
			Attributes:        setMessages(point.Attributes),
			StartTimeUnixNano: nanoseconds(point.StartTime), TimeUnixNano: nanoseconds(point.Time),
			Count: point.Count, Scale: point.Scale, ZeroCount: point.ZeroCount, ZeroThreshold: point.ZeroThreshold,
			Positive: bucketsMessage(point.PositiveBucket), Negative: bucketsMessage(point.NegativeBucket),
			Exemplars: exemplarMessages(point.Exemplars), Flags: flagsOf(point.Sum),
			Min: extremum(point.Min), Max: extremum(point.Max),
		}
		if message.Flags == 0 {
			message.Sum = &point.Sum
		}
		messages[i] = message
	}
	return messages
}

func bucketsMessage(bucket metricdata.ExponentialBucket) *metricspb.ExponentialHistogramDataPoint_Buckets {
	return &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: bucket.Offset, BucketCounts: bucket.Counts}
}

func extremum(of metricdata.Extrema[float64]) *float64 {
	if value, known := of.Value(); known {
		return &value
	}
	return nil
}

func summaryPoints(points []metricdata.SummaryDataPoint) []*metricspb.SummaryDataPoint {
	messages := make([]*metricspb.SummaryDataPoint, len(points))
	for i := range points {
		point := &points[i]
		message := &metricspb.SummaryDataPoint{
			Attributes:        setMessages(point.Attributes),
			StartTimeUnixNano: nanoseconds(point.StartTime), TimeUnixNano: nanoseconds(point.Time),
			Count: point.Count, Sum: point.Sum,
		}
		for _, quantile := range point.QuantileValues {
			message.QuantileValues = append(message.QuantileValues,
				&metricspb.SummaryDataPoint_ValueAtQuantile{Quantile: quantile.Quantile, Value: quantile.Value})
		}
		messages[i] = message
	}
	return messages
}

func exemplarMessages[N int64 | float64](list []metricdata.Exemplar[N]) []*metricspb.Exemplar {
	if len(list) == 0 {
		return nil
	}
	messages := make([]*metricspb.Exemplar, len(list))
	for i := range list {
		exemplar := &list[i]
		message := &metricspb.Exemplar{
			FilteredAttributes: attributeMessages(exemplar.FilteredAttributes),
			TimeUnixNano:       nanoseconds(exemplar.Time),
			SpanId:             exemplar.SpanID, TraceId: exemplar.TraceID,
		}
		switch value := any(exemplar.Value).(type) {
		case float64:
			message.Value = &metricspb.Exemplar_AsDouble{AsDouble: value}
		case int64:
			message.Value = &metricspb.Exemplar_AsInt{AsInt: value}
		}
		messages[i] = message
	}
	return messages
}
