package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// phaseRow says since when a pod whose claim is allocated is in the phase that
// is under way.
type phaseRow struct {
	pod    dra.PodRef
	claim  string
	phase  string
	since  time.Time
	labels *metric.Labels
}

// followUnder says anew which phases of the pod are under way.
func (s *State) followUnder(p *podEntry) {
	rows := s.phasesUnder(p)
	if len(rows) == 0 && len(p.journey.rows) == 0 {
		return
	}
	if slices.EqualFunc(rows, p.journey.rows, samePhase) {
		return
	}
	s.phases.changed = true
	p.journey.rows = rows
	if len(rows) == 0 {
		delete(s.phases.under, p)
		return
	}
	s.phases.under[p] = struct{}{}
}

// followPrompted looks again at the phases under way where it has turned out
// that a kubelet tells of sandboxes: nodes may be told of after their pods.
func (s *State) followPrompted() {
	if !s.phases.prompted {
		return
	}
	s.phases.prompted = false
	for p := range s.phases.under {
		if p.life.Node != "" {
			s.followUnder(p)
		}
	}
}

func samePhase(a, b phaseRow) bool {
	return a.claim == b.claim && a.phase == b.phase && a.since.Equal(b.since)
}

// phasesUnder lists, for each claim that the pod has, the phase under way. A
// pod that has started, or will not, has none.
func (s *State) phasesUnder(p *podEntry) []phaseRow {
	if !p.alive() || p.journey.started.set() {
		return nil
	}
	var rows []phaseRow
	for i := range p.refs {
		c := p.refs[i].claim
		if c == nil || !c.reservedFor(p) || slices.ContainsFunc(rows, func(r phaseRow) bool { return r.claim == c.ref.Name }) {
			continue
		}
		phase, since := s.phaseUnder(p, &p.refs[i])
		rows = append(rows, phaseRow{pod: p.ref, claim: c.ref.Name, phase: phase, since: since})
	}
	return rows
}

// phaseUnder is the phase under way and since when, by servers' stamps alone,
// so that a restart of the exporter moves nothing. A pod that joins a claim is
// in none before it waits.
func (s *State) phaseUnder(p *podEntry, r *reference) (phase string, since time.Time) {
	waits := p.since(r)
	allocated := latest(r.claim.life.AllocatedAt, waits) // before Kubernetes 1.36 nobody writes when
	usable := allocated
	if r.claim.life.Binding == dra.BindingDone && !r.claim.life.BindingSince.IsZero() {
		usable = latest(r.claim.life.BindingSince, waits)
	}
	bound := p.life.Scheduled
	if bound.IsZero() {
		bound = p.life.Created
	}
	switch {
	case p.life.Node == "" && r.claim.life.Binding != dra.BindingNone && r.claim.life.Binding != dra.BindingDone:
		return phaseBinding, allocated
	case p.life.Node == "":
		return phaseScheduling, usable
	case !s.prompt(p):
		return phasePreparationStart, bound
	case p.life.Sandbox.IsZero():
		return phasePreparation, bound
	default:
		return phaseStart, p.life.Sandbox
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// phaseRows adds the phases under way, the longest first.
func (s *State) phaseRows() {
	if s.phases.changed {
		s.phases.changed = false
		s.phases.rows = s.phases.rows[:0]
		for p := range s.phases.under {
			for i := range p.journey.rows {
				row := &p.journey.rows[i]
				if row.labels == nil {
					row.labels = metric.NewLabels(s.families.phaseSince.Labels, row.pod.Namespace, row.pod.Name, row.claim, row.phase)
				}
				s.phases.rows = append(s.phases.rows, *row)
			}
		}
		slices.SortFunc(s.phases.rows, func(a, b phaseRow) int {
			return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name), cmp.Compare(a.claim, b.claim))
		})
	}
	s.rows.In(s.families.phaseSince)
	for i := range s.phases.rows {
		s.rows.Add(s.phases.rows[i].labels, float64(s.phases.rows[i].since.Unix()))
	}
}

// clockRows adds how many durations were contradicted by clocks.
func (s *State) clockRows() {
	s.rows.In(s.families.clockOff)
	for _, anomaly := range s.phases.anomalies {
		s.rows.AddFrom(anomaly.labels, anomaly.total, s.opened)
	}
}
