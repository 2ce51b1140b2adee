package metric

import (
	"slices"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Page is the exposition of the rows of one snapshot. It is a
// prometheus.Gatherer, safe for concurrent use.
type Page struct {
	// Attached has what others have made of the page, each under a key of its
	// own, such as its compressed text. It lives as long as the page.
	Attached sync.Map

	runs   func() []run
	gather func() ([]*dto.MetricFamily, error)
}

// run is the rows of one family.
type run struct {
	family *Family
	rows   []Row
	legacy bool // all names have the character set that every format can show
}

// NewPage returns the page of the rows, in which those of one family stand
// next to each other. The rows must not change afterwards: the page points
// into them. Nothing is rendered before the page is first read.
func NewPage(rows []Row) *Page {
	page := &Page{runs: sync.OnceValue(func() []run { return sortedRuns(rows) })}
	page.gather = sync.OnceValues(func() ([]*dto.MetricFamily, error) {
		var families []*dto.MetricFamily
		labels := messages{}
		for _, run := range page.runs() {
			families = append(families, run.message(labels))
		}
		return families, nil
	})
	return page
}

// sortedRuns returns the families sorted by name, the rows of each in their order.
func sortedRuns(rows []Row) []run {
	var runs []run
	for family, rows := range Runs(rows) {
		// OpenMetrics shows the name without _total, of which nothing may be left.
		r := run{family: family, rows: rows, legacy: isLegacy(family.Name) && isLegacy(strings.TrimSuffix(family.Name, "_total"))}
		for i := range rows {
			r.legacy = r.legacy && rows[i].Labels.legacy
		}
		runs = append(runs, r)
	}
	slices.SortStableFunc(runs, func(a, b run) int { return strings.Compare(a.family.Name, b.family.Name) })
	return runs
}

// IsEmpty reports whether the page has no rows.
func (p *Page) IsEmpty() bool { return len(p.runs()) == 0 }

// Gather returns the families sorted by name, the rows of each in their
// order. Every call returns the same values, which are not to be changed; the
// error is always nil. Encode needs less time and memory.
func (p *Page) Gather() ([]*dto.MetricFamily, error) { return p.gather() }

// messages are the protobuf messages of labels, which rows share.
type messages map[*Labels][]*dto.LabelPair

func (m messages) of(labels *Labels) []*dto.LabelPair {
	if pairs, ok := m[labels]; ok {
		return pairs
	}
	type message struct {
		pair        dto.LabelPair
		name, value string
	}
	count := 0
	for range labels.raw {
		count++
	}
	slab, pairs := make([]message, count), make([]*dto.LabelPair, 0, count)
	for name, value := range labels.Each {
		m := &slab[len(pairs)]
		m.name, m.value = name, value
		m.pair.Name, m.pair.Value = &m.name, &m.value
		pairs = append(pairs, &m.pair)
	}
	m[labels] = pairs
	return pairs
}

// message returns the protobuf message of the family and its rows. Everything of
// one kind lies in one slab, because a message of its own for each series
// costs more than all the rest.
func (r run) message(labels messages) *dto.MetricFamily {
	metrics, pointers := make([]dto.Metric, len(r.rows)), make([]*dto.Metric, len(r.rows))
	for i := range metrics {
		metrics[i].Label = labels.of(r.rows[i].Labels)
		pointers[i] = &metrics[i]
	}
	family := &dto.MetricFamily{Name: &r.family.Name, Help: &r.family.Help, Metric: pointers}
	if r.family.Type == Counter {
		family.Type = dto.MetricType_COUNTER.Enum()
		r.setCounters(metrics)
	} else {
		family.Type = dto.MetricType_GAUGE.Enum()
		gauges := make([]dto.Gauge, len(metrics))
		for i := range metrics {
			gauges[i].Value = &r.rows[i].Value
			metrics[i].Gauge = &gauges[i]
		}
	}
	if r.family.unitInName() {
		family.Unit = &r.family.Unit
	}
	return family
}

func (r run) setCounters(metrics []dto.Metric) {
	counters, starts := make([]dto.Counter, len(metrics)), 0
	for i := range metrics {
		counters[i].Value = &r.rows[i].Value
		metrics[i].Counter = &counters[i]
		if !r.rows[i].Start.IsZero() {
			starts++
		}
	}
	slab := make([]timestamppb.Timestamp, starts)
	for i := range metrics {
		if at := r.rows[i].Start; !at.IsZero() {
			slab[0].Seconds, slab[0].Nanos = at.Unix(), int32(at.Nanosecond())
			counters[i].CreatedTimestamp = &slab[0]
			slab = slab[1:]
		}
	}
}

// unitInName reports whether the name ends with the unit, but for _total:
// OpenMetrics calls a page invalid that states any other unit.
func (f *Family) unitInName() bool {
	return f.Unit != "" && strings.HasSuffix(strings.TrimSuffix(f.Name, "_total"), "_"+f.Unit)
}
