package otlp

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

const (
	// mostStale is the most series to mark as stale. Those beyond it get no
	// marker: backends drop a series by themselves after some minutes.
	mostStale = 20_000
	// staleTimeout is how long markers are sent.
	staleTimeout = 10 * time.Minute
)

// staleSeries adds stale markers, points without a value, for series that were
// pushed and have ended, so that a backend does not show the last value for some
// minutes more. It adds them until a push is accepted. It is not safe for
// concurrent use.
type staleSeries struct {
	last       map[string]*pushedMetric // the metrics of the newest push, by name
	ended      map[string]*pushedMetric // the series to mark as stale
	count      int                      // of all ended series
	generation int                      // of pushes
	scratch    []attribute.Set
}

// pushedMetric is a metric without its points.
type pushedMetric struct {
	metrics metricdata.Metrics
	bounds  []float64 // of a histogram with explicit buckets: Prometheus has a series for each
	live    bool      // a live metric, not of a snapshot

	generation int             // in staleSeries.last: the newest push that had it
	sets       []attribute.Set // in staleSeries.last

	ended map[attribute.Distinct]endedSeries // in staleSeries.ended
}

type endedSeries struct {
	set   attribute.Set
	since time.Duration // elapsed
}

// pushTimes are the times of the points of a push. A stale marker has the time
// that the point would have: with the snapshot's time a live metric would end
// before its last value, since a snapshot is older than the live metrics pushed
// with it, and may be pushed again.
type pushTimes struct {
	rows, live time.Time
	elapsed    time.Duration // of the push: how long markers are sent does not depend on the wall clock
}

func (p pushTimes) of(metric *pushedMetric) time.Time {
	if metric.live {
		return p.live
	}
	return p.rows
}

func newStaleSeries() *staleSeries {
	return &staleSeries{last: map[string]*pushedMetric{}, ended: map[string]*pushedMetric{}}
}

// add returns the metrics of rows and the live ones, with stale markers. It does
// not change the slices that it is given.
func (s *staleSeries) add(rows, live []metricdata.Metrics, times pushTimes) []metricdata.Metrics {
	s.generation++
	metrics := slices.Concat(rows, live)
	for i := range metrics {
		s.compare(&metrics[i], i >= len(rows), times.elapsed)
	}
	for name, known := range s.last {
		if known.generation != s.generation {
			s.recordEnded(known, nil, times.elapsed)
			delete(s.last, name)
		}
	}
	if s.count > 0 {
		return s.addMarkers(metrics, times)
	}
	return metrics
}

// delivered removes the series whose markers the newest push had.
func (s *staleSeries) delivered() {
	clear(s.ended)
	s.count = 0
}

// compare finds the series of a metric that have ended. In most pushes its series
// are those of the push before, in the same order.
func (s *staleSeries) compare(metrics *metricdata.Metrics, live bool, at time.Duration) {
	s.scratch = appendSets(s.scratch[:0], metrics.Data)
	known := s.last[metrics.Name]
	if known == nil {
		known = &pushedMetric{}
		s.last[metrics.Name] = known
	}
	known.metrics = metricdata.Metrics{Name: metrics.Name, Description: metrics.Description, Unit: metrics.Unit, Data: emptied(metrics.Data)}
	known.bounds, known.live, known.generation = histogramBounds(metrics.Data), live, s.generation
	if slices.EqualFunc(known.sets, s.scratch, sameSet) {
		return
	}
	present := make(map[attribute.Distinct]bool, len(s.scratch))
	for i := range s.scratch {
		present[s.scratch[i].Equivalent()] = true
	}
	s.removeReturned(metrics.Name, present)
	s.recordEnded(known, present, at)
	known.sets = append(known.sets[:0], s.scratch...)
}

func sameSet(a, b attribute.Set) bool { return a.Equivalent() == b.Equivalent() }

