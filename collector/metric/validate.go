package metric

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// Validate reports all that is wrong with a table of families: names that
// Prometheus refuses or that appear twice, counters without _total and gauges
// with it, units that the name does not end with, missing or unfinished help,
// labels that are invalid or appear twice. It is for tests of tables; pages do
// not call it.
func Validate(families []*Family) error {
	var errs []error
	seen := map[string]bool{}
	for _, family := range families {
		if seen[family.Name] {
			errs = append(errs, fmt.Errorf("family %s: appears twice", family.Name))
		}
		seen[family.Name] = true
		for _, fault := range family.faults() {
			errs = append(errs, fmt.Errorf("family %s: %s", family.Name, fault))
		}
	}
	return errors.Join(errs...)
}

func (f *Family) faults() []string {
	var faults []string
	if !model.LegacyValidation.IsValidMetricName(f.Name) {
		faults = append(faults, "the name is invalid")
	}
	if strings.HasSuffix(f.Name, "_total") != (f.Type == Counter) {
		faults = append(faults, "counters end with _total, and nothing else does")
	}
	if f.Unit != "" && !f.unitInName() {
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
