package cluster

import (
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// tracing is what is kept for the traces that have yet to be told. It stays
// empty unless somebody wants them (Config.Traces).
type tracing struct {
	on   bool
	now  clock.Instant // of this step
	told []trace.Trace // in this step
	open []*podEntry   // that have started; whether all is known of them is yet to be seen
	held []heldTrace
	kept *int // how many notes all stories have together
}

func newTracing(on bool) tracing { return tracing{on: on, kept: new(int)} }

// story is what is remembered of a pod for its traces, beside its journey: from
// when it is known until its first container starts, or never will.
type story struct {
	schedulable moment // since when it could be bound as far as its claims go; unset: not known
	deleted     mark   // when its deletion was asked for, as far as that was told live
	attempts    []attempt
	threads     []thread
	kept        *int // that of tracing

	// Once the pod has started: it may change before all is known of its claims.
	open             bool
	started, sandbox moment
}

// ending is when, and how, a trace comes to its end. failed is empty where the
// first container of the pod has started.
type ending struct {
	moment
	failed, message string
}

// What is said of a trace that failed.
const (
	messagePodDeleted   = "the pod was deleted before a container of it had started"
	messageEvicted      = "the taint of a device evicted the pod before a container of it had started"
	messagePodFailed    = "the pod ended before a container of it had started"
	messageClaimDeleted = "the claim was deleted before a container of the pod had started"
)

// lagTime is for how long a trace waits for its claims after the pod has
// started: their watch may be the one that lags behind.
const lagTime = owedTime

// beginStory begins to remember what traces need of a pod that is new. One that
// a list tells has started or ended has had its traces.
func (s *State) beginStory(p *podEntry, change *Change) {
	if !s.tracing.on || (!change.Live && (!p.life.Started.IsZero() || p.life.Terminal)) {
		return
	}
	p.journey.story = &story{kept: s.tracing.kept}
	about := []string{p.life.UID}
	if group := s.books.group(p); group != nil {
		about = append(about, group.UID)
	}
	for _, uid := range about {
		told := s.books.trouble.creation[uid]
		for _, event := range slices.Sorted(maps.Keys(told)) {
			trouble := told[event]
			s.noteTrouble(p, &trouble, false, change.At)
		}
	}
}

// dropStory forgets what was kept for the traces of a pod.
func (p *podEntry) dropStory() {
	if st := p.journey.story; st != nil {
		st.cut(func(*thread) bool { return true })
		p.journey.story = nil
	}
}

// followStory ends the traces of a pod that has started, or that has ended
// before. What a list tells ends none: then nothing is told of the pod at all.
func (s *State) followStory(p *podEntry, before *dra.PodLife, change *Change) {
	j := &p.journey
	if j.story == nil {
		return
	}
	if change.Live && !p.life.Deleted.IsZero() && (before == nil || before.Deleted.IsZero()) {
		j.story.deleted = markOf(change)
	}
	switch {
	case j.started.live && !j.story.open:
		s.openStory(p)
	case j.started.live:
		// It waits for its claims.
	case j.started.set(), p.life.Terminal && !change.Live:
		p.dropStory()
	case p.life.Terminal:
		s.endStory(p, p.endingAt(markOf(change)))
	}
}

// openStory ends the traces of a pod that has just started, once all is known
// of them.
func (s *State) openStory(p *podEntry) {
	story := p.journey.story
	story.open, story.started = true, s.startedMoment(p)
	if p.journey.sandbox.set() {
		story.sandbox = s.sandboxMoment(p)
	}
	if p.knowsClaims() {
		s.endStory(p, ending{moment: story.started})
		return
	}
	s.tracing.open = append(s.tracing.open, p)
}

// loseStory ends the traces of a pod that is gone.
func (s *State) loseStory(p *podEntry, change *Change) {
	switch story := p.journey.story; {
	case story == nil:
	case story.open:
		s.endStory(p, ending{moment: story.started})
	case change.Live:
		s.endStory(p, p.endingAt(markOf(change)))
	}
	p.dropStory()
}

// endingAt is how the traces of a pod end that has not started. Since its
// deletion was asked for nobody has waited for it.
func (p *podEntry) endingAt(at mark) ending {
	if deleted := p.journey.story.deleted; deleted.set() {
		at = deleted
	}
	end := ending{moment: moment{mark: at}, failed: trace.FailedPodDeleted, message: messagePodDeleted}
	switch {
	case p.life.Evicted:
		end.failed, end.message = trace.FailedEvicted, messageEvicted
	case p.life.Terminal && p.life.Deleted.IsZero():
		end.failed, end.message = trace.FailedPodFailed, messagePodFailed
	}
	return end
}

// endStory tells the traces of a pod, one for each of its claims that is there,
// and forgets what was kept for them.
func (s *State) endStory(p *podEntry, end ending) {
	for i := range p.refs {
		r := &p.refs[i]
		if !r.present() || r.foreign(p) || names(p.refs[:i], r.claim) {
			continue
		}
		if t, known := s.traceOf(p, r, end); known {
			s.tracing.told = append(s.tracing.told, t)
		}
	}
	p.dropStory()
}

// settleTraces tells, at the end of a step, the traces of which all is known
// now, and those of which no more will be. It runs once all changes are applied.
func (s *State) settleTraces(now clock.Instant) {
	t := &s.tracing
	if !t.on {
		return
	}
	t.open = slices.DeleteFunc(t.open, func(p *podEntry) bool {
		if p.journey.story == nil {
			return true // gone
		}
		if !p.knowsClaims() && now.Since(p.journey.started.told) < lagTime {
			return false
		}
		s.endStory(p, ending{moment: p.journey.story.started})
		return true
	})
	t.release(now)
}

// knowsClaims reports whether all is known of the claims of a pod that has
// started: that they are allocated, and so when it could be bound.
func (p *podEntry) knowsClaims() bool {
	claims := 0
	for i := range p.refs {
		r := &p.refs[i]
		if r.claim == nil && r.extended > 0 {
			continue // a device plugin's
		}
		if !r.present() || !r.claim.life.Allocated {
			return false
		}
		claims++
	}
	return claims == 0 || p.journey.schedulingDone
}
