package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// claimState is the one state of dra_claims that a claim is in.
type claimState uint8

const (
	stateUnused    claimState = iota // no live pod names it, and it is not allocated
	statePending                     // a live pod names it, and it is not allocated
	stateAllocated                   // and reserved by nobody
	stateReserved
	stateTerminating // its deletion has begun
	claimStates      = iota
)

func (s claimState) String() string {
	return [claimStates]string{"unused", "pending", "allocated", "reserved", "terminating"}[s]
}

// needsPods reports whether only who knows the pods can tell the state.
func (s claimState) needsPods() bool { return s == stateUnused || s == statePending }

// claimBook is what the waits keep with a claim: how it was counted last, and
// what all pods that wait for it share.
type claimBook struct {
	count *stateCount // nil: not counted
	state claimState
	class string
	since time.Time // since when pods that may be scheduled have been waiting; zero: none does

	terminating, orphaned *metric.Labels // nil: it is not
}

// states counts claims by namespace, device class and state.
type states struct {
	counts  map[stateKey]*stateCount
	order   []*stateCount       // sorted; nil: a count has come or gone since
	classes map[string]int      // how many counts a class has
	idle    map[string]struct{} // classes that may have none any more
}

func newStates() states {
	return states{counts: make(map[stateKey]*stateCount), classes: make(map[string]int), idle: make(map[string]struct{})}
}

type stateKey struct{ namespace, class string }

type stateCount struct {
	key    stateKey
	claims [claimStates]int
	all    int
	labels [claimStates]*metric.Labels
}

// recount moves the claim to the state that it is in now; what is gone is in
// none.
func (st *states) recount(c *claimEntry) {
	if was := c.state.count; was != nil {
		was.claims[c.state.state]--
		was.all--
	}
	now := st.countOf(c)
	if was := c.state.count; was != nil && was != now && was.all == 0 {
		delete(st.counts, was.key)
		st.order = nil
		if st.classes[was.key.class]--; st.classes[was.key.class] == 0 {
			delete(st.classes, was.key.class)
			st.idle[was.key.class] = struct{}{}
		}
	}
	if c.state.count = now; now != nil {
		c.state.state = stateOf(c)
		now.claims[c.state.state]++
		now.all++
	}
}

// countOf is the count that the claim belongs to, made if there was none.
func (st *states) countOf(c *claimEntry) *stateCount {
	if c.life == nil {
		return nil
	}
	key := stateKey{c.ref.Namespace, c.state.class}
	count, known := st.counts[key]
	if !known {
		count = &stateCount{key: key}
		st.counts[key] = count
		st.order = nil
		st.classes[key.class]++
	}
	return count
}

// forgetClasses drops the counters of failures with classes that no claim has any
// more and of which nothing was ever counted. It runs once all claims have been
// counted.
func (s *State) forgetClasses() {
	st, f := &s.waits.states, &s.failures
	for class := range st.idle {
		if st.classes[class] > 0 || !f.classes[class] || f.anyOf(class) {
			continue
		}
		for _, reason := range failureReasons() {
			delete(f.counts, failureKey{class, reason})
		}
		delete(f.classes, class)
		f.order = nil
		s.phases.open.changed = true // it goes by the number of classes
		if _, observed := s.phases.classes[class]; !observed {
			s.phases.closed = append(s.phases.closed, class)
		}
	}
	clear(st.idle)
}

// anyOf reports whether any failure of the class has been counted.
func (f *failures) anyOf(class string) bool {
	return slices.ContainsFunc(failureReasons(), func(reason string) bool {
		counter, known := f.counts[failureKey{class, reason}]
		return known && counter.total > 0
	})
}

func stateOf(c *claimEntry) claimState {
	switch {
	case !c.life.Deleted.IsZero():
		return stateTerminating
	case c.life.Allocated && len(c.life.ReservedFor) > 0:
		return stateReserved
	case c.life.Allocated:
		return stateAllocated
	case slices.ContainsFunc(c.users, (*podEntry).alive):
		return statePending
	default:
		return stateUnused
	}
}

// sorted lists the counts in the order in which pages show them.
func (st *states) sorted() []*stateCount {
	if st.order == nil {
		st.order = make([]*stateCount, 0, len(st.counts))
		for _, count := range st.counts {
			st.order = append(st.order, count)
		}
		slices.SortFunc(st.order, func(a, b *stateCount) int {
			return cmp.Or(cmp.Compare(a.key.namespace, b.key.namespace), cmp.Compare(a.key.class, b.key.class))
		})
	}
	return st.order
}

// label makes the labels of a count when they are first needed.
func (c *stateCount) label(f *families) *[claimStates]*metric.Labels {
	if c.labels[0] == nil {
		for state := range claimState(claimStates) {
			c.labels[state] = metric.NewLabels(f.claims.Labels, c.key.namespace, c.key.class, state.String())
		}
	}
	return &c.labels
}

// waitedSince is since when pods that may be scheduled have been waiting for
// the claim, or have used it: the claim's creation, or that of the oldest of
// them if it came later. A pod behind a gate makes nobody else's wait longer.
func (c *claimEntry) waitedSince() time.Time {
	var oldest time.Time
	for _, p := range c.users {
		if !p.alive() || p.life.Gated {
			continue
		}
		if oldest.IsZero() || p.life.Created.Before(oldest) {
			oldest = p.life.Created
		}
	}
	if c.life != nil && !oldest.IsZero() && oldest.Before(c.life.Created) {
		return c.life.Created
	}
	return oldest
}

// reservations says of a claim whether it is reserved for pods alone, none of
// which is there any more; and whether it has to be looked at again when pods
// come or go, because one that it is reserved for does not name it.
func (b *books) reservations(c *claimEntry) (orphaned, strayed bool) {
	if c.life == nil || len(c.life.ReservedFor) == 0 {
		return false, false
	}
	orphaned = true
	for i := range c.life.ReservedFor {
		consumer := &c.life.ReservedFor[i]
		if consumer.Resource != "pods" {
			orphaned = false
			continue
		}
		p, known := b.pods[dra.PodRef{Namespace: c.ref.Namespace, Name: consumer.Name}]
		if known && p.life.UID == consumer.UID {
			orphaned = false
			strayed = strayed || !names(p.refs, c)
		} else {
			strayed = true
		}
	}
	return orphaned, strayed
}
