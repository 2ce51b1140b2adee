package invariant

import (
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Labels are the labels of a series. *metric.Labels are some.
type Labels interface {
	// Get returns the value of the named label, empty if there is none.
	Get(name string) string
	// Each calls yield with every name and value, always in the same order.
	Each(yield func(name, value string) bool)
}

// Series is one counter or gauge of a page. Names that end with _total are
// those of counters.
type Series struct {
	Name   string
	Labels Labels
	Value  float64
}

// Page is the metrics of one exporter at one time.
type Page struct {
	Series []Series
	// At is the time of the page. Pages that are compared with each other
	// have it from the same clock.
	At time.Time
	// Slack is by how much earlier than At the numbers of the page may be.
	// For a page that was read over a network: how long that took, and how old
	// the exporter's snapshot may have been.
	Slack time.Duration
}

// FromRows returns the page of a snapshot's rows.
func FromRows(rows []metric.Row, at time.Time) Page {
	page := Page{Series: make([]Series, len(rows)), At: at}
	for i := range rows {
		page.Series[i] = Series{rows[i].Family.Name, rows[i].Labels, rows[i].Value}
	}
	return page
}

// FromFamilies returns the page of families that were parsed or gathered. Of
// foreign families, those of other programs and of the Go runtime, only the
// start time of the process is kept; histograms are omitted.
func FromFamilies(families []*dto.MetricFamily, at time.Time) Page {
	page := Page{At: at}
	for _, family := range families {
		name := family.GetName()
		if !concerns(name) {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.Histogram == nil && m.Summary == nil {
				page.Series = append(page.Series, Series{name, pairs(m.GetLabel()), valueOf(m)})
			}
		}
	}
	return page
}

// processStart is the family with the start time of the exporter's process: the
// counters of another process start at zero.
const processStart = "process_start_time_seconds"

// concerns reports whether rules use the family.
func concerns(family string) bool {
	return strings.HasPrefix(family, "dra_") || family == processStart
}

// pairs are labels as they are parsed.
type pairs []*dto.LabelPair

func (p pairs) Get(name string) string {
	for _, pair := range p {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

func (p pairs) Each(yield func(name, value string) bool) {
	for _, pair := range p {
		if !yield(pair.GetName(), pair.GetValue()) {
			return
		}
	}
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	default:
		return m.Untyped.GetValue()
	}
}
