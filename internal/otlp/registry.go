package otlp

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/otlp/naming"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// conversion converts metrics gathered from a registry, those of the process and
// the histograms, to OpenTelemetry. Names, labels and values do not change.
type conversion struct {
	at          time.Time // of samples without a timestamp
	exponential bool      // native buckets if a histogram has both kinds
}

func (c conversion) metrics(families []*dto.MetricFamily) []metricdata.Metrics {
	all := make([]metricdata.Metrics, 0, len(families))
	for _, family := range families {
		data := c.data(family)
		if data == nil {
			continue
		}
		all = append(all, metricdata.Metrics{
			Name: family.GetName(), Description: family.GetHelp(), Unit: naming.UCUM(familyUnit(family)), Data: data,
		})
	}
	return all
}

// familyUnit is the family's unit, or else the one that its name ends with.
func familyUnit(family *dto.MetricFamily) string {
	if unit := family.GetUnit(); unit != "" {
		return unit
	}
	name := strings.TrimSuffix(family.GetName(), "_total")
	return name[strings.LastIndexByte(name, '_')+1:]
}

// data is nil if the family is empty, or OpenTelemetry has no such kind: gauge
// histograms.
func (c conversion) data(family *dto.MetricFamily) metricdata.Aggregation {
	switch family.GetType() {
	case dto.MetricType_COUNTER:
		if points := c.numbers(family); len(points) > 0 {
			return naming.Sum(family.GetName(), points)
		}
	case dto.MetricType_GAUGE, dto.MetricType_UNTYPED:
		if points := c.numbers(family); len(points) > 0 {
			return metricdata.Gauge[float64]{DataPoints: points}
		}
	case dto.MetricType_SUMMARY:
		if points := c.summaries(family); len(points) > 0 {
			return metricdata.Summary{DataPoints: points}
		}
	case dto.MetricType_HISTOGRAM:
		return c.histograms(family)
	}
	return nil
}

func (c conversion) numbers(family *dto.MetricFamily) []metricdata.DataPoint[float64] {
	points := make([]metricdata.DataPoint[float64], 0, len(family.GetMetric()))
	for _, m := range family.GetMetric() {
		point := metricdata.DataPoint[float64]{Attributes: labelSet(m.GetLabel()), Time: c.time(m)}
		switch {
		case m.Counter != nil:
			point.Value = m.GetCounter().GetValue()
			point.StartTime = exemplarTime(m.GetCounter().GetCreatedTimestamp())
			point.Exemplars = exemplars(m.GetCounter().GetExemplar())
		case m.Gauge != nil:
			point.Value = m.GetGauge().GetValue()
		case m.Untyped != nil:
			point.Value = m.GetUntyped().GetValue()
		default:
			continue
		}
		points = append(points, point)
	}
	return points
}

func (c conversion) summaries(family *dto.MetricFamily) []metricdata.SummaryDataPoint {
	points := make([]metricdata.SummaryDataPoint, 0, len(family.GetMetric()))
	for _, m := range family.GetMetric() {
		summary := m.GetSummary()
		if summary == nil {
			continue
		}
		point := metricdata.SummaryDataPoint{
			Attributes: labelSet(m.GetLabel()), Time: c.time(m), StartTime: exemplarTime(summary.GetCreatedTimestamp()),
			Count: summary.GetSampleCount(), Sum: summary.GetSampleSum(),
		}
		for _, quantile := range summary.GetQuantile() {
			point.QuantileValues = append(point.QuantileValues,
				metricdata.QuantileValue{Quantile: quantile.GetQuantile(), Value: quantile.GetValue()})
		}
		points = append(points, point)
	}
	return points
}

func (c conversion) time(m *dto.Metric) time.Time {
	if m.TimestampMs != nil {
		return time.UnixMilli(m.GetTimestampMs())
	}
	return c.at
}

// exemplarTime is the zero time, an unknown time, if there is no valid timestamp.
func exemplarTime(timestamp *timestamppb.Timestamp) time.Time {
	if timestamp.CheckValid() != nil {
		return time.Time{}
	}
	return timestamp.AsTime()
}

// labelSet returns labels as attributes, without those that are empty.
func labelSet(labels []*dto.LabelPair) attribute.Set {
	return attribute.NewSet(labelAttributes(labels)...)
}

func labelAttributes(pairs []*dto.LabelPair) []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, len(pairs))
	for _, pair := range pairs {
		if pair.GetValue() != "" {
			attributes = append(attributes, attribute.String(pair.GetName(), strings.ToValidUTF8(pair.GetValue(), "\uFFFD")))
		}
	}
	return attributes
}

// The labels of an exemplar that identify a span, as in Prometheus and its OTLP
// receiver.
const (
	traceLabel = "trace_id"
	spanLabel  = "span_id"
)

// exemplars converts those that are not nil. Prometheus has ids as labels of
// hexadecimal digits, OTLP as bytes: with digits instead collectors reject the
// whole request.
func exemplars(list ...*dto.Exemplar) []metricdata.Exemplar[float64] {
	var all []metricdata.Exemplar[float64]
	for _, e := range list {
		if e == nil {
			continue
		}
		traceID, spanID := spanIDs(e.GetLabel())
		all = append(all, metricdata.Exemplar[float64]{
			FilteredAttributes: labelAttributes(withoutIDs(e.GetLabel())),
			Time:               exemplarTime(e.GetTimestamp()), Value: e.GetValue(),
			TraceID: traceID, SpanID: spanID,
		})
	}
	return all
}

// spanIDs returns the ids of an exemplar's span. Both are nil if the trace's is
// missing or malformed; the span's alone is nil if only it is.
func spanIDs(labels []*dto.LabelPair) (traceID, spanID []byte) {
	for _, label := range labels {
		switch label.GetName() {
		case traceLabel:
			traceID = identifier(label.GetValue(), len(trace.TraceID{}))
		case spanLabel:
			spanID = identifier(label.GetValue(), len(trace.SpanID{}))
		}
	}
	if traceID == nil {
		return nil, nil
	}
	return traceID, spanID
}

// identifier decodes an id of size bytes; nil if it is invalid, as an id of
// zeroes is by the specification.
func identifier(digits string, size int) []byte {
	id, err := hex.DecodeString(digits)
	if err != nil || len(id) != size {
		return nil
	}
	for _, b := range id {
		if b != 0 {
			return id
		}
	}
	return nil
}

func withoutIDs(labels []*dto.LabelPair) []*dto.LabelPair {
	var rest []*dto.LabelPair
	for _, label := range labels {
		if name := label.GetName(); name != traceLabel && name != spanLabel {
			rest = append(rest, label)
		}
	}
	return rest
}
