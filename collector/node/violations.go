package node

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// violations are the onsets of trouble that the claims of one class met
// here. Like the namespaces' totals they are never taken away while the
// process lives.
type violations struct {
	tallies [constraints]tally
	labels  [constraints]*metric.Labels
}

// openViolations makes the counters of a class that holds a device.
func (s *State) openViolations(class string, now time.Time) {
	if _, known := s.violations[class]; known {
		return
	}
	v := &violations{}
	for c := range v.tallies {
		v.tallies[c].open(now)
	}
	s.violations[class] = v
	s.reorder = true
}

// countViolations counts an onset where a constraint is violated that was
// not in the step before, once for each class that holds the unit, however
// many signals say so. A state that was there when it was first read began
// nobody knows when, and is no onset.
func (s *State) countViolations(u *deviceState) {
	violated, begun := uint8(0), uint8(0)
	for _, r := range u.health.raised {
		c := s.signals[r.signal].constraint
		if c == noConstraint {
			continue
		}
		violated |= 1 << c
		if !r.inherited {
			begun |= 1 << c
		}
	}
	onsets := begun &^ u.health.violated
	u.health.violated = violated
	if onsets == 0 {
		return
	}
	for _, class := range s.classesOn(u) {
		for c := range constraints {
			if onsets&(1<<c) != 0 {
				s.violations[class].tallies[c].total++
			}
		}
	}
}

// holdsOn calls yield with each hold of the unit by a claim, or of a
// partition of it.
func (s *State) holdsOn(u *deviceState, yield func(claim dra.ClaimRef, on *deviceState)) {
	for _, on := range s.devices.all() {
		if on == u || on.device.ParentUUID == u.uuid {
			for _, share := range on.holders.shares {
				yield(share.claim, on)
			}
		}
	}
}

// classesOn are the device classes of those holds, each once.
func (s *State) classesOn(u *deviceState) []string {
	var classes []string
	s.holdsOn(u, func(claim dra.ClaimRef, on *deviceState) {
		if t, known := s.tenures[holdKey{claim, on.uuid}]; known && t.held && !slices.Contains(classes, t.class) {
			classes = append(classes, t.class)
		}
	})
	return classes
}

// claimsOn are the claims of those holds, sorted, each once.
func (s *State) claimsOn(u *deviceState) []string {
	var claims []string
	s.holdsOn(u, func(claim dra.ClaimRef, _ *deviceState) { claims = append(claims, claim.String()) })
	slices.Sort(claims)
	return slices.Compact(claims)
}
