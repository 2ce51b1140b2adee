package cluster

import (
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// allRows writes down the state: who waits and what is under way, claims,
// supply, anomalies, and the exporter itself. A family that takes a collection
// that cannot be read is left out: half of the truth would be a lie.
func (s *State) allRows(facts Facts) []metric.Row {
	b, f, synced := s.rows, s.families, facts.Synced
	b.Begin()
	if synced.Claims && synced.Pods {
		s.waitingRows()
		s.phaseRows()
	}
	s.failureRows()
	if synced.Claims {
		s.stateRows(synced.Pods)
		s.markRows(synced.Pods)
	}
	s.waits.supply.rows(b, f, synced)
	if synced.Claims && synced.Pods && synced.Slices {
		s.waits.health.rows(b, f)
	}
	if synced.Pods {
		s.waits.evictions.rows(b, f)
	}
	s.clockRows()
	s.diagnosisRows(facts)
	f.self.Rows(b, s.config.Version, facts.Sources)
	f.self.DroppedRows(b)
	return b.Rows()
}

func (s *State) stateRows(pods bool) {
	s.rows.In(s.families.claims)
	for _, count := range s.waits.states.sorted() {
		labels := count.label(s.families)
		for state := range claimState(claimStates) {
			if pods || !state.needsPods() {
				s.rows.Add(labels[state], float64(count.claims[state]))
			}
		}
	}
}

func (s *State) markRows(pods bool) {
	b, f := s.rows, s.families
	b.In(f.terminatingSince)
	s.waits.terminating.each(func(c *claimEntry, labels *metric.Labels) {
		b.Add(labels, float64(c.life.Deleted.Unix()))
	})
	if !pods || !s.waits.watches.agree {
		return
	}
	b.In(f.orphaned)
	s.waits.orphaned.each(func(_ *claimEntry, labels *metric.Labels) { b.Add(labels, 1) })
}
