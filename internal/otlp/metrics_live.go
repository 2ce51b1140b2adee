package otlp

import (
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// liveConversion makes OpenTelemetry's metrics of those that a registry has
// gathered: of the process, and the histograms. Names, labels and values stay
// as they are.
type liveConversion struct {
	at          time.Time // of samples that state no time of their own
	exponential bool      // native buckets where a histogram has both kinds
}

func (c liveConversion) metrics(families []*dto.MetricFamily) []metricdata.Metrics {
	all := make([]metricdata.Metrics, 0, len(families))
	for _, family := range families {
		data := c.data(family)
		if data == nil {
			continue
		}
		all = append(all, metricdata.Metrics{
			Name: family.GetName(), Description: family.GetHelp(), Unit: ucum(unitOf(family)), Data: data,
		})
	}
	return all
}

// unitOf is the unit that a family states, or else the one that its name ends
// with.
func unitOf(family *dto.MetricFamily) string {
	if unit := family.GetUnit(); unit != "" {
		return unit
	}
	name := strings.TrimSuffix(family.GetName(), "_total")
	return name[strings.LastIndexByte(name, '_')+1:]
}

// data is nil if there is nothing in the family, or what OpenTelemetry has no
// kind for: histograms that may shrink.
func (c liveConversion) data(family *dto.MetricFamily) metricdata.Aggregation {
	switch family.GetType() {
	case dto.MetricType_COUNTER:
		if points := c.numbers(family); len(points) > 0 {
			return sum(family.GetName(), points)
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

func (c liveConversion) numbers(family *dto.MetricFamily) []metricdata.DataPoint[float64] {
	points := make([]metricdata.DataPoint[float64], 0, len(family.GetMetric()))
	for _, m := range family.GetMetric() {
		point := metricdata.DataPoint[float64]{Attributes: pairSet(m.GetLabel()), Time: c.time(m)}
		switch {
		case m.Counter != nil:
			point.Value = m.GetCounter().GetValue()
			point.StartTime = timeOf(m.GetCounter().GetCreatedTimestamp())
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

func (c liveConversion) summaries(family *dto.MetricFamily) []metricdata.SummaryDataPoint {
	points := make([]metricdata.SummaryDataPoint, 0, len(family.GetMetric()))
	for _, m := range family.GetMetric() {
		summary := m.GetSummary()
		if summary == nil {
			continue
		}
		point := metricdata.SummaryDataPoint{
			Attributes: pairSet(m.GetLabel()), Time: c.time(m), StartTime: timeOf(summary.GetCreatedTimestamp()),
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

func (c liveConversion) time(m *dto.Metric) time.Time {
	if m.TimestampMs != nil {
		return time.UnixMilli(m.GetTimestampMs())
	}
	return c.at
}

// timeOf is the zero time, which stands for an unknown one, if there is no
// timestamp or none that a calendar has.
func timeOf(timestamp *timestamppb.Timestamp) time.Time {
	if timestamp.CheckValid() != nil {
		return time.Time{}
	}
	return timestamp.AsTime()
}

// pairSet is labelSet for the labels of a registry's metric.
func pairSet(pairs []*dto.LabelPair) attribute.Set {
	return attribute.NewSet(pairAttributes(pairs)...)
}

func pairAttributes(pairs []*dto.LabelPair) []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, len(pairs))
	for _, pair := range pairs {
		if pair.GetValue() != "" {
			attributes = append(attributes, attribute.String(pair.GetName(), strings.ToValidUTF8(pair.GetValue(), "\uFFFD")))
		}
	}
	return attributes
}
