package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// anomalies holds the claims that are terminating while finalizers hold them,
// those that are orphaned, and the pods with claims that are being deleted.
type anomalies struct {
	index                 *index
	terminating, orphaned flagged[claimEntry]
	deleted               flagged[podEntry]
	indirect              map[*claimEntry]struct{} // depend on pods that do not reference them

	terminatingClaims stableList[model.TerminatingClaim]
	orphanedClaims    stableList[dra.ClaimRef]
	deletedPods       stableList[model.DeletedPod]
}

// flagged is a set of claims or pods and the labels of their rows.
type flagged[E any] struct {
	family  *metric.Family
	compare func(x, y *E) int
	labels  map[*E]*metric.Labels
	order   []*E // sorted; nil: one was added or removed
}

func newAnomalies(x *index, f *families) *anomalies {
	compareClaims := func(x, y *claimEntry) int {
		return cmp.Or(cmp.Compare(x.ref.Namespace, y.ref.Namespace), cmp.Compare(x.ref.Name, y.ref.Name))
	}
	comparePods := func(x, y *podEntry) int {
		return cmp.Or(cmp.Compare(x.ref.Namespace, y.ref.Namespace), cmp.Compare(x.ref.Name, y.ref.Name))
	}
	return &anomalies{
		index:       x,
		terminating: flagged[claimEntry]{f.terminatingSince, compareClaims, make(map[*claimEntry]*metric.Labels), nil},
		orphaned:    flagged[claimEntry]{f.orphaned, compareClaims, make(map[*claimEntry]*metric.Labels), nil},
		deleted:     flagged[podEntry]{f.podDeletion, comparePods, make(map[*podEntry]*metric.Labels), nil},
		indirect:    make(map[*claimEntry]struct{}),
	}
}

// update evaluates the claims and pods that have changed.
func (a *anomalies) update() {
	for c := range a.index.changed.claims {
		a.updateClaim(c)
	}
	if len(a.index.changed.pods) == 0 {
		return
	}
	for c := range a.indirect {
		a.updateClaim(c)
	}
	for p := range a.index.changed.pods {
		uses := len(p.refs) > 0 && p.object.Node != "" && !p.object.Terminal
		a.deleted.set(p, !p.removed && uses && !p.object.Deleted.IsZero(), p.ref.Namespace, p.ref.Name, p.object.Node)
	}
}

func (a *anomalies) updateClaim(c *claimEntry) {
	a.terminating.set(c, c.object != nil && !c.object.Deleted.IsZero() && len(c.object.Finalizers) > 0, c.ref.Namespace, c.ref.Name)
	orphaned, indirect := a.index.consumers(c)
	a.orphaned.set(c, orphaned, c.ref.Namespace, c.ref.Name)
	if indirect {
		a.indirect[c] = struct{}{}
	} else {
		delete(a.indirect, c)
	}
}

// terminatingRows adds since when claims have been terminating, and returns them.
func (a *anomalies) terminatingRows(b *metric.Builder) []model.TerminatingClaim {
	b.In(a.terminating.family)
	for _, c := range a.terminating.sorted() {
		b.Add(a.terminating.labels[c], float64(c.object.Deleted.Unix()))
		a.terminatingClaims.add(model.TerminatingClaim{Ref: c.ref, Since: c.object.Deleted})
	}
	return a.terminatingClaims.take()
}

// orphanedRows adds the orphaned claims, and returns them.
func (a *anomalies) orphanedRows(b *metric.Builder) []dra.ClaimRef {
	b.In(a.orphaned.family)
	for _, c := range a.orphaned.sorted() {
		b.Add(a.orphaned.labels[c], 1)
		a.orphanedClaims.add(c.ref)
	}
	return a.orphanedClaims.take()
}

// deletedRows adds by when pods that are being deleted should have ended, and returns
// them.
func (a *anomalies) deletedRows(b *metric.Builder) []model.DeletedPod {
	b.In(a.deleted.family)
	for _, p := range a.deleted.sorted() {
		due := p.object.Deleted.Add(p.object.Grace)
		b.Add(a.deleted.labels[p], float64(due.Unix()))
		a.deletedPods.add(model.DeletedPod{Pod: p.ref, Node: p.object.Node, Due: due})
	}
	return a.deletedPods.take()
}

// set adds a claim or pod with its labels to the set, or removes it.
func (f *flagged[E]) set(entry *E, included bool, labels ...string) {
	switch _, ok := f.labels[entry]; {
	case included == ok:
		return
	case included:
		f.labels[entry] = metric.NewLabels(f.family.Labels, labels...)
	default:
		delete(f.labels, entry)
	}
	f.order = nil
}

// sorted lists the set in the order of the names.
func (f *flagged[E]) sorted() []*E {
	if f.order == nil && len(f.labels) > 0 {
		f.order = slices.SortedFunc(maps.Keys(f.labels), f.compare)
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

// rows adds the counters, and returns them.
func (e *evictions) rows(b *metric.Builder, family *metric.Family) []model.Counter {
	if e.order == nil {
		e.order, e.models = slices.Sorted(maps.Keys(e.counts)), nil
	}
	if e.models == nil {
		for _, namespace := range e.order {
			e.models = append(e.models, model.Counter{Name: namespace, Count: e.counts[namespace].total})
		}
	}
	b.In(family)
	for _, namespace := range e.order {
		count := e.counts[namespace]
		if count.labels == nil {
			count.labels = metric.NewLabels(family.Labels, namespace)
		}
		b.AddFrom(count.labels, count.total, count.start)
	}
	return e.models
}
