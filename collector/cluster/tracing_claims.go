package cluster

import (
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// mostAttempts is how many attempts are kept of one claim for one pod: the
// first ones and the last ones.
const mostAttempts = 16

// attempt is an allocation of a claim for a pod.
type attempt struct {
	uid        string // of the claim
	number     int    // from 1
	since      mark   // when the reservation before was taken back; unset for the first
	allocated  moment
	conditions moment // when all binding conditions had become true; unset: they had not
	binding    dra.Binding
	lost       mark // when the reservation was taken back; unset: it was not
}

// loseAttempt notes that the claim is not reserved for the pod any more. before
// is the claim as it was; its course still is what it was.
func (st *story) loseAttempt(c *claimEntry, before *dra.ClaimLife, at mark) {
	lost := attempt{uid: before.UID, number: 1, lost: at, binding: before.Binding}
	var others []int
	for i := range st.attempts {
		if st.attempts[i].uid == before.UID {
			others = append(others, i)
			lost.number, lost.since = st.attempts[i].number+1, st.attempts[i].lost
		}
	}
	if lost.since == at {
		return // the pod had it twice, also through its group
	}
	lost.allocated = allocatedMoment(before, c.course.allocated)
	if c.course.bound.set() {
		lost.conditions = conditionsMoment(before, c.course.bound)
	}
	if len(others) == mostAttempts {
		middle := others[mostAttempts/2]
		st.attempts = slices.Delete(st.attempts, middle, middle+1)
	}
	st.attempts = append(st.attempts, lost)
}

// tried is how many allocations of the claim the pod has lost.
func (st *story) tried(uid string) int {
	tried := 0
	for i := range st.attempts {
		if st.attempts[i].uid == uid {
			tried = st.attempts[i].number
		}
	}
	return tried
}

// heldTrace is the trace of a claim that is gone, while its pod is still there.
// The pod may be what was deleted, and its watch lag behind.
type heldTrace struct {
	pod   *podEntry
	trace trace.Trace
	told  clock.Instant
}

// loseClaimStories ends the traces of a claim that is gone.
func (s *State) loseClaimStories(c *claimEntry, change *Change) {
	if !s.tracing.on || c.life == nil {
		return
	}
	for _, p := range c.users {
		if p.journey.story == nil {
			continue
		}
		for i := range p.refs {
			if r := &p.refs[i]; r.claim == c && !r.foreign(p) {
				s.loseClaimStory(p, r, change)
				break
			}
		}
	}
}

func (s *State) loseClaimStory(p *podEntry, r *reference, change *Change) {
	story := p.journey.story
	end := ending{moment: moment{mark: markOf(change)}, failed: trace.FailedClaimDeleted, message: messageClaimDeleted}
	switch {
	case story.open:
		end = ending{moment: story.started}
	case story.deleted.set():
		end = p.endingAt(markOf(change))
	}
	switch t, known := s.traceOf(p, r, end); {
	case known && story.open: // its end was told live, however that of the claim is told
		s.tracing.told = append(s.tracing.told, t)
	case known && change.Live:
		s.tracing.held = append(s.tracing.held, heldTrace{p, t, change.At})
	}
	story.forget(r)
}

// forget forgets what was kept for the trace of one claim.
func (st *story) forget(r *reference) {
	uid := r.claim.life.UID
	st.attempts = slices.DeleteFunc(st.attempts, func(a attempt) bool { return a.uid == uid })
	st.cut(func(t *thread) bool { return t.reference == r.name })
}

// release tells the traces of claims that are gone, once it is known whether
// their pods are, too.
func (t *tracing) release(now clock.Instant) {
	t.held = slices.DeleteFunc(t.held, func(h heldTrace) bool {
		switch {
		case !h.pod.alive():
			h.trace = blamePod(h.trace)
		case now.Since(h.told) < disorder:
			return false
		}
		t.told = append(t.told, h.trace)
		return true
	})
}

// blamePod says of a trace whose claim is gone that it was its pod that was
// deleted.
func blamePod(t trace.Trace) trace.Trace {
	for i := range t.Spans {
		if span := &t.Spans[i]; span.Failed == trace.FailedClaimDeleted {
			span.Failed = trace.FailedPodDeleted
			span.Message = messagePodDeleted + strings.TrimPrefix(span.Message, messageClaimDeleted)
		}
	}
	return t
}

// dropped is how many attempts did not fit.
func (st *story) dropped(uid string) int {
	kept := 0
	for i := range st.attempts {
		if st.attempts[i].uid == uid {
			kept++
		}
	}
	return st.tried(uid) - kept
}
