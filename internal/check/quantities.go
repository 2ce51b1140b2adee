package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// expected returns the most important quantities. A partition has no power,
// energy or temperature of its own.
func expected(d device.Device) []device.Quantity {
	quantities := []device.Quantity{device.Utilization, device.MemoryUsed, device.MemorySize}
	if d.IsPartition() {
		return quantities
	}
	return append(quantities, device.Power, device.Energy, device.Temperature)
}

// adapter reports whether a device carries traffic and does no work.
func adapter(sample device.Sample) bool {
	return slices.ContainsFunc(sample.Readings, func(r device.Reading) bool {
		return r.Quantity == device.NetworkTransmit || r.Quantity == device.NetworkReceive || r.Quantity == device.NetworkLinks
	})
}

func (s sources) missingRemedy(d device.Device, missing map[device.Quantity]int) string {
	switch {
	case d.IsPartition() && missing[device.Utilization] > 0 && !s.Profiling:
		return "The driver reports the utilization of partitions only with the profiling counters: --device.profiling."
	case d.IsPartition():
		return "The driver needs more privilege to report it for partitions (monitoring of MIG), or does not report it."
	default:
		return "The device or its driver does not report it to this source; another source may."
	}
}

// modelDevices is the devices of one model that one source reads.
type modelDevices struct {
	name     string
	example  device.Device
	devices  int
	missing  map[device.Quantity]int // how many devices lack it
	reported map[device.Quantity]bool
}

// kinds groups the samples of what does work. For a device that was never read,
// missing quantities are unknown.
func (s sources) kinds() []*modelDevices {
	var kinds []*modelDevices
	for _, sample := range s.Samples {
		if sample.Device.Vendor == "" || sample.At.IsZero() || adapter(sample) {
			continue
		}
		name := sample.Source + ", " + deviceKind(sample.Device)
		at := slices.IndexFunc(kinds, func(k *modelDevices) bool { return k.name == name })
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, &modelDevices{name: name, example: sample.Device, missing: map[device.Quantity]int{}, reported: map[device.Quantity]bool{}})
		}
		kinds[at].add(sample)
	}
	return kinds
}

func (k *modelDevices) add(sample device.Sample) {
	k.devices++
	known := map[device.Quantity]bool{}
	for _, reading := range sample.Readings {
		known[reading.Quantity], k.reported[reading.Quantity] = true, true
	}
	for _, quantity := range expected(sample.Device) {
		if !known[quantity] {
			k.missing[quantity]++
		}
	}
}

// absent returns the missing quantities, of all devices or of some.
func (k *modelDevices) absent() string {
	var names []string
	specs := device.Specs()
	for _, quantity := range expected(k.example) {
		switch n := k.missing[quantity]; {
		case n == k.devices:
			names = append(names, specs[quantity].Name)
		case n > 0:
			names = append(names, fmt.Sprintf("%s (of %d of %d)", specs[quantity].Name, n, k.devices))
		}
	}
	return strings.Join(names, ", ")
}

// quantities reports for each model which quantities cannot be read. Utilization and
// memory are needed most.
func (s sources) quantities(section area) []Finding {
	var findings []Finding
	for _, k := range s.kinds() {
		absent := k.absent()
		switch {
		case absent == "":
			findings = append(findings, section.ok("quantities", "%s: %d, with all common quantities", k.name, len(k.reported)))
		case k.missing[device.Utilization] == 0 && k.missing[device.MemoryUsed] == 0:
			findings = append(findings, section.skipped("quantities", "%s: %d; not reported by its driver: %s", k.name, len(k.reported), absent))
		default:
			findings = append(findings, about("docs/sources.md", section.warning(s.missingRemedy(k.example, k.missing), "quantities", "%s: %d; not reported: %s", k.name, len(k.reported), absent)))
		}
	}
	return findings
}
