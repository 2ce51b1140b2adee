package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// claimFlags holds the claims that are terminating while finalizers hold them,
// and those that are orphaned.
type claimFlags struct {
	index                 *index
	terminating, orphaned flaggedClaims
	indirect              map[*claimEntry]struct{} // depend on pods that do not reference them
}

// flaggedClaims is a set of claims and the labels of their rows.
type flaggedClaims struct {
	family *metric.Family
	claims map[*claimEntry]*metric.Labels
	order  []*claimEntry // sorted; nil: a claim was added or removed
}

func newClaimFlags(x *index, f *families) *claimFlags {
	return &claimFlags{
		index:       x,
		terminating: flaggedClaims{family: f.terminatingSince, claims: make(map[*claimEntry]*metric.Labels)},
		orphaned:    flaggedClaims{family: f.orphaned, claims: make(map[*claimEntry]*metric.Labels)},
		indirect:    make(map[*claimEntry]struct{}),
	}
}

// update evaluates the claims that have changed.
func (cf *claimFlags) update() {
	for c := range cf.index.changed.claims {
		cf.updateClaim(c)
	}
	if len(cf.index.changed.pods) == 0 {
		return
	}
	for c := range cf.indirect {
		cf.updateClaim(c)
	}
}

func (cf *claimFlags) updateClaim(c *claimEntry) {
	cf.terminating.set(c, c.object != nil && !c.object.Deleted.IsZero() && len(c.object.Finalizers) > 0)
	orphaned, indirect := cf.index.consumers(c)
	cf.orphaned.set(c, orphaned)
	if indirect {
		cf.indirect[c] = struct{}{}
	} else {
		delete(cf.indirect, c)
	}
}

// terminatingRows adds since when claims have been terminating.
func (cf *claimFlags) terminatingRows(b *metric.Builder) {
	b.In(cf.terminating.family)
	for _, c := range cf.terminating.sorted() {
		b.Add(cf.terminating.claims[c], float64(c.object.Deleted.Unix()))
	}
}

// orphanedRows adds the orphaned claims.
func (cf *claimFlags) orphanedRows(b *metric.Builder) {
	b.In(cf.orphaned.family)
	for _, c := range cf.orphaned.sorted() {
		b.Add(cf.orphaned.claims[c], 1)
	}
}

// set adds the claim to the set, or removes it.
func (s *flaggedClaims) set(c *claimEntry, flagged bool) {
	switch _, before := s.claims[c]; {
	case flagged == before:
		return
	case flagged:
		s.claims[c] = metric.NewLabels(s.family.Labels, c.ref.Namespace, c.ref.Name)
	default:
		delete(s.claims, c)
	}
	s.order = nil
}

// sorted lists the claims in the order of their names.
func (s *flaggedClaims) sorted() []*claimEntry {
	if s.order == nil && len(s.claims) > 0 {
		s.order = slices.SortedFunc(maps.Keys(s.claims), func(a, b *claimEntry) int {
			return cmp.Or(cmp.Compare(a.ref.Namespace, b.ref.Namespace), cmp.Compare(a.ref.Name, b.ref.Name))
		})
	}
	return s.order
}

// evictions counts, by namespace, the pods that the taint of a device evicted.
// The counter of a namespace exists from 0 while it has pods; one above 0
// stays.
type evictions struct {
	counts map[string]*evictionCount
	idle   map[string]struct{} // namespaces that may have no pods any more
	order  []string            // sorted; nil: a namespace was added or removed
}

type evictionCount struct {
	pods   int
	total  float64
	start  time.Time
	labels *metric.Labels
}

func newEvictions() *evictions {
	return &evictions{counts: make(map[string]*evictionCount), idle: make(map[string]struct{})}
}

// apply applies an update of the index. A pod that is evicted when it is first
// observed does not count: it may have been before the exporter started.
func (e *evictions) apply(u *update) {
	switch {
	case u.pod != nil:
		namespace := u.Pod.Ref.Namespace
		count, known := e.counts[namespace]
		if !known {
			count = &evictionCount{start: u.At.Wall}
			e.counts[namespace] = count
			e.order = nil
		}
		if u.podBefore == nil {
			count.pods++
		} else if !u.podBefore.Evicted && u.Pod.Evicted {
			count.total++
		}
	case u.removedPod != nil:
		namespace := u.removedPod.ref.Namespace
		if e.counts[namespace].pods--; e.counts[namespace].pods == 0 {
			e.idle[namespace] = struct{}{}
		}
	}
}

// evictIdle removes the counters of namespaces without pods that are 0. It runs
// after all changes of a step.
func (e *evictions) evictIdle() {
	for namespace := range e.idle {
		if count := e.counts[namespace]; count.pods == 0 && count.total == 0 {
			delete(e.counts, namespace)
			e.order = nil
		}
	}
	clear(e.idle)
}

func (e *evictions) rows(b *metric.Builder, family *metric.Family) {
	if e.order == nil {
		e.order = slices.Sorted(maps.Keys(e.counts))
	}
	b.In(family)
	for _, namespace := range e.order {
		count := e.counts[namespace]
		if count.labels == nil {
			count.labels = metric.NewLabels(family.Labels, namespace)
		}
		b.AddFrom(count.labels, count.total, count.start)
	}
}
