package metrictest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/prometheus/common/model"
)

// Validate reports all that is wrong with a table of families: names that
// Prometheus refuses or that appear twice, counters without _total and
// gauges with it, units that the name does not end with, missing or
// unfinished help, labels that are invalid or appear twice. A page does
// not check it.
func Validate(families []*metric.Family) error {
	var errs []error
	seen := map[string]bool{}
	for _, family := range families {
		if seen[family.Name] {
			errs = append(errs, fmt.Errorf("family %s: appears twice", family.Name))
		}
		seen[family.Name] = true
		for _, fault := range faultsOf(family) {
			errs = append(errs, fmt.Errorf("family %s: %s", family.Name, fault))
		}
	}
	return errors.Join(errs...)
}

// faultsOf returns what is wrong with one family.
func faultsOf(f *metric.Family) []string {
	var faults []string
	if !model.LegacyValidation.IsValidMetricName(f.Name) {
		faults = append(faults, "the name is invalid")
	}
	if strings.HasSuffix(f.Name, "_total") != (f.Type == metric.Counter) {
		faults = append(faults, "counters end with _total, and nothing else does")
	}
	if f.Unit != "" && !strings.HasSuffix(strings.TrimSuffix(f.Name, "_total"), "_"+f.Unit) {
		faults = append(faults, "the name does not end with the unit "+f.Unit)
	}
	if f.Help == "" || strings.HasSuffix(f.Help, ".") || strings.Contains(f.Help, "\n") {
		faults = append(faults, "the help is one sentence in one line, without full stop")
	}
	for i, label := range f.Labels {
		if !model.LegacyValidation.IsValidLabelName(label) || strings.HasPrefix(label, "__") {
			faults = append(faults, fmt.Sprintf("the label %q is invalid", label))
		}
		if slices.Contains(f.Labels[:i], label) {
			faults = append(faults, fmt.Sprintf("the label %q appears twice", label))
		}
	}
	return faults
}
