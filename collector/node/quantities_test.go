package node

import (
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Each quantity has a family, with the name by which drivers serve it, and its unit and
// labels.
func TestFamiliesOfQuantities(t *testing.T) {
	families := Families()
	for q, spec := range device.Specs() {
		at := slices.IndexFunc(families, func(f *metric.Family) bool { return f.Name == spec.Family() })
		switch {
		case device.Quantity(q) == device.Extension:
		case at < 0:
			t.Errorf("%s has no family", spec.Family())
		case families[at].Unit != spec.Unit || !slices.Equal(families[at].Labels, deviceLabels(spec.Details...)):
			t.Errorf("the family is %+v", families[at])
		}
	}
}
