package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// waits is what is remembered of waiting references, of what claims are
// counted as, and of anomalies. Each is brought up to date from what changes
// have touched.
type waits struct {
	listener listener
	states   states
	backing  backing

	order   []*waiter // the oldest wait first
	added   []*waiter // since order was made
	removed bool      // some of order are gone
	resort  bool      // some of order have another since
	young   map[*waiter]struct{}
	stale   map[*waiter]struct{} // whose reason must be found again
	synced  Synced
	watches watches

	waiting   []Waiting // as last told; nil: something has changed
	questions []dra.Question

	terminating, orphaned marks
	strays                map[*claimEntry]struct{} // that pods may concern which do not name them
	health                healthWords
	evictions             evictions
	supply                supplyLabels
}

// podWaiting is what the waits keep with a pod.
type podWaiting struct {
	waiters  []*waiter
	reviewed bool
	words    []kubeletWord
	question bool // has been listed in the questions being made
	counted  bool // among the pods of its namespace
}

// waiter is a reference that waits.
type waiter struct {
	pod       *podEntry
	ref       dra.PodRef
	uid       string
	name      string // of the reference
	reference reference
	claim     string // name of the claim, once it is there
	claimUID  string // its UID
	class     string
	since     time.Time
	gone      bool

	verdict *dra.Verdict
	reason  dra.PendingReason
	message string
	known   clock.Instant // since when the reason is this one
	silent  bool          // found in a list: its first reason is no onset
	mixed   bool          // the scheduler speaks of devices, whatever else it speaks of
	counted map[dra.PendingReason]struct{}

	labels waiterLabels
}

// waiterLabels are made when they are first shown, and again where what they
// say has changed.
type waiterLabels struct {
	since, reason *metric.Labels
	candidates    []*metric.Labels // request by request, all stages of each
	requested     []*metric.Labels // request by request
}

func newWaits() waits {
	return waits{
		listener:    newListener(),
		states:      newStates(),
		young:       make(map[*waiter]struct{}),
		stale:       make(map[*waiter]struct{}),
		backing:     newBacking(),
		strays:      make(map[*claimEntry]struct{}),
		terminating: newMarks(),
		orphaned:    newMarks(),
		health:      newHealthWords(),
		evictions:   newEvictions(),
	}
}

// settleWaits runs once a step, after all changes are applied: it looks again
// at the claims and pods that they touched, and at what the judge says, and
// tells who waits for what, and what is to be judged.
func (s *State) settleWaits(facts Facts, now clock.Instant) ([]Waiting, []dra.Question, []Event) {
	w := &s.waits
	w.watches.look(facts.Sources, now)
	first := s.noteFirstSight(facts.Changes)
	s.reviewBacking(facts)
	if len(s.touched.pods) > 0 {
		maps.Copy(s.touched.claims, w.strays)
	}
	for c := range s.touched.claims {
		s.reviewClaim(c, now.Wall)
	}
	for p := range s.touched.pods {
		_, found := first[p]
		s.reviewPod(p, found)
	}
	w.evictions.forget()
	s.forgetClasses()
	known := facts.Synced.Claims && facts.Synced.Pods
	if known {
		s.hearVerdicts(facts)
		s.reviewReasons(facts.Synced, now)
		s.countOnsets(now)
	}
	w.arrange()
	w.supply.take(facts.Supply, s.families)
	events := w.health.compare(facts)
	if !known {
		return nil, nil, events // nobody can say who waits
	}
	if w.waiting == nil {
		w.waiting, w.questions = s.tell()
	}
	return w.waiting, w.questions, events
}

// noteFirstSight returns the pods that this step's changes tell of for the
// first time, and in a list: what is amiss with them may have been so before
// the exporter started.
func (s *State) noteFirstSight(changes []Change) map[*podEntry]struct{} {
	var found map[*podEntry]struct{}
	for i := range changes {
		change := &changes[i]
		if change.Pod == nil || change.Gone || change.Live {
			continue
		}
		p, known := s.books.pods[change.Pod.Ref]
		if !known || p.waiting.reviewed || p.life.UID != change.Pod.UID {
			continue
		}
		if found == nil {
			found = make(map[*podEntry]struct{})
		}
		found[p] = struct{}{}
	}
	return found
}

// reviewClaim looks again at a claim that has changed, or whose pods have.
func (s *State) reviewClaim(c *claimEntry, now time.Time) {
	b := &c.state
	class, since := "", c.waitedSince()
	if c.life != nil {
		class = c.life.Class()
		s.failures.open(class, now)
	}
	if class != b.class || !since.Equal(b.since) {
		for _, p := range c.users {
			s.touched.pods[p] = struct{}{}
		}
	}
	b.class, b.since = class, since
	s.waits.states.recount(c)
	s.waits.terminating.set(c, &b.terminating, c.life != nil && !c.life.Deleted.IsZero() && len(c.life.Finalizers) > 0, s.families.terminatingSince)
	orphaned, strayed := s.books.reservations(c)
	s.waits.orphaned.set(c, &b.orphaned, orphaned, s.families.orphaned)
	if strayed {
		s.waits.strays[c] = struct{}{}
	} else {
		delete(s.waits.strays, c)
	}
}

// reviewPod looks again at which of the pod's references wait. Those that went
// on waiting keep what was found of them.
func (s *State) reviewPod(p *podEntry, found bool) {
	w := &s.waits
	before := p.waiting.waiters
	p.waiting.waiters = nil
	for i := range p.refs {
		r := &p.refs[i]
		if !p.waits(r) || !w.backing.asks(r) || slices.ContainsFunc(p.waiting.waiters, r.is) {
			continue
		}
		at := slices.IndexFunc(before, r.is)
		if at < 0 {
			before = append(before, &waiter{pod: p, ref: p.ref, uid: p.life.UID, name: r.name, silent: found && !p.waiting.reviewed})
			at = len(before) - 1
			w.added = append(w.added, before[at])
		}
		p.waiting.waiters = append(p.waiting.waiters, before[at])
		s.review(before[at], r)
	}
	for _, was := range before {
		if !slices.Contains(p.waiting.waiters, was) {
			w.drop(was)
			s.stopPending(was)
		}
	}
	p.waiting.reviewed = true
	w.backing.follow(p)
	w.health.hear(p)
	w.evictions.follow(p)
}

// waits reports whether the reference of a pod that may still be scheduled is
// not satisfied. A claim that is being deleted satisfies nobody any more.
func (p *podEntry) waits(r *reference) bool {
	return p.alive() && p.life.Node == "" && (!p.satisfied(r) || r.vanishing())
}

// vanishing reports whether the claim is being deleted.
func (r *reference) vanishing() bool {
	return r.claim != nil && r.claim.life != nil && !r.claim.life.Deleted.IsZero()
}

// is reports whether the waiter stands for the reference.
func (r *reference) is(w *waiter) bool { return r.name == w.name }
