package otlp

import (
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// semanticNaming spells the families of the table by semantic conventions, and hands
// all others to the naming of the scrape. Every row goes out once. Beside them
// go the derived metrics, which the conventions ask for and no row is.
type semanticNaming struct {
	others   naming
	targets  []target
	families map[string]*convention

	status [3]*convention // by state: ok, degraded, failed
	up     *convention    // hw.network.up
	filled *convention    // hw.gpu.memory.utilization

	subjects subjects
	memory   memory
	plain    []metric.Row // for others; a field to save its memory
}

// newSemconvNaming returns the naming by semantic conventions, version 1.43.0
// of hw.* and what this project would add to them for claims. The rows' node
// is left to the resource.
func newSemconvNaming() naming {
	s := &semanticNaming{
		others:   newPrometheusNaming(),
		targets:  targets(),
		families: map[string]*convention{},
		subjects: newSubjects(),
		memory:   newMemory(),
	}
	index := map[string]int{}
	for i := range s.targets {
		index[s.targets[i].name] = i
	}
	complete := func(c convention) *convention {
		c.to, c.all = index[c.metric], append(c.about.words(), c.words...)
		return &c
	}
	for _, c := range conventions() {
		s.families[c.family] = complete(c)
	}
	derived := derivedConventions()
	for state := range s.status {
		s.status[state] = complete(derived[state])
	}
	s.up, s.filled = complete(derived[len(s.status)]), complete(derived[len(s.status)+1])
	return s
}

func (s *semanticNaming) metrics(rows []metric.Row, at time.Time) []metricdata.Metrics {
	s.memory.begin()
	s.subjects.learn(rows, at)
	points := s.room(rows)
	clear(s.plain)
	s.plain = s.plain[:0]
	for family, run := range runs(rows) {
		c := s.families[family.Name]
		if c == nil {
			s.plain = append(s.plain, run...)
		} else {
			points[c.to] = s.spell(points[c.to], c, run, at)
		}
		s.derive(points, family.Name, run, at)
	}
	s.memory.end()
	s.subjects.end()
	return append(s.assemble(points), s.others.metrics(s.plain, at)...)
}

// room gives each target a part of one slab, as large as its rows are many.
func (s *semanticNaming) room(rows []metric.Row) [][]metricdata.DataPoint[float64] {
	counts, total := make([]int, len(s.targets)), 0
	for family, run := range runs(rows) {
		if c := s.families[family.Name]; c != nil {
			counts[c.to] += len(run)
			total += len(run)
		}
	}
	slab := make([]metricdata.DataPoint[float64], total)
	points := make([][]metricdata.DataPoint[float64], len(s.targets))
	for i, count := range counts {
		points[i], slab = slab[:0:count], slab[count:]
	}
	return points
}

func (s *semanticNaming) spell(points []metricdata.DataPoint[float64], c *convention, run []metric.Row, at time.Time) []metricdata.DataPoint[float64] {
	for i := range run {
		spelled := s.fresh(s.memory.findRow(c, i, run[i].Labels), c)
		points = append(points, metricdata.DataPoint[float64]{
			Attributes: spelled.set,
			StartTime:  spelled.of.start(run[i].Start),
			Time:       at,
			Value:      run[i].Value,
		})
	}
	return points
}

// spelled is what is remembered of the labels in this place.
func (s *semanticNaming) spelled(c *convention, labels *metric.Labels) *spelled {
	return s.fresh(s.memory.find(c, labels), c)
}

// fresh spells the labels anew where what is known of their device or claim
// has changed.
func (s *semanticNaming) fresh(found *spelled, c *convention) *spelled {
	if found.of == nil {
		found.of = s.subjects.of(c.about, found.labels)
	}
	s.subjects.touch(found.of)
	if found.version != found.of.version {
		found.version = found.of.version
		found.set = c.attributes(found.labels, s.targets[c.to].facts, found.of)
	}
	return found
}

// assemble leaves out the targets of which there are no points.
func (s *semanticNaming) assemble(points [][]metricdata.DataPoint[float64]) []metricdata.Metrics {
	var all []metricdata.Metrics
	for i, t := range s.targets {
		if len(points[i]) > 0 {
			all = append(all, metricdata.Metrics{Name: t.name, Description: t.help, Unit: t.unit, Data: t.kind.data(points[i])})
		}
	}
	return all
}

// runs are the rows of each family, which stand next to each other.
func runs(rows []metric.Row) func(yield func(*metric.Family, []metric.Row) bool) {
	return func(yield func(*metric.Family, []metric.Row) bool) {
		for first := 0; first < len(rows); {
			end := first + 1
			for end < len(rows) && rows[end].Family == rows[first].Family {
				end++
			}
			if !yield(rows[first].Family, rows[first:end]) {
				return
			}
			first = end
		}
	}
}
