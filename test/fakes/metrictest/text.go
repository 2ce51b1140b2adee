// Package metrictest compares pages with golden text, and looks for what
// Prometheus and its linter would object to.
package metrictest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Text returns the page as sorted text. The test fails, and goes on, if the
// gatherer returns an error, if a family or a label set appears twice, if a
// family does not declare the unit that its name ends with, or if promlint finds
// a problem; problems with the families named in allow are overlooked.
func Text(t testing.TB, gatherer prometheus.Gatherer, allow ...string) string {
	t.Helper()
	gathered, err := gatherer.Gather()
	if err != nil {
		t.Errorf("gather: %v", err)
	}
	// Gatherers would quietly merge the families of one name.
	seen := map[string]bool{}
	for _, family := range gathered {
		if seen[family.GetName()] {
			t.Errorf("family %s appears twice", family.GetName())
		}
		seen[family.GetName()] = true
		if unit := unitInName(family.GetName()); unit != family.GetUnit() {
			t.Errorf("family %s declares the unit %q, want %q", family.GetName(), family.GetUnit(), unit)
		}
	}
	families, err := prometheus.Gatherers{prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return gathered, nil
	})}.Gather()
	if err != nil {
		t.Errorf("inconsistent page: %v", err)
	}
	lint(t, families, allow)
	return encode(t, families)
}

// unitInName returns the unit that the name ends with, empty if it is a count.
// OTLP has it from the family and OpenMetrics from both.
func unitInName(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, unit := range []string{"bytes", "celsius", "hertz", "joules", "percent", "ratio", "seconds", "watts"} {
		if strings.HasSuffix(name, "_"+unit) {
			return unit
		}
	}
	return ""
}

func lint(t testing.TB, families []*dto.MetricFamily, allow []string) {
	t.Helper()
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Errorf("lint the page: %v", err)
	}
	for _, problem := range problems {
		if !slices.Contains(allow, problem.Metric) {
			t.Errorf("promlint: %s: %s", problem.Metric, problem.Text)
		}
	}
}

func encode(t testing.TB, families []*dto.MetricFamily) string {
	t.Helper()
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatalf("encode %s: %v", family.GetName(), err)
		}
	}
	return text.String()
}
