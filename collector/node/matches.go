package node

import (
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Match says which hardware stands for a device that a driver named, and by
// which of the rules of docs/architecture.md that was found.
type Match struct {
	Device   dra.DeviceID
	Hardware device.Device
	Rule     string
}

// Matches matches as a State does that remembers nothing, for those who want
// to know why. Devices without hardware are not in the result, which is in the
// order of the rules.
func Matches(facts Facts) []Match {
	hardware := make([]device.Device, len(facts.Samples))
	index := make(hardwareIndex, len(hardware))
	for i, sample := range facts.Samples {
		hardware[i] = sample.Device
		if sample.Device.UUID != "" {
			index[sample.Device.UUID] = sample.Device
		}
	}
	named := subjects(facts)
	found, taken := make(map[dra.DeviceID]int, len(named)), make([]bool, len(hardware))
	var matches []Match
	for _, r := range rules() {
		before := len(matches)
		r.apply(named, hardware, index, found, taken)
		if len(found) == before {
			continue
		}
		known := make(map[dra.DeviceID]bool, before)
		for _, earlier := range matches {
			known[earlier.Device] = true
		}
		for _, s := range named {
			if i, matched := found[s.id]; matched && !known[s.id] {
				matches = append(matches, Match{Device: s.id, Hardware: hardware[i], Rule: r.name})
			}
		}
	}
	return matches
}
