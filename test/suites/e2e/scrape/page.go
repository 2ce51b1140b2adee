// Package scrape reads an exporter's pages repeatedly, as Prometheus does, and
// checks each of them against rules.
package scrape

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Page is one scraped page. It is immutable.
type Page struct {
	At       time.Time // start of the request
	Families map[string]*dto.MetricFamily
}

// Labels select rows that have all of these labels, and possibly others.
type Labels map[string]string

// Row is one series of a counter or gauge.
type Row struct {
	Labels Labels
	Value  float64
}

// Parse reads a page in the text format. A label set that occurs twice is an
// error, as in Prometheus.
func Parse(at time.Time, text io.Reader) (*Page, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("parse page: %w", err)
	}
	page := &Page{At: at, Families: families}
	for name, family := range families {
		seen := make(map[string]bool, len(family.Metric))
		for _, m := range family.Metric {
			key := labelsOf(m).String()
			if seen[key] {
				return nil, fmt.Errorf("%s%s is there twice", name, key)
			}
			seen[key] = true
		}
	}
	return page, nil
}

// Rows returns the series of a counter or gauge family that have the labels,
// in a fixed order.
func (p *Page) Rows(family string, want Labels) []Row {
	var rows []Row
	for _, m := range p.Families[family].GetMetric() {
		if labels := labelsOf(m); labels.has(want) {
			rows = append(rows, Row{labels, valueOf(m)})
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Labels.String(), b.Labels.String()) })
	return rows
}

// One returns the only series with the labels. It is an error if there is
// none, or if there are several.
func (p *Page) One(family string, want Labels) (Row, error) {
	rows := p.Rows(family, want)
	if len(rows) != 1 {
		return Row{}, fmt.Errorf("%s%s: there are %d rows: %v", family, want, len(rows), rows)
	}
	return rows[0], nil
}

// Count is the number of series with the labels.
func (p *Page) Count(family string, want Labels) int { return len(p.Rows(family, want)) }

// Histogram returns the number of observations of the histograms with the
// labels, and their sum; both 0 if there is none.
func (p *Page) Histogram(family string, want Labels) (count, sum float64) {
	for _, m := range p.Families[family].GetMetric() {
		if m.Histogram != nil && labelsOf(m).has(want) {
			count += float64(m.Histogram.GetSampleCount())
			sum += m.Histogram.GetSampleSum()
		}
	}
	return count, sum
}

// Names returns the page's families with a prefix, sorted.
func (p *Page) Names(prefix string) []string {
	var names []string
	for name := range p.Families {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sorted returns the page's families by name.
func (p *Page) sorted() []*dto.MetricFamily {
	var families []*dto.MetricFamily
	for _, name := range p.Names("") {
		families = append(families, p.Families[name])
	}
	return families
}

func (l Labels) has(want Labels) bool {
	for name, value := range want {
		if got, there := l[name]; !there || got != value {
			return false
		}
	}
	return true
}

// String writes the labels as an exposition does, sorted by name.
func (l Labels) String() string {
	var pairs []string
	for name, value := range l {
		pairs = append(pairs, fmt.Sprintf("%s=%q", name, value))
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ",") + "}"
}

func labelsOf(m *dto.Metric) Labels {
	labels := make(Labels, len(m.Label))
	for _, pair := range m.Label {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// valueOf returns 0 for histograms, whose values are not compared.
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
