package otlp

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
)

// messages makes requests of metrics, the same that the SDK's exporters make,
// which tests compare with, at a tenth of their cost: they make three
// messages of each attribute of each point at every push. It also tells what
// metricdata has no word for, that a series has no value any more (see
// noValue). It is not safe for concurrent use.
type messages struct {
	// encoded are attributes as bytes of a number's point: most of a push, and
	// the same as in the push before.
	encoded *sets[attribute.Set, []byte]
}

func newMessages() *messages { return &messages{encoded: newSets(encode)} }

// encode returns bytes that must not be changed.
func encode(set attribute.Set) []byte {
	// It fails for text that is not UTF-8, of which there is none.
	bytes, _ := proto.Marshal(&metricspb.NumberDataPoint{Attributes: setMessages(set)})
	return bytes
}

// request is a request of its own, but for the slices of histograms, which are
// those of the metrics. Text that is not UTF-8 is made so: one such byte would
// make the whole request impossible.
func (m *messages) request(metrics *metricdata.ResourceMetrics) *collectorpb.ExportMetricsServiceRequest {
	of := &metricspb.ResourceMetrics{Resource: resourceMessage(metrics.Resource), SchemaUrl: metrics.Resource.SchemaURL()}
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
			if metric := m.metric(&scope.Metrics[j]); metric != nil {
				message.Metrics = append(message.Metrics, metric)
			}
		}
		of.ScopeMetrics = append(of.ScopeMetrics, message)
	}
	return &collectorpb.ExportMetricsServiceRequest{ResourceMetrics: []*metricspb.ResourceMetrics{of}}
}

func resourceMessage(of *resource.Resource) *resourcepb.Resource {
	return &resourcepb.Resource{Attributes: setMessages(*of.Set())}
}

// metric is nil for a kind that there is not.
func (m *messages) metric(of *metricdata.Metrics) *metricspb.Metric {
	message := &metricspb.Metric{Name: valid(of.Name), Description: valid(of.Description), Unit: valid(of.Unit)}
	switch data := of.Data.(type) {
	case metricdata.Gauge[float64]:
		message.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: numberPoints(m, data.DataPoints)}}
	case metricdata.Gauge[int64]:
		message.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: numberPoints(m, data.DataPoints)}}
	case metricdata.Sum[float64]:
		message.Data = sumMessage(data.Temporality, data.IsMonotonic, numberPoints(m, data.DataPoints))
	case metricdata.Sum[int64]:
		message.Data = sumMessage(data.Temporality, data.IsMonotonic, numberPoints(m, data.DataPoints))
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

func sumMessage(over metricdata.Temporality, monotonic bool, points []*metricspb.NumberDataPoint) *metricspb.Metric_Sum {
	return &metricspb.Metric_Sum{Sum: &metricspb.Sum{
		AggregationTemporality: temporality(over), IsMonotonic: monotonic, DataPoints: points}}
}

func temporality(over metricdata.Temporality) metricspb.AggregationTemporality {
	switch over {
	case metricdata.CumulativeTemporality:
		return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	case metricdata.DeltaTemporality:
		return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	}
	return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_UNSPECIFIED
}

// nanoseconds are those since 1970; 0, which stands for an unknown time, for
// the zero time.
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

// valueMessage has the kinds that our attributes are of; all others are texts.
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

// noValue in the place of a value, or of a sum, says that a series has none
// any more. It is the NaN by which Prometheus marks the same.
func noValue() float64 { return math.Float64frombits(staleNaN) }

const staleNaN = 0x7ff0000000000002

// flagsOf are the flags of a point with this value or sum.
func flagsOf(value float64) uint32 {
	if math.Float64bits(value) == staleNaN {
		return uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
	}
	return 0
}
