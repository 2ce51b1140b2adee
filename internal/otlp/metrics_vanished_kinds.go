package otlp

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// appendSets appends the attributes of all points. Summaries have none here,
// and are never called off: those of the Go runtime last as long as it does.
func appendSets(sets []attribute.Set, data metricdata.Aggregation) []attribute.Set {
	switch data := data.(type) {
	case metricdata.Gauge[float64]:
		for i := range data.DataPoints {
			sets = append(sets, data.DataPoints[i].Attributes)
		}
	case metricdata.Sum[float64]:
		for i := range data.DataPoints {
			sets = append(sets, data.DataPoints[i].Attributes)
		}
	case metricdata.Histogram[float64]:
		for i := range data.DataPoints {
			sets = append(sets, data.DataPoints[i].Attributes)
		}
	case metricdata.ExponentialHistogram[float64]:
		for i := range data.DataPoints {
			sets = append(sets, data.DataPoints[i].Attributes)
		}
	}
	return sets
}

// emptied is the same without points.
func emptied(data metricdata.Aggregation) metricdata.Aggregation {
	switch data := data.(type) {
	case metricdata.Gauge[float64]:
		return metricdata.Gauge[float64]{}
	case metricdata.Sum[float64]:
		return metricdata.Sum[float64]{Temporality: data.Temporality, IsMonotonic: data.IsMonotonic}
	case metricdata.Histogram[float64]:
		return metricdata.Histogram[float64]{Temporality: data.Temporality}
	case metricdata.ExponentialHistogram[float64]:
		return metricdata.ExponentialHistogram[float64]{Temporality: data.Temporality}
	}
	return nil
}

// boundsOf are those of the first point: all of a metric have the same.
func boundsOf(data metricdata.Aggregation) []float64 {
	if histogram, ok := data.(metricdata.Histogram[float64]); ok && len(histogram.DataPoints) > 0 {
		return histogram.DataPoints[0].Bounds
	}
	return nil
}

// join returns the data with the points that have no value. A metric that was
// of another kind when the series were there keeps to its own.
func (absent *pushedMetric) join(data metricdata.Aggregation, at time.Time) metricdata.Aggregation {
	switch data := data.(type) {
	case metricdata.Gauge[float64]:
		data.DataPoints = absent.joinNumbers(data.DataPoints, at)
		return data
	case metricdata.Sum[float64]:
		data.DataPoints = absent.joinNumbers(data.DataPoints, at)
		return data
	case metricdata.Histogram[float64]:
		data.DataPoints = data.DataPoints[:len(data.DataPoints):len(data.DataPoints)]
		for _, series := range absent.gone {
			data.DataPoints = append(data.DataPoints, metricdata.HistogramDataPoint[float64]{
				Attributes: series.set, Time: at, Sum: noValue(), Bounds: absent.bounds, BucketCounts: make([]uint64, len(absent.bounds)+1),
			})
		}
		return data
	case metricdata.ExponentialHistogram[float64]:
		data.DataPoints = data.DataPoints[:len(data.DataPoints):len(data.DataPoints)]
		for _, series := range absent.gone {
			data.DataPoints = append(data.DataPoints, metricdata.ExponentialHistogramDataPoint[float64]{
				Attributes: series.set, Time: at, Sum: noValue(),
			})
		}
		return data
	}
	return data
}

func (absent *pushedMetric) joinNumbers(points []metricdata.DataPoint[float64], at time.Time) []metricdata.DataPoint[float64] {
	points = points[:len(points):len(points)]
	for _, series := range absent.gone {
		points = append(points, metricdata.DataPoint[float64]{Attributes: series.set, Time: at, Value: noValue()})
	}
	return points
}
