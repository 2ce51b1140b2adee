package naming

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
)

var semconvTime = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// rolesFamilies has the families of both roles by name.
func rolesFamilies() map[string]*metric.Family {
	byName := map[string]*metric.Family{}
	for _, family := range append(cluster.Families(), node.Families()...) {
		byName[family.Name] = family
	}
	return byName
}

func semconvPoints(m metricdata.Metrics) []metricdata.DataPoint[float64] {
	switch data := m.Data.(type) {
	case metricdata.Gauge[float64]:
		return data.DataPoints
	case metricdata.Sum[float64]:
		return data.DataPoints
	}
	return nil
}

func semconvKind(m metricdata.Metrics) string {
	switch data := m.Data.(type) {
	case metricdata.Gauge[float64]:
		return "gauge"
	case metricdata.Sum[float64]:
		switch {
		case data.Temporality != metricdata.CumulativeTemporality:
			return "not cumulative"
		case data.IsMonotonic:
			return "counter"
		default:
			return "updowncounter"
		}
	}
	return fmt.Sprintf("%T", m.Data)
}

// pointText is a point as text, with the attributes that keep selects.
func pointText(name string, set attribute.Set, keep func(string) bool, value float64, start time.Time) string {
	var attributes []string
	for _, kv := range set.ToSlice() {
		if keep(string(kv.Key)) {
			attributes = append(attributes, string(kv.Key)+"="+fmt.Sprintf("%q", kv.Value.AsString()))
		}
	}
	slices.Sort(attributes)
	text := fmt.Sprintf("%s{%s} %v", name, strings.Join(attributes, ","), value)
	if !start.IsZero() {
		text += " since " + start.UTC().Format(time.RFC3339)
	}
	return text
}

func anything(string) bool { return true }

// rowText is the line of a row, by the exported table alone.
func rowText(row metric.Row, c Convention, known bool) string {
	var attributes []attribute.KeyValue
	add := func(key, value string) {
		if key != "" && value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	if !known {
		for name, value := range row.Labels.Each {
			add(name, value)
		}
		return pointText(row.Family.Name, attribute.NewSet(attributes...), anything, row.Value, row.Start)
	}
	for _, s := range c.Attributes {
		switch value := row.Labels.Get(s.Label); {
		case s.Label == "":
			add(s.Attribute, s.Value)
		case s.Prefix != "" && value == "":
			add(s.Attribute, strings.TrimSuffix(s.Prefix, "_"))
		case s.Label == "engine" && strings.ReplaceAll(value, "engine_", "") == generalTask && strings.HasSuffix(value, generalTask):
			add(s.Attribute, "engine_"+value)
		default:
			add(s.Attribute, s.Prefix+value)
		}
	}
	return pointText(c.Metric, attribute.NewSet(attributes...), anything, row.Value, row.Start)
}

// checkSemconv compares what was made of rows with them: every row is one
// point with its value and start, there is no other point but derived ones,
// no two points of a metric have the same attributes, and kinds and units are
// the table's.
func checkSemconv(t testing.TB, rows []metric.Row, made []metricdata.Metrics, at time.Time) {
	t.Helper()
	byFamily, byMetric, derived := map[string]Convention{}, map[string]Convention{}, map[string]bool{}
	for _, c := range Conventions() {
		byMetric[c.Metric] = c
		if c.Derived {
			derived[c.Metric] = true
		} else {
			byFamily[c.Family] = c
		}
	}
	var want, got []string
	for _, row := range rows {
		c, known := byFamily[row.Family.Name]
		want = append(want, rowText(row, c, known))
	}
	names := map[string]bool{}
	for _, m := range made {
		if names[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		names[m.Name] = true
		c, known := byMetric[m.Name]
		if known && (m.Unit != c.Unit || semconvKind(m) != c.Kind || m.Description == "") {
			t.Errorf("%s is a %s of %q, want %s of %q, described %q", m.Name, semconvKind(m), m.Unit, c.Kind, c.Unit, m.Description)
		}
		facts, sets := Facts(m.Name), map[attribute.Distinct]bool{}
		for _, p := range semconvPoints(m) {
			if sets[p.Attributes.Equivalent()] {
				t.Errorf("two points of %s have the attributes %v", m.Name, p.Attributes.ToSlice())
			}
			sets[p.Attributes.Equivalent()] = true
			if !p.Time.Equal(at) {
				t.Errorf("a point of %s is of %v", m.Name, p.Time)
			}
			if !derived[m.Name] {
				got = append(got, pointText(m.Name, p.Attributes, func(key string) bool { return !slices.Contains(facts, key) }, p.Value, p.StartTime))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		compareLines(t, want, got)
	}
}

func compareLines(t testing.TB, want, got []string) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%d points of %d rows", len(got), len(want))
	}
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("want %s\ngot  %s", want[i], got[i])
		}
	}
}

// knownPages are those that tests of the reducers have written down.
func knownPages(t testing.TB) map[string][]metric.Row {
	t.Helper()
	files, err := filepath.Glob("../../../collector/*/testdata/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	families, found := rolesFamilies(), map[string][]metric.Row{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, page := range strings.Split("\n"+string(text), "\n## ") {
			if i > 0 {
				_, page, _ = strings.Cut(page, "\n")
			}
			if rows := parsePage(t, page, families); len(rows) > 0 {
				found[fmt.Sprintf("%s %d", filepath.Base(file), i)] = rows
			}
		}
	}
	return found
}

func parsePage(t testing.TB, text string, families map[string]*metric.Family) []metric.Row {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(strings.NewReader(strings.TrimSpace(text) + "\n"))
	if err != nil {
		return nil // a file that is no page
	}
	var rows []metric.Row
	for name, family := range parsed {
		known := families[name]
		if known == nil {
			continue // of a histogram
		}
		for _, m := range family.GetMetric() {
			rows = append(rows, metric.Row{Family: known, Labels: labelsOf(m), Value: valueOf(m)})
		}
	}
	return rows
}

func labelsOf(m *dto.Metric) *metric.Labels {
	var names, values []string
	for _, pair := range m.GetLabel() {
		names, values = append(names, pair.GetName()), append(values, pair.GetValue())
	}
	return metric.NewLabels(names, values...)
}

func valueOf(m *dto.Metric) float64 {
	return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
}

// Every page that the reducers' tests know is exported whole, one after another
// through the same naming.
func TestSemconvOfKnownPages(t *testing.T) {
	naming, count := NewSemConv(), 0
	for name, rows := range knownPages(t) {
		made := naming.Metrics(rows, parseNode(rows), semconvTime)
		t.Run(name, func(t *testing.T) {
			checkSemconv(t, rows, made, semconvTime)
			checkErrors(t, made)
		})
		count += len(rows)
	}
	if count < 2000 {
		t.Errorf("only %d rows on the pages", count)
	}
}

// checkErrors: errors of a GPU are corrected or uncorrected.
func checkErrors(t *testing.T, made []metricdata.Metrics) {
	t.Helper()
	for _, m := range made {
		for _, p := range semconvPoints(m) {
			hardware, _ := p.Attributes.Value(hwType)
			class, _ := p.Attributes.Value(errorType)
			if m.Name == "hw.errors" && hardware.AsString() == "gpu" && !slices.Contains([]string{"corrected", "uncorrected"}, class.AsString()) {
				t.Errorf("a GPU has errors of type %q", class.AsString())
			}
		}
	}
}
