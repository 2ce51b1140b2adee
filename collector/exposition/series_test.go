package exposition

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		"up 1\n":                        "up [] 1",
		"\t up  1 1800000000000":        "up [] 1 1800000000000",
		`up{} NaN`:                      "up [] NaN",
		`a:b_1{x="1", y = "2" ,} -Inf`:  "a:b_1 [{x 1} {y 2}] -Inf",
		`up{x="a\"b\\c\nd=,}"}1e3`:      "up [{x a\"b\\c\nd=,}}] 1000",
		`{"näme","lab.el"="ü",b=""} 16`: "näme [{lab.el ü} {b }] 16",
		`{b="1","name"} 2 -5`:           "name [{b 1}] 2 -5",
	} {
		series, err := Parse(line)
		got := fmt.Sprint(series.Name, " ", []Label(series.Labels), " ", series.Value)
		if series.Stamped {
			got += fmt.Sprint(" ", series.Timestamp)
		}
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		"":                       "no name of a metric",
		"1up 1":                  "no name of a metric",
		"{} 1":                   "no name of a metric",
		"up":                     "the value is no number",
		"up one":                 "the value is no number",
		"up 1_000":               "the value is no number",
		"up 1 # {trace=\"a\"} 1": "the time stamp is no number",
		"up 1 1.5":               "the time stamp is no number",
		`up{x="1"`:               "not followed by a comma or a brace",
		`up{x="1" y="2"} 1`:      "not followed by a comma or a brace",
		`up{x="1} 1`:             "ends within quotes",
		`up{x="1\`:               "ends within quotes",
		`up{x="\t"} 1`:           "an escape that is not known",
		`up{x=1} 1`:              "no value in quotes",
		`up{x} 1`:                "a label has no value",
		`up{"x"} 1`:              "a label has no value",
		`up{,} 1`:                "the name of a label is missing",
		`up{1="x"} 1`:            "the name of a label is missing",
		`up{x="1",x="2"} 1`:      "a label is there twice",
		`up{__name__="x"} 1`:     "is reserved",
		"up{x=\"\xff\"} 1":       "not valid UTF-8",
	} {
		if series, err := Parse(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v; want %s", line, series, err, want)
		}
	}
}

func TestNameAndType(t *testing.T) {
	for line, want := range map[string]string{
		"up 1": "up", `  up{x="1"} 1`: "up", `{"a b"} 1`: "a b", "# HELP up x": "", "": "", "\n": "", " up\r\n": "up",
	} {
		if got := Name(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	for line, want := range map[string]string{"# TYPE up gauge\n": "up gauge", "#TYPE up COUNTER": "up counter", "# HELP up gauge": " ", "# TYPE up": " ", "up 1": " "} {
		if name, kind, _ := Type(line); name+" "+kind != want {
			t.Errorf("%q: got %q %q, want %q", line, name, kind, want)
		}
	}
}

// manyLabels is a line with so many labels.
func manyLabels(count int) string {
	var line strings.Builder
	line.WriteString("up{")
	for i := range count {
		fmt.Fprintf(&line, "l%d=\"\",", i)
	}
	return line.String() + "} 1\n"
}

func TestLimits(t *testing.T) {
	if series, err := Parse(manyLabels(MaxLabels)); err != nil || len(series.Labels) != MaxLabels {
		t.Errorf("got %d labels, %v", len(series.Labels), err)
	}
	for want, line := range map[string]string{
		"more than 128 labels":  manyLabels(MaxLabels + 1),
		"more than 65536 bytes": manyLabels(30_000),
	} {
		if _, err := Parse(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What follows a limit is not parsed: it takes no memory.
func TestWorkIsBounded(t *testing.T) {
	allocations := func(line string) float64 { return testing.AllocsPerRun(10, func() { _, _ = Parse(line) }) }
	most, more := allocations(manyLabels(MaxLabels)), allocations(manyLabels(5000))
	if more > most+5 {
		t.Errorf("%v allocations for a line with too many labels, %v for one with as many as there may be", more, most)
	}
}

// library parses a line with Prometheus' parser.
func library(line string) (*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(line))
	for _, family := range families {
		return family, err
	}
	return nil, err
}

// agrees reports whether a family is one series, and which way it differs from the
// same line as parsed here.
func agrees(t *testing.T, line string, series Series, family *dto.MetricFamily) {
	t.Helper()
	if family.GetName() != series.Name || len(family.GetMetric()) != 1 {
		t.Fatalf("%q: got %+v, want %v", line, series, family)
	}
	metric := family.GetMetric()[0]
	if len(metric.GetLabel()) != len(series.Labels) || (metric.TimestampMs != nil) != series.Stamped || metric.GetTimestampMs() != series.Timestamp {
		t.Fatalf("%q: got %+v, want %v", line, series, metric)
	}
	for i, pair := range metric.GetLabel() {
		if (Label{pair.GetName(), pair.GetValue()}) != series.Labels[i] {
			t.Fatalf("%q: got %+v, want %v", line, series.Labels, metric)
		}
	}
	if want := metric.GetUntyped().GetValue(); want != series.Value && !(math.IsNaN(want) && math.IsNaN(series.Value)) {
		t.Fatalf("%q: got %v, want %v", line, series.Value, want)
	}
}

// FuzzParse compares foreign lines with Prometheus' parser: what is parsed here is the
// same there, and what its encoder writes is parsed here.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		`up{x="a\"b\\c\nd=,}",y="2"} 1e3 1800000000000`, `{"näme","lab.el"="ü",b=""} 16`, "up 1", `up{x="1",x="2"} NaN`, manyLabels(3),
	} {
		f.Add(line, "name", "value")
	}
	f.Fuzz(func(t *testing.T, line, name, value string) {
		line, _, _ = strings.Cut(line, "\n")
		series, err := Parse(line)
		if err == nil {
			if len(series.Labels) > MaxLabels || len(line) > MaxLine {
				t.Fatalf("%d labels in %d bytes", len(series.Labels), len(line))
			}
			family, err := library(line + "\n")
			if err != nil {
				t.Fatalf("%q: got %+v, want %v", line, series, err)
			}
			agrees(t, line, series, family)
		}
		number := 5.0
		family := &dto.MetricFamily{
			Name: &name, Type: dto.MetricType_UNTYPED.Enum(),
			Metric: []*dto.Metric{{Label: []*dto.LabelPair{{Name: &name, Value: &value}}, Untyped: &dto.Untyped{Value: &number}}},
		}
		var text bytes.Buffer
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil || text.Len() > MaxLine {
			return
		}
		_, written, _ := strings.Cut(text.String(), "\n") // the type
		want, err := library(written)
		if err != nil || want == nil { // what it writes, its parser does not always take
			return
		}
		if series, err = Parse(written); err != nil {
			t.Fatalf("%q: %v", written, err)
		}
		agrees(t, written, series, want)
	})
}
