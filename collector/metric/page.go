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
	gather func() ([]*dto.MetricFamily, error)
}

// NewPage returns the page of the rows, in which those of one family stand
// next to each other. The rows must not change afterwards: the page points
// into them. Nothing is rendered before the first Gather.
func NewPage(rows []Row) *Page {
	return &Page{gather: sync.OnceValues(func() ([]*dto.MetricFamily, error) {
		return render(rows), nil
	})}
}

// Gather returns the families sorted by name, the rows of each in their
// order. Every call returns the same values, which are not to be changed; the
// error is always nil.
func (p *Page) Gather() ([]*dto.MetricFamily, error) { return p.gather() }

// render builds the protobuf messages that the encoders read. Everything of
// one kind lies in one slab, because a message of its own for each series
// costs more than all the rest.
func render(rows []Row) []*dto.MetricFamily {
	var (
		metrics  = make([]dto.Metric, len(rows))
		pointers = make([]*dto.Metric, len(rows))
		values   = newValues(rows)
		families []*dto.MetricFamily
	)
	for first := 0; first < len(rows); {
		family := rows[first].Family
		end := first + 1
		for end < len(rows) && rows[end].Family == family {
			end++
		}
		for i := first; i < end; i++ {
			metrics[i].Label = rows[i].Labels.pairs
			values.set(&metrics[i], &rows[i])
			pointers[i] = &metrics[i]
		}
		families = append(families, family.message(pointers[first:end:end]))
		first = end
	}
	slices.SortStableFunc(families, byName)
	return families
}

func byName(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) }

func (f *Family) message(metrics []*dto.Metric) *dto.MetricFamily {
	family := &dto.MetricFamily{Name: &f.Name, Help: &f.Help, Metric: metrics}
	family.Type = dto.MetricType_GAUGE.Enum()
	if f.Type == Counter {
		family.Type = dto.MetricType_COUNTER.Enum()
	}
	if f.unitInName() {
		family.Unit = &f.Unit
	}
	return family
}

// unitInName reports whether the name ends with the unit, but for _total:
// OpenMetrics calls a page invalid that states any other unit.
func (f *Family) unitInName() bool {
	return f.Unit != "" && strings.HasSuffix(strings.TrimSuffix(f.Name, "_total"), "_"+f.Unit)
}

// values hands out the messages that hold the rows' values.
type values struct {
	gauges   []dto.Gauge
	counters []dto.Counter
	starts   []timestamppb.Timestamp
}

func newValues(rows []Row) *values {
	var gauges, counters, starts int
	for i := range rows {
		switch {
		case rows[i].Family.Type != Counter:
			gauges++
		case rows[i].Start.IsZero():
			counters++
		default:
			counters++
			starts++
		}
	}
	return &values{
		gauges:   make([]dto.Gauge, gauges),
		counters: make([]dto.Counter, counters),
		starts:   make([]timestamppb.Timestamp, starts),
	}
}

func (v *values) set(metric *dto.Metric, row *Row) {
	if row.Family.Type != Counter {
		metric.Gauge = &v.gauges[0]
		metric.Gauge.Value = &row.Value
		v.gauges = v.gauges[1:]
		return
	}
	metric.Counter = &v.counters[0]
	metric.Counter.Value = &row.Value
	v.counters = v.counters[1:]
	if !row.Start.IsZero() {
		start := &v.starts[0]
		start.Seconds, start.Nanos = row.Start.Unix(), int32(row.Start.Nanosecond())
		metric.Counter.CreatedTimestamp = start
		v.starts = v.starts[1:]
	}
}
