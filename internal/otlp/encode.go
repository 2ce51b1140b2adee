package otlp

import (
	"math"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/otlp/setcache"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
)

// encoder encodes metrics as requests equal to those of the SDK's exporters,
// which tests compare with, at a tenth of their cost: the SDK allocates three
// messages for each attribute of each point at every push. It can also encode
// what metricdata cannot express, that a series has ended (see noValue). It is
// not safe for concurrent use.
type encoder struct {
	// attributes are encoded as fields of a number's point: most of a push, and
	// the same as in the push before.
	attributes *setcache.Cache[attribute.Set, []byte]
}

func newEncoder() *encoder { return &encoder{attributes: setcache.New(encodeAttributes)} }

// encodeAttributes returns bytes that must not be changed.
func encodeAttributes(set attribute.Set) []byte {
	// It fails for text that is not UTF-8 only; setMessages replaces that.
	bytes, _ := proto.Marshal(&metricspb.NumberDataPoint{Attributes: setMessages(set)})
	return bytes
}

// request returns a request that shares only the slices of histograms with the
// metrics. Invalid UTF-8 is replaced: one such byte would fail the whole request.
func (e *encoder) request(metrics *metricdata.ResourceMetrics) *collectorpb.ExportMetricsServiceRequest {
	converted := &metricspb.ResourceMetrics{
		Resource:  &resourcepb.Resource{Attributes: setMessages(*metrics.Resource.Set())},
		SchemaUrl: metrics.Resource.SchemaURL(),
	}
	for i := range metrics.ScopeMetrics {
		scope := &metrics.ScopeMetrics[i]
		message := &metricspb.ScopeMetrics{
			Scope: &commonpb.InstrumentationScope{
				Name: valid(scope.Scope.Name), Version: valid(scope.Scope.Version),
				Attributes: setMessages(scope.Scope.Attributes),
			},
			SchemaUrl: valid(scope.Scope.SchemaURL),
			Metrics:   make([]*metricspb.Metric, 0, len(scope.Metrics)),
		}
		for j := range scope.Metrics {
			if metric := e.metric(&scope.Metrics[j]); metric != nil {
				message.Metrics = append(message.Metrics, metric)
			}
		}
		converted.ScopeMetrics = append(converted.ScopeMetrics, message)
	}
	return &collectorpb.ExportMetricsServiceRequest{ResourceMetrics: []*metricspb.ResourceMetrics{converted}}
}

// metric is nil for a kind that neither naming nor conversion returns, such as
// integers.
func (e *encoder) metric(m *metricdata.Metrics) *metricspb.Metric {
	message := &metricspb.Metric{Name: valid(m.Name), Description: valid(m.Description), Unit: valid(m.Unit)}
	switch data := m.Data.(type) {
	case metricdata.Gauge[float64]:
		message.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: e.numberPoints(data.DataPoints)}}
	case metricdata.Sum[float64]:
		message.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{
			AggregationTemporality: temporality(data.Temporality), IsMonotonic: data.IsMonotonic, DataPoints: e.numberPoints(data.DataPoints)}}
	case metricdata.Histogram[float64]:
		message.Data = &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{
			AggregationTemporality: temporality(data.Temporality), DataPoints: histogramPoints(data.DataPoints)}}
	case metricdata.ExponentialHistogram[float64]:
		message.Data = &metricspb.Metric_ExponentialHistogram{ExponentialHistogram: &metricspb.ExponentialHistogram{
			AggregationTemporality: temporality(data.Temporality), DataPoints: exponentialPoints(data.DataPoints)}}
	case metricdata.Summary:
		message.Data = &metricspb.Metric_Summary{Summary: &metricspb.Summary{DataPoints: summaryPoints(data.DataPoints)}}
	default:
		return nil
	}
	return message
}

func temporality(t metricdata.Temporality) metricspb.AggregationTemporality {
	switch t {
	case metricdata.CumulativeTemporality:
		return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	case metricdata.DeltaTemporality:
		return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	}
	return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_UNSPECIFIED
}

