package cluster

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// segment is a phase of a pod and one of its claims: from one moment to
// another, or under way.
type segment struct {
	phase           string
	attempt         int
	begin, end      moment
	underWay        bool
	failed, message string
}

// segments lists the phases of the timeline in their order, those that were
// tried in vain first.
func (t *timeline) segments(s *State, r *reference) []segment {
	wait := s.waitedMoment(t.p, r)
	lost, last := t.attempts()
	var all []segment
	for _, a := range lost {
		phases := t.attempt(s, a, wait, false)
		if latest := len(phases) - 1; latest >= 0 {
			given := &phases[latest]
			given.end, given.underWay = moment{mark: a.lost}, false
			given.failed, given.message = trace.FailedReservationLost, "the reservation was taken back"
			if a.binding == dra.BindingFailed {
				given.failed, given.message = trace.FailedBinding, "a failure condition of a device became true, and the reservation was taken back"
			}
		}
		all = append(all, phases...)
	}
	return append(append(all, t.attempt(s, last, wait, true)...), t.onNode(s)...)
}

// waitedMoment is since when the pod had waited when it came to its end: of a
// claim that was told of only afterwards nothing was known then.
func (s *State) waitedMoment(p *podEntry, r *reference) moment {
	started := p.journey.started
	if started.live && r.claim.course.made.told.Since(started.told) > 0 {
		return p.madeMoment()
	}
	return s.waitMoment(p, r)
}

// attempts are the allocations of the claim for the pod that were taken back,
// and the last one. Once the pod is bound, and where it is deleted, the
// reservation may be taken back: that is no failure of it.
func (t *timeline) attempts() (lost []attempt, last attempt) {
	c, j := t.c, &t.p.journey
	for _, a := range j.story.attempts {
		if a.uid == c.life.UID {
			lost = append(lost, a)
		}
	}
	n := len(lost)
	last = attempt{number: 1}
	if n > 0 {
		last.number, last.since = lost[n-1].number+1, lost[n-1].lost
	}
	switch {
	case c.course.allocated.set() && (n == 0 || c.reservedFor(t.p)):
		last.allocated, last.binding = c.allocatedMoment(), c.life.Binding
		if c.course.bound.set() {
			last.conditions = c.conditionsMoment()
		}
	case n > 0 && (j.bound.set() || (t.end.failed != "" && t.end.told.Since(lost[n-1].lost.told) < disorder)):
		last, lost = lost[n-1], lost[:n-1]
	}
	return lost, last
}

// attempt lists the phases of one allocation until the pod was bound with it.
// The latest of them is under way if the pod never was.
func (t *timeline) attempt(s *State, a attempt, wait moment, last bool) []segment {
	j := &t.p.journey
	begin := wait
	if a.number > 1 {
		begin = moment{mark: a.since}
	}
	if !a.allocated.set() {
		return []segment{{phase: phaseAllocation, attempt: a.number, begin: begin, underWay: true}}
	}
	var all []segment
	usable, joined := a.allocated, a.number == 1 && !t.waited(s, wait, a.allocated)
	if joined {
		usable = s.later(wait, a.allocated)
	} else {
		all = append(all, segment{phase: phaseAllocation, attempt: a.number, begin: begin, end: a.allocated})
	}
	if a.binding == dra.BindingWaiting || a.binding == dra.BindingFailed {
		if last && j.bound.set() {
			return all // the claim's watch lags: nobody knows when they became true
		}
		return append(all, segment{phase: phaseBinding, attempt: a.number, begin: usable, underWay: true})
	}
	if !a.conditions.live && contradicts(a.conditions.stamp, t.p.life.Scheduled) && !t.p.life.Scheduled.IsZero() {
		a.conditions.doubt = true // the pod was bound before: a driver's clock is off
	}
	if a.conditions.set() && (!joined || s.later(usable, a.conditions).by == clockDriver) {
		all = append(all, segment{phase: phaseBinding, attempt: a.number, begin: usable, end: a.conditions})
		usable = a.conditions
	}
	scheduling := segment{phase: phaseScheduling, attempt: a.number, begin: usable, underWay: true}
	if last && j.bound.set() {
		scheduling.end, scheduling.underWay = t.p.boundMoment(), false
		if j.story.schedulable.set() {
			scheduling.begin = j.story.schedulable
		}
	}
	if last && j.direct {
		return all
	}
	return append(all, scheduling)
}

// waited reports whether the pod was waiting when the claim was allocated. Who
// came later, be it by what two watches told in the wrong order, has waited if
// the claim was allocated for it.
func (t *timeline) waited(s *State, wait, allocated moment) bool {
	begin, begun := s.instant(wait, t.end.told)
	end, over := s.instant(allocated, t.end.told)
	switch {
	case !begun || !over:
		return false
	case end >= begin:
		return true
	default:
		first := t.c.life.ReservedFor
		meant := t.c.course.observed == t.p || (len(first) > 0 && t.p.isFor(&first[0]))
		return meant && s.inOrder(wait, allocated, end-begin) >= 0
	}
}

// onNode lists the phases of a pod that is bound.
func (t *timeline) onNode(s *State) []segment {
	p, j := t.p, &t.p.journey
	if !j.bound.set() {
		return nil
	}
	started := t.end.failed == ""
	last := segment{phase: phasePreparationStart, attempt: 1, begin: p.boundMoment(), end: t.end.moment, underWay: !started}
	if !s.prompt(p) {
		return []segment{last}
	}
	sandbox := t.sandbox(s)
	if !sandbox.set() {
		if last.phase = phasePreparation; started {
			return nil // nobody knows when the sandbox was ready
		}
		return []segment{last}
	}
	last.phase, last.begin = phaseStart, sandbox
	return []segment{{phase: phasePreparation, attempt: 1, begin: p.boundMoment(), end: sandbox}, last}
}

// sandbox is when the pod's sandbox was ready; unset if it was not.
func (t *timeline) sandbox(s *State) moment {
	switch j := &t.p.journey; {
	case j.story.open:
		return j.story.sandbox
	case j.sandbox.set():
		return s.sandboxMoment(t.p)
	default:
		return moment{}
	}
}
