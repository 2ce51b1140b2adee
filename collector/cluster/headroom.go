package cluster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// strandedTimes adds up how long devices have been stranded.
type strandedTimes struct {
	headroom *dra.Headroom
	known    bool          // what the headroom depends on was known at the step before
	last     clock.Instant // of that step

	seconds map[strandedKey]*model.StrandedTime
	list    stableList[model.StrandedTime]
}

// strandedKey identifies a total.
type strandedKey struct {
	driver string
	reason dra.StrandedReason
}

func newStrandedTimes() *strandedTimes {
	return &strandedTimes{seconds: make(map[strandedKey]*model.StrandedTime)}
}

// update takes the headroom. Until now devices were stranded as the one before has it. The
// total of a driver and reason begins when there are such devices for the first time.
func (s *strandedTimes) update(headroom *dra.Headroom, synced Synced, now clock.Instant) {
	if s.known {
		s.accrue(now.Since(s.last).Seconds())
	}
	s.last, s.headroom = now, headroom
	s.known = headroom != nil && headroom.StrandedKnown && synced.Claims && synced.Slices && synced.Classes && synced.Nodes && synced.Pods
	if !s.known {
		return
	}
	for i := range headroom.Stranded {
		stranded := &headroom.Stranded[i]
		key := strandedKey{stranded.Driver, stranded.Reason}
		if s.seconds[key] == nil {
			s.seconds[key] = &model.StrandedTime{Driver: stranded.Driver, Reason: stranded.Reason, Since: now.Wall}
		}
	}
}

func (s *strandedTimes) accrue(seconds float64) {
	for i := range s.headroom.Stranded {
		stranded := &s.headroom.Stranded[i]
		if total := s.seconds[strandedKey{stranded.Driver, stranded.Reason}]; total != nil {
			total.Seconds += stranded.Devices * seconds
		}
	}
}

// totals returns the times, sorted.
func (s *strandedTimes) totals() []model.StrandedTime {
	for _, key := range slices.SortedFunc(maps.Keys(s.seconds), func(a, b strandedKey) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.reason, b.reason))
	}) {
		s.list.add(*s.seconds[key])
	}
	return s.list.take()
}

// addHeadroom adds the headroom to the model. What depends on nodes or pods is left out
// while these are not known; so is everything while claims, slices or classes are not.
func addHeadroom(m *model.Cluster, headroom *dra.Headroom, synced Synced) {
	if headroom == nil || !synced.Claims || !synced.Slices || !synced.Classes {
		return
	}
	m.Shapes, m.Fragmentation = headroom.Shapes, headroom.Classes
	if synced.Nodes && synced.Pods && headroom.StrandedKnown {
		m.Stranded, m.KeptNodes = headroom.Stranded, headroom.KeptNodes
	}
}
