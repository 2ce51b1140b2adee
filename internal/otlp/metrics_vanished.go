package otlp

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

const (
	// mostVanished is how many series wait to be called off. Those beyond it
	// are not: a backend forgets a series by itself, after some minutes.
	mostVanished = 20_000
	// longVanished is after how long that needs not be told any more.
	longVanished = 10 * time.Minute
)

// vanished calls off series that were pushed and are there no more: each is
// given once more, without a value, so that a backend does not show the last
// one for minutes more as if it still were. It goes on until a push is taken.
// It is not safe for concurrent use.
type vanished struct {
	last    map[string]*pushedMetric // what the newest push has, by name
	absent  map[string]*pushedMetric // what it should call off
	count   int                      // of all absent series
	turn    int
	scratch []attribute.Set
}

// pushedMetric is a metric without its points.
type pushedMetric struct {
	metrics metricdata.Metrics
	bounds  []float64 // of a histogram with explicit buckets: each of these is a series to some
	live    bool      // of no snapshot
	turn    int       // in which it was there last
	sets    []attribute.Set
	gone    map[attribute.Distinct]departed // where it is absent
}

type departed struct {
	set   attribute.Set
	since time.Time
}

// pushTimes are those of the points of a push. What is called off has the time
// that it would have had: a live metric that is called off at the time of the
// snapshot would be called off before its last value, since a snapshot is
// older than what was pushed live with it, and may be pushed again.
type pushTimes struct{ rows, live time.Time }

func (p pushTimes) of(metric *pushedMetric) time.Time {
	if metric.live {
		return p.live
	}
	return p.rows
}

func newVanished() *vanished {
	return &vanished{last: map[string]*pushedMetric{}, absent: map[string]*pushedMetric{}}
}

// add returns the metrics of rows and the live ones, with what is to be called
// off. The slices that it was given stay as they are.
func (v *vanished) add(rows, live []metricdata.Metrics, times pushTimes) []metricdata.Metrics {
	v.turn++
	metrics := slices.Concat(rows, live)
	for i := range metrics {
		v.compare(&metrics[i], i >= len(rows), times.rows)
	}
	for name, known := range v.last {
		if known.turn != v.turn {
			v.depart(known, nil, times.rows)
			delete(v.last, name)
		}
	}
	if v.count > 0 {
		return v.callOff(metrics, times)
	}
	return metrics
}

// told forgets what the newest push has called off: it was taken.
func (v *vanished) told() {
	clear(v.absent)
	v.count = 0
}

// compare finds what a metric has no more. In most pushes all of its series
// are those of the one before, in the same order.
func (v *vanished) compare(metrics *metricdata.Metrics, live bool, at time.Time) {
	v.scratch = appendSets(v.scratch[:0], metrics.Data)
	known := v.last[metrics.Name]
	if known == nil {
		known = &pushedMetric{}
		v.last[metrics.Name] = known
	}
	known.metrics = metricdata.Metrics{Name: metrics.Name, Description: metrics.Description, Unit: metrics.Unit, Data: emptied(metrics.Data)}
	known.bounds, known.live, known.turn = boundsOf(metrics.Data), live, v.turn
	if slices.EqualFunc(known.sets, v.scratch, sameSet) {
		return
	}
	there := make(map[attribute.Distinct]bool, len(v.scratch))
	for i := range v.scratch {
		there[v.scratch[i].Equivalent()] = true
	}
	v.comeBack(metrics.Name, there)
	v.depart(known, there, at)
	known.sets = append(known.sets[:0], v.scratch...)
}

func sameSet(a, b attribute.Set) bool { return a.Equivalent() == b.Equivalent() }

// depart notes series of a metric that are not there.
func (v *vanished) depart(known *pushedMetric, there map[attribute.Distinct]bool, at time.Time) {
	for _, set := range known.sets {
		if there[set.Equivalent()] || v.count >= mostVanished {
			continue
		}
		absent := v.absent[known.metrics.Name]
		if absent == nil {
			absent = &pushedMetric{gone: map[attribute.Distinct]departed{}}
			v.absent[known.metrics.Name] = absent
		}
		absent.metrics, absent.bounds, absent.live = known.metrics, known.bounds, known.live
		absent.gone[set.Equivalent()] = departed{set: set, since: at}
		v.count++
	}
}

// comeBack strikes off what is there again.
func (v *vanished) comeBack(name string, there map[attribute.Distinct]bool) {
	absent := v.absent[name]
	if absent == nil {
		return
	}
	for key := range absent.gone {
		if there[key] {
			v.strike(name, key)
		}
	}
}

func (v *vanished) strike(name string, key attribute.Distinct) {
	delete(v.absent[name].gone, key)
	v.count--
	if len(v.absent[name].gone) == 0 {
		delete(v.absent, name)
	}
}

// callOff adds the points without values: to their metric, or, if that has
// gone altogether, in one for them alone.
func (v *vanished) callOff(metrics []metricdata.Metrics, times pushTimes) []metricdata.Metrics {
	for name, absent := range v.absent {
		for key, series := range absent.gone {
			if times.rows.Sub(series.since) > longVanished {
				v.strike(name, key)
			}
		}
	}
	for i := range metrics {
		if absent := v.absent[metrics[i].Name]; absent != nil {
			metrics[i].Data = absent.join(metrics[i].Data, times.of(absent))
		}
	}
	for name, absent := range v.absent {
		if v.last[name] == nil {
			alone := absent.metrics
			alone.Data = absent.join(alone.Data, times.of(absent))
			metrics = append(metrics, alone)
		}
	}
	return metrics
}
