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
	for i, sample := range facts.Samples {
		hardware[i] = sample.Device
	}
	m := newMatching(subjects(facts, nil), hardware, nil)
	var matches []Match
	known := make(map[dra.DeviceID]bool)
	add := func(found map[dra.DeviceID]int, rule string) {
		for _, s := range m.subjects {
			if i, matched := found[s.id]; matched && !known[s.id] {
				known[s.id] = true
				matches = append(matches, Match{Device: s.id, Hardware: hardware[i], Rule: rule})
			}
		}
	}
	for _, r := range rules() {
		m.apply(r)
		add(m.found, r.name)
	}
	m.conflicts()
	add(m.found, ruleConflict)
	add(m.twice, ruleConflict)
	return matches
}

// ruleConflict is what a match is called that several published devices have.
const ruleConflict = "the same identity as another device"
