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
