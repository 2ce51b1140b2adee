package sysfstest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Text writes down what a read has found, for golden files: each device, then
// its readings, those of the slow tier marked, in a fixed order. root, which
// differs from test to test, is left out of the error.
func Text(root string, observations []device.Observation, err error) string {
	var b strings.Builder
	for _, o := range observations {
		d := o.Device
		fmt.Fprintf(&b, "device uuid=%q vendor=%q model=%q pci=%q minor=%d render=%d driver=%q nodes=%v\n",
			d.UUID, d.Vendor, d.Model, d.PCIBusID, d.Minor, d.RenderMinor, d.DriverVersion, d.Nodes)
		lines := append(readings("", o.Readings), readings(" (slow)", o.Slow)...)
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
	}
	if err != nil {
		fmt.Fprintf(&b, "error %s\n", strings.ReplaceAll(err.Error(), root, ""))
	}
	return b.String()
}

func readings(mark string, readings []device.Reading) []string {
	specs := device.Specs()
	var lines []string
	for _, r := range readings {
		spec := specs[r.Quantity]
		var details []string
		for i, name := range spec.Details {
			details = append(details, fmt.Sprintf("%s=%q", name, r.Details[i]))
		}
		lines = append(lines, fmt.Sprintf("  %s{%s}%s %s\n",
			spec.Name, strings.Join(details, ","), mark, strconv.FormatFloat(r.Value, 'f', -1, 64)))
	}
	return lines
}
