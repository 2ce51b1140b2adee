package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// anomalies holds the claims that are terminating while finalizers hold them,
// those that are orphaned, and the pods with claims that are being deleted.
type anomalies struct {
	terminating, orphaned flagged[claimEntry]
	deleted               flagged[podEntry]
	indirect              map[*claimEntry]struct{} // depend on pods that do not reference them

	terminatingClaims stableList[model.TerminatingClaim]
	orphanedClaims    stableList[dra.ClaimRef]
	deletedPods       stableList[model.DeletedPod]
}

// flagged is a set of claims or pods.
type flagged[E any] struct {
	compare func(x, y *E) int
	entries map[*E]struct{}
	order   []*E // sorted; nil: one was added or removed
}

func newAnomalies() *anomalies {
	compareClaims := func(x, y *claimEntry) int {
		return cmp.Or(cmp.Compare(x.ref.Namespace, y.ref.Namespace), cmp.Compare(x.ref.Name, y.ref.Name))
	}
	comparePods := func(x, y *podEntry) int {
		return cmp.Or(cmp.Compare(x.ref.Namespace, y.ref.Namespace), cmp.Compare(x.ref.Name, y.ref.Name))
	}
	return &anomalies{
		terminating: flagged[claimEntry]{compare: compareClaims, entries: make(map[*claimEntry]struct{})},
		orphaned:    flagged[claimEntry]{compare: compareClaims, entries: make(map[*claimEntry]struct{})},
		deleted:     flagged[podEntry]{compare: comparePods, entries: make(map[*podEntry]struct{})},
		indirect:    make(map[*claimEntry]struct{}),
	}
}

// update evaluates the claims and pods that have changed.
func (a *anomalies) update(x *index) {
	for c := range x.changed.claims {
		a.updateClaim(c, x)
	}
	if len(x.changed.pods) == 0 {
		return
	}
	for c := range a.indirect {
		a.updateClaim(c, x)
	}
	for p := range x.changed.pods {
		uses := len(p.refs) > 0 && p.object.Node != "" && !p.object.Terminal
		a.deleted.set(p, !p.removed && uses && !p.object.Deleted.IsZero())
	}
}

func (a *anomalies) updateClaim(c *claimEntry, x *index) {
	a.terminating.set(c, c.object != nil && !c.object.Deleted.IsZero() && len(c.object.Finalizers) > 0)
	orphaned, indirect := x.consumers(c)
	a.orphaned.set(c, orphaned)
	if indirect {
		a.indirect[c] = struct{}{}
	} else {
		delete(a.indirect, c)
	}
}

// listTerminating returns since when claims have been terminating.
func (a *anomalies) listTerminating() []model.TerminatingClaim {
	for _, c := range a.terminating.sorted() {
		a.terminatingClaims.add(model.TerminatingClaim{Ref: c.ref, Since: c.object.Deleted})
	}
	return a.terminatingClaims.take()
}

func (a *anomalies) listOrphaned() []dra.ClaimRef {
	for _, c := range a.orphaned.sorted() {
		a.orphanedClaims.add(c.ref)
	}
	return a.orphanedClaims.take()
}

// listDeleted returns by when pods that are being deleted should have ended.
func (a *anomalies) listDeleted() []model.DeletedPod {
	for _, p := range a.deleted.sorted() {
		a.deletedPods.add(model.DeletedPod{Pod: p.ref, Node: p.object.Node, Due: p.object.Deleted.Add(p.object.Grace)})
	}
	return a.deletedPods.take()
}

// set adds a claim or pod to the set, or removes it.
func (f *flagged[E]) set(entry *E, included bool) {
	switch _, ok := f.entries[entry]; {
	case included == ok:
		return
	case included:
		f.entries[entry] = struct{}{}
	default:
		delete(f.entries, entry)
	}
	f.order = nil
}

// sorted lists the set in the order of the names.
func (f *flagged[E]) sorted() []*E {
	if f.order == nil && len(f.entries) > 0 {
		f.order = slices.SortedFunc(maps.Keys(f.entries), f.compare)
	}
	return f.order
}

// evictions counts, by namespace, the pods that the taint of a device evicted.
// The counter of a namespace exists from 0 while it has pods; one above 0
// stays.
type evictions struct {
	counts map[string]*evictionCount
	idle   map[string]struct{} // namespaces that may have no pods any more
	order  []string            // sorted; nil: a namespace was added or removed
	models []model.Counter     // as order; nil: outdated
}

type evictionCount struct {
	pods  int
	total float64
	start time.Time
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
		count, ok := e.counts[namespace]
		if !ok {
			count = &evictionCount{start: u.At.Wall}
			e.counts[namespace] = count
			e.order = nil
		}
		if u.podBefore == nil {
			count.pods++
		} else if !u.podBefore.Evicted && u.Pod.Evicted {
			count.total++
			e.models = nil
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

// counters returns the counters.
func (e *evictions) counters() []model.Counter {
	if e.order == nil {
		e.order, e.models = slices.Sorted(maps.Keys(e.counts)), nil
	}
	if e.models == nil {
		for _, namespace := range e.order {
			count := e.counts[namespace]
			e.models = append(e.models, model.Counter{Name: namespace, Count: count.total, Since: count.start})
		}
	}
	return e.models
}
