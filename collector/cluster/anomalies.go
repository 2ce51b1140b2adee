package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// marks are the claims with which something is amiss.
type marks struct {
	claims map[*claimEntry]*metric.Labels
	order  []*claimEntry // sorted; nil: one has come or gone since
}

func newMarks() marks { return marks{claims: make(map[*claimEntry]*metric.Labels)} }

// set marks the claim, or does not any more. What it was last is kept with
// the claim, so that claims with which all is well cost nothing.
func (m *marks) set(c *claimEntry, was **metric.Labels, amiss bool, family *metric.Family) {
	switch {
	case amiss == (*was != nil):
		return
	case amiss:
		*was = metric.NewLabels(family.Labels, c.ref.Namespace, c.ref.Name)
		m.claims[c] = *was
	default:
		*was = nil
		delete(m.claims, c)
	}
	m.order = nil
}

// each calls show with every marked claim, in the order of their names.
func (m *marks) each(show func(*claimEntry, *metric.Labels)) {
	if m.order == nil && len(m.claims) > 0 {
		m.order = slices.SortedFunc(maps.Keys(m.claims), func(a, b *claimEntry) int {
			return cmp.Or(cmp.Compare(a.ref.Namespace, b.ref.Namespace), cmp.Compare(a.ref.Name, b.ref.Name))
		})
	}
	for _, c := range m.order {
		show(c, m.claims[c])
	}
}

// evictions counts, by namespace, the pods that the taint of a device evicted.
// The counter of a namespace exists from 0 once a pod of it is known, and for as
// long as one is; one that has counted stays.
type evictions struct {
	counts map[string]*evictionCount
	idle   map[string]struct{} // that may have no pods any more
	order  []string            // sorted; nil: a namespace has come or gone since
}

type evictionCount struct {
	pods   int
	total  float64
	start  time.Time
	labels *metric.Labels
}

func newEvictions() evictions {
	return evictions{counts: make(map[string]*evictionCount), idle: make(map[string]struct{})}
}

// notice takes in that a pod has changed. One that is first heard of when it
// has been evicted may have been so before the exporter started.
func (e *evictions) notice(before, now *dra.PodLife, at time.Time) {
	count, known := e.counts[now.Ref.Namespace]
	if !known {
		count = &evictionCount{start: at}
		e.counts[now.Ref.Namespace] = count
		e.order = nil
	}
	if before != nil && !before.Evicted && now.Evicted {
		count.total++
	}
}

// follow keeps the number of the namespace's pods. All that were told of have
// been noticed.
func (e *evictions) follow(p *podEntry) {
	count := e.counts[p.ref.Namespace]
	switch there := p.life != nil; {
	case there && !p.waiting.counted:
		count.pods++
	case !there && p.waiting.counted:
		count.pods--
	}
	p.waiting.counted = p.life != nil
	if count.pods == 0 {
		e.idle[p.ref.Namespace] = struct{}{}
	}
}

// forget drops the counters of namespaces that have no pods any more and in
// which nothing was ever counted. It runs once all pods have been followed.
func (e *evictions) forget() {
	for namespace := range e.idle {
		if count := e.counts[namespace]; count.pods == 0 && count.total == 0 {
			delete(e.counts, namespace)
			e.order = nil
		}
	}
	clear(e.idle)
}

func (e *evictions) rows(b *metric.Builder, f *families) {
	if e.order == nil {
		e.order = slices.Sorted(maps.Keys(e.counts))
	}
	b.In(f.evictions)
	for _, namespace := range e.order {
		count := e.counts[namespace]
		if count.labels == nil {
			count.labels = metric.NewLabels(f.evictions.Labels, namespace)
		}
		b.AddFrom(count.labels, count.total, count.start)
	}
}