// recordEnded records the series of a metric that are not present.
func (s *staleSeries) recordEnded(known *pushedMetric, present map[attribute.Distinct]bool, at time.Duration) {
	for _, set := range known.sets {
		if present[set.Equivalent()] || s.count >= mostStale {
			continue
		}
		ended := s.ended[known.metrics.Name]
		if ended == nil {
			ended = &pushedMetric{ended: map[attribute.Distinct]endedSeries{}}
			s.ended[known.metrics.Name] = ended
		}
		ended.metrics, ended.bounds, ended.live = known.metrics, known.bounds, known.live
		ended.ended[set.Equivalent()] = endedSeries{set: set, since: at}
		s.count++
	}
}

// removeReturned removes ended series that are present again.
func (s *staleSeries) removeReturned(name string, present map[attribute.Distinct]bool) {
	ended := s.ended[name]
	if ended == nil {
		return
	}
	for key := range ended.ended {
		if present[key] {
			s.remove(name, key)
		}
	}
}

func (s *staleSeries) remove(name string, key attribute.Distinct) {
	delete(s.ended[name].ended, key)
	s.count--
	if len(s.ended[name].ended) == 0 {
		delete(s.ended, name)
	}
}

// addMarkers adds the markers: to their metric, or, if all of its series have
// ended, as a metric of their own.
func (s *staleSeries) addMarkers(metrics []metricdata.Metrics, times pushTimes) []metricdata.Metrics {
	for name, ended := range s.ended {
		for key, series := range ended.ended {
			if times.elapsed-series.since > staleTimeout {
				s.remove(name, key)
			}
		}
	}
	for i := range metrics {
		if ended := s.ended[metrics[i].Name]; ended != nil {
			metrics[i].Data = ended.join(metrics[i].Data, times.of(ended))
		}
	}
	for name, ended := range s.ended {
		if s.last[name] == nil {
			alone := ended.metrics
			alone.Data = ended.join(alone.Data, times.of(ended))
			metrics = append(metrics, alone)
		}
	}
	return metrics
}

// appendSets appends the attributes of all points. Summaries have none here and
// get no markers: those of the Go runtime exist as long as the process.
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

// emptied returns the same kind of metric without points.
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

// histogramBounds returns the bounds of the first point: all points of a metric have the
// same.
func histogramBounds(data metricdata.Aggregation) []float64 {
	if histogram, ok := data.(metricdata.Histogram[float64]); ok && len(histogram.DataPoints) > 0 {
		return histogram.DataPoints[0].Bounds
	}
	return nil
}

// join returns the data with the markers. They have the kind of the data, even
// if the series had another one.
func (m *pushedMetric) join(data metricdata.Aggregation, at time.Time) metricdata.Aggregation {
	switch data := data.(type) {
	case metricdata.Gauge[float64]:
		data.DataPoints = m.joinNumbers(data.DataPoints, at)
		return data
	case metricdata.Sum[float64]:
		data.DataPoints = m.joinNumbers(data.DataPoints, at)
		return data
	case metricdata.Histogram[float64]:
		data.DataPoints = data.DataPoints[:len(data.DataPoints):len(data.DataPoints)]
		for _, series := range m.ended {
			data.DataPoints = append(data.DataPoints, metricdata.HistogramDataPoint[float64]{
				Attributes: series.set, Time: at, Sum: noValue(), Bounds: m.bounds, BucketCounts: make([]uint64, len(m.bounds)+1),
			})
		}
		return data
	case metricdata.ExponentialHistogram[float64]:
		data.DataPoints = data.DataPoints[:len(data.DataPoints):len(data.DataPoints)]
		for _, series := range m.ended {
			data.DataPoints = append(data.DataPoints, metricdata.ExponentialHistogramDataPoint[float64]{
				Attributes: series.set, Time: at, Sum: noValue(),
			})
		}
		return data
	}
	return data
}

func (m *pushedMetric) joinNumbers(points []metricdata.DataPoint[float64], at time.Time) []metricdata.DataPoint[float64] {
	points = points[:len(points):len(points)]
	for _, series := range m.ended {
		points = append(points, metricdata.DataPoint[float64]{Attributes: series.set, Time: at, Value: noValue()})
	}
	return points
}
