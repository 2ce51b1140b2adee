package otlp

import (
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// derive adds the points of derived metrics that the rows of a family make.
func (s *semanticNaming) derive(points [][]metricdata.DataPoint[float64], family string, run []metric.Row, at time.Time) {
	add := func(c *convention, row *metric.Row, value float64) {
		points[c.to] = append(points[c.to], metricdata.DataPoint[float64]{Attributes: s.spelled(c, row.Labels).set, Time: at, Value: value})
	}
	for i := range run {
		row := &run[i]
		switch {
		case family == healthyFamily && row.Labels.Get("by") == "hardware":
			present := s.state(row)
			for state, c := range s.status {
				add(c, row, one(state == present))
			}
		case family == linkStateFamily && row.Labels.Get("state") == "active":
			add(s.up, row, row.Value)
		case family == memoryUsedFamily:
			if d := s.spelled(s.filled, row.Labels).of; d.sized == s.subjects.turn && d.size > 0 {
				add(s.filled, row, row.Value/d.size)
			}
		}
	}
}

// state is the place among the states of hw.status: a sick device has failed,
// a well one against which a warning speaks is degraded.
func (s *semanticNaming) state(row *metric.Row) int {
	const ok, degraded, failed = 0, 1, 2
	switch {
	case row.Value == 0:
		return failed
	case s.spelled(s.status[ok], row.Labels).of.warned == s.subjects.turn:
		return degraded
	default:
		return ok
	}
}

// one is 1 for the state that holds and 0 for the others.
func one(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