// nanoseconds since 1970; 0, an unknown time, for the zero time.
func nanoseconds(t time.Time) uint64 {
	return uint64(max(0, t.UnixNano()))
}

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func setMessages(set attribute.Set) []*commonpb.KeyValue { return attributeMessages(set.ToSlice()) }

func attributeMessages(attributes []attribute.KeyValue) []*commonpb.KeyValue {
	if len(attributes) == 0 {
		return nil
	}
	list := make([]*commonpb.KeyValue, len(attributes))
	for i, kv := range attributes {
		list[i] = &commonpb.KeyValue{Key: valid(string(kv.Key)), Value: valueMessage(kv.Value)}
	}
	return list
}

// valueMessage has the types of our attributes; all others become strings.
func valueMessage(value attribute.Value) *commonpb.AnyValue {
	switch value.Type() {
	case attribute.BOOL:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: value.AsBool()}}
	case attribute.INT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value.AsInt64()}}
	case attribute.FLOAT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: value.AsFloat64()}}
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: valid(value.String())}}
}

// noValue in place of a value, or of a sum, marks the end of a series. It is
// Prometheus' stale NaN.
func noValue() float64 { return math.Float64frombits(staleNaN) }

const staleNaN = 0x7ff0000000000002

// pointFlags returns the flags of a point with this value or sum.
func pointFlags(value float64) uint32 {
	if math.Float64bits(value) == staleNaN {
		return uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
	}
	return 0
}

// numberPoints encodes the points of a gauge or a sum. Nearly all points are such,
// so that messages are allocated in slabs.
func (e *encoder) numberPoints(points []metricdata.DataPoint[float64]) []*metricspb.NumberDataPoint {
	var (
		slab     = make([]metricspb.NumberDataPoint, len(points))
		pointers = make([]*metricspb.NumberDataPoint, len(points))
		values   = make([]metricspb.NumberDataPoint_AsDouble, len(points))
	)
	for i := range points {
		point, message := &points[i], &slab[i]
		message.StartTimeUnixNano, message.TimeUnixNano = nanoseconds(point.StartTime), nanoseconds(point.Time)
		message.Exemplars = exemplarMessages(point.Exemplars)
		if message.Flags = pointFlags(point.Value); message.Flags == 0 {
			values[i].AsDouble = point.Value
			message.Value = &values[i]
		}
		// protobuf copies unknown fields as they are: these are the attributes.
		message.ProtoReflect().SetUnknown(e.attributes.Get(point.Attributes))
		pointers[i] = message
	}
	return pointers
}

func histogramPoints(points []metricdata.HistogramDataPoint[float64]) []*metricspb.HistogramDataPoint {
	messages := make([]*metricspb.HistogramDataPoint, len(points))
	for i := range points {
		point := &points[i]
		message := &metricspb.HistogramDataPoint{
			Attributes:        setMessages(point.Attributes),
			StartTimeUnixNano: nanoseconds(point.StartTime), TimeUnixNano: nanoseconds(point.Time),
			Count: point.Count, BucketCounts: point.BucketCounts, ExplicitBounds: point.Bounds,
			Exemplars: exemplarMessages(point.Exemplars), Flags: pointFlags(point.Sum),
			Min: extremum(point.Min), Max: extremum(point.Max),
		}
		// Prometheus marks the series of the sum as stale only if there is a sum.
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
			Exemplars: exemplarMessages(point.Exemplars), Flags: pointFlags(point.Sum),
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

func extremum(extrema metricdata.Extrema[float64]) *float64 {
	if value, ok := extrema.Value(); ok {
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

func exemplarMessages(list []metricdata.Exemplar[float64]) []*metricspb.Exemplar {
	if len(list) == 0 {
		return nil
	}
	messages := make([]*metricspb.Exemplar, len(list))
	for i := range list {
		exemplar := &list[i]
		messages[i] = &metricspb.Exemplar{
			FilteredAttributes: attributeMessages(exemplar.FilteredAttributes),
			TimeUnixNano:       nanoseconds(exemplar.Time),
			SpanId:             exemplar.SpanID, TraceId: exemplar.TraceID,
			Value: &metricspb.Exemplar_AsDouble{AsDouble: exemplar.Value},
		}
	}
	return messages
}
