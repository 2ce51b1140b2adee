package metrictest_test

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

func TestDocument(t *testing.T) {
	families := []*metric.Family{
		{Name: "dra_exporter_build_info", Help: "What was built", Labels: []string{"version"}},
		{Name: "dra_claim_held", Help: "1 while held", Labels: []string{"namespace", "resourceclaim"}},
		{Name: "dra_device_power_watts", Help: "Power | drawn", Unit: "watts", Labels: []string{"uuid"}},
		{Name: "dra_device_energy_joules_total", Help: "Energy", Unit: "joules", Type: metric.Counter, Labels: []string{"uuid"}},
		{Name: "dra_constraint_violations_total", Help: "Onsets", Type: metric.Counter},
	}
	exporter := &metric.Family{Name: "dra_claims", Help: "How many"}
	var text strings.Builder
	if err := metrictest.Document(&text, []metrictest.Chapter{
		{Title: "A role", Families: families, Sections: []metrictest.Section{
			{Title: "Hardware", Prefixes: []string{"dra_device_"}},
			{Title: "Claims and more", Prefixes: []string{"dra_claim_", "dra_exporter_", "dra_device_power"}},
			{Title: "Nothing", Prefixes: []string{"dra_nothing_"}},
		}},
		{Title: "Another role", Families: []*metric.Family{exporter}},
	}, metrictest.Column{Title: "unit", Cell: func(f *metric.Family) string { return f.Unit }}); err != nil {
		t.Fatal(err)
	}
	metrictest.CompareGolden(t, "testdata/document.md", text.String())
}

// TestDocumentOfLabels: labels of nearly all families of a section are said once.
func TestDocumentOfLabels(t *testing.T) {
	section := func(title string, number int, odd ...*metric.Family) metrictest.Chapter {
		chapter := metrictest.Chapter{Title: title, Families: odd}
		for i := len(odd); i < number; i++ {
			labels := []string{"node", "uuid"}
			if i == number-1 {
				labels = []string{"node", "sensor", "uuid"}
			}
			chapter.Families = append(chapter.Families, &metric.Family{Name: "dra_" + string(rune('a'+i)), Help: "x", Labels: labels})
		}
		return chapter
	}
	var text strings.Builder
	if err := metrictest.Document(&text, []metrictest.Chapter{
		section("Two", 2), section("All", 3),
		section("One without", 10, &metric.Family{Name: "dra_odd", Help: "x", Labels: []string{"node", "pod"}}),
		section("Too many without", 9, &metric.Family{Name: "dra_odd", Help: "x"}),
	}, metrictest.Column{Title: "unit", Cell: func(f *metric.Family) string { return f.Unit }}); err != nil {
		t.Fatal(err)
	}
	metrictest.CompareGolden(t, "testdata/labels.md", text.String())
}

// TestDocumentOfTypes: a family whose name says another type is an error.
func TestDocumentOfTypes(t *testing.T) {
	for _, family := range []metric.Family{
		{Name: "dra_pods", Type: metric.Counter},
		{Name: "dra_pods_total"},
		{Name: "dra_start_seconds", Type: metric.Histogram},
		{Name: "dra_start_duration_seconds"},
	} {
		column := metrictest.Column{Cell: func(*metric.Family) string { return "" }}
		if err := metrictest.Document(&strings.Builder{}, []metrictest.Chapter{{Families: []*metric.Family{&family}}}, column); err == nil {
			t.Errorf("%s may be a %s", family.Name, family.Type)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		fault  string
		family metric.Family
	}{
		{"", metric.Family{Name: "dra_claim_busy_seconds_total", Help: "Fine", Unit: "seconds", Type: metric.Counter, Labels: []string{"uuid"}}},
		{"", metric.Family{Name: "dra_device_info", Help: "Fine too"}},
		{"the name is invalid", metric.Family{Name: "dra-device", Help: "x"}},
		{"counters end with _total", metric.Family{Name: "dra_device_energy_joules", Help: "x", Type: metric.Counter}},
		{"counters end with _total", metric.Family{Name: "dra_device_total", Help: "x"}},
		{"does not end with the unit seconds", metric.Family{Name: "dra_device_info", Help: "x", Unit: "seconds"}},
		{"the help is one sentence", metric.Family{Name: "dra_device_info"}},
		{"the help is one sentence", metric.Family{Name: "dra_device_info", Help: "Full stop."}},
		{`the label "a-b" is invalid`, metric.Family{Name: "dra_device_info", Help: "x", Labels: []string{"a-b"}}},
		{`the label "__name__" is invalid`, metric.Family{Name: "dra_device_info", Help: "x", Labels: []string{"__name__"}}},
		{`the label "uuid" appears twice`, metric.Family{Name: "dra_device_info", Help: "x", Labels: []string{"uuid", "uuid"}}},
	} {
		err := metrictest.Validate([]*metric.Family{&test.family})
		switch {
		case test.fault == "" && err != nil:
			t.Errorf("%s: %v", test.family.Name, err)
		case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("%s: error %v, want %q", test.family.Name, err, test.fault)
		}
	}
	twice := metric.Family{Name: "dra_device_info", Help: "x"}
	if err := metrictest.Validate([]*metric.Family{&twice, &twice}); err == nil {
		t.Error("a family that appears twice is not noticed")
	}
}
