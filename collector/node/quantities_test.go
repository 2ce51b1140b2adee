package node

import (
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// A quantity's family has the name by which drivers serve it, and its unit and labels.
func TestFamiliesOfQuantities(t *testing.T) {
	families := newFamilies()
	for q, spec := range device.Specs() {
		family := families.quantity[q]
		if device.Quantity(q) == device.Extension {
			continue
		}
		if labels := deviceLabels(spec.Details...); family.Name != spec.Family() || family.Unit != spec.Unit || !slices.Equal(family.Labels, labels) {
			t.Errorf("%s: the family is %+v", spec.Family(), family)
		}
	}
}
