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

// computeDomains outputs the ComputeDomains, since when they are not ready, and which
// pods and workloads use them.
type computeDomains struct {
	index  *index
	byName map[dra.PodRef]*domainEntry
	order  []*domainEntry // sorted; nil: one was added or removed
	users  map[*podEntry]domainUser
	moved  bool // a template is another domain's since the last step
	list   stableList[model.ComputeDomain]
}

type domainEntry struct {
	object    *dra.ComputeDomain
	since     time.Time            // since when it is not ready; zero: it is, or that is not known
	pods      int                  // that use it
	workloads map[workloadName]int // of these pods

	ready, requested, notReadySince, podCount *metric.Labels
}

// domainUser is a pod that uses a domain, as it was counted last.
type domainUser struct {
	domain   *domainEntry
	workload workloadName // zero: none
}

func newComputeDomains(x *index) *computeDomains {
	return &computeDomains{index: x, byName: make(map[dra.PodRef]*domainEntry), users: make(map[*podEntry]domainUser)}
}

func (d *computeDomains) apply(u *update) {
	domain := u.ComputeDomain
	if domain == nil {
		return
	}
	entry := d.byName[domain.Ref]
	switch {
	case u.Gone:
		if entry != nil && entry.object.UID == domain.UID {
			delete(d.byName, domain.Ref)
			d.order, d.moved = nil, true
		}
		return
	case entry == nil:
		entry = &domainEntry{workloads: make(map[workloadName]int)}
		d.byName[domain.Ref], d.order = entry, nil
	}
	previous := entry.object
	d.moved = d.moved || previous == nil || previous.Template != domain.Template
	same := previous != nil && previous.UID == domain.UID
	switch {
	case domain.Ready:
		entry.since = time.Time{}
	case same && !previous.Ready: // it still is not
	case !u.Live:
		entry.since = time.Time{}
	case same:
		entry.since = u.At.Wall
	default:
		entry.since = domain.Created
	}
	entry.object = domain
}

// update runs once per step, after all changes: it counts the pods that they concern,
// or all if templates belong to other domains now.
func (d *computeDomains) update() {
	if d.moved {
		for _, p := range d.index.pods {
			d.updatePod(p)
		}
		d.moved = false
	}
	if len(d.byName) == 0 && len(d.users) == 0 {
		return
	}
	for p := range d.index.changed.pods {
		d.updatePod(p)
	}
}

// updatePod counts a pod for the domain that it uses, while it is bound to a node and
// has not ended.
func (d *computeDomains) updatePod(p *podEntry) {
	previous, ok := d.users[p]
	var now domainUser
	if p.alive() && p.object.Node != "" {
		for i := range p.refs {
			domain := d.index.templates[dra.PodRef{Namespace: p.ref.Namespace, Name: p.refs[i].template}]
			if domain != nil && now.domain == nil {
				now.domain = d.byName[domain.Ref]
			}
		}
	}
	if workload := p.object.Member.Workload; workload != nil && now.domain != nil {
		now.workload = workloadName{p.ref.Namespace, workload.Kind, workload.Name}
	}
	if previous == now {
		return
	}
	if ok {
		previous.count(-1)
		delete(d.users, p)
	}
	if now.domain != nil {
		now.count(1)
		d.users[p] = now
	}
}

func (u domainUser) count(delta int) {
	u.domain.pods += delta
	if u.workload == (workloadName{}) {
		return
	}
	if u.domain.workloads[u.workload] += delta; u.domain.workloads[u.workload] == 0 {
		delete(u.domain.workloads, u.workload)
	}
}

// rows adds the domains, sorted, and returns them. Without the pods, their users are
// unknown.
func (d *computeDomains) rows(b *metric.Builder, f *families, synced Synced) []model.ComputeDomain {
	if d.order == nil {
		d.order = slices.SortedFunc(maps.Values(d.byName), func(a, b *domainEntry) int {
			return cmp.Or(cmp.Compare(a.object.Ref.Namespace, b.object.Ref.Namespace), cmp.Compare(a.object.Ref.Name, b.object.Ref.Name))
		})
	}
	b.In(f.domainReady)
	for _, entry := range d.order {
		b.Add(entry.labels(&entry.ready, f.domainReady), flag(entry.object.Ready))
		d.list.add(entry.newModel(synced.Pods))
	}
	b.In(f.domainRequested)
	for _, entry := range d.order {
		if entry.object.NumNodes > 0 {
			b.Add(entry.labels(&entry.requested, f.domainRequested), float64(entry.object.NumNodes))
		}
	}
	b.In(f.domainNodes)
	for _, entry := range d.order {
		entry.nodeRows(b, f.domainNodes)
	}
	b.In(f.domainNotReadySince)
	for _, entry := range d.order {
		if !entry.since.IsZero() {
			b.Add(entry.labels(&entry.notReadySince, f.domainNotReadySince), float64(entry.since.Unix()))
		}
	}
	if synced.Pods {
		d.userRows(b, f)
	}
	return d.list.take()
}

// userRows adds who uses the domains.
func (d *computeDomains) userRows(b *metric.Builder, f *families) {
	b.In(f.domainPods)
	for _, entry := range d.order {
		b.Add(entry.labels(&entry.podCount, f.domainPods), float64(entry.pods))
	}
	b.In(f.domainWorkload)
	for _, entry := range d.order {
		for _, name := range slices.SortedFunc(maps.Keys(entry.workloads), compareWorkloads) {
			b.Add(metric.NewLabels(f.domainWorkload.Labels, name.namespace, entry.object.Ref.Name, name.kind, name.name), 1)
		}
	}
}

// newModel returns the domain as the model has it. pods reports whether pods are known.
func (e *domainEntry) newModel(pods bool) model.ComputeDomain {
	domain := model.ComputeDomain{ComputeDomain: e.object, NotReadySince: e.since}
	if pods {
		domain.Pods = model.Optional{Value: float64(e.pods), Known: true}
	}
	return domain
}

// labels returns the name of the domain, which is made once for each family.
func (e *domainEntry) labels(made **metric.Labels, family *metric.Family) *metric.Labels {
	if *made == nil {
		*made = metric.NewLabels(family.Labels, e.object.Ref.Namespace, e.object.Ref.Name)
	}
	return *made
}

// nodeRows adds how many nodes of the domain are in which state, by clique. A clique
// without nodes in a state has no row for it.
func (e *domainEntry) nodeRows(b *metric.Builder, family *metric.Family) {
	type group struct{ clique, state string }
	counts := make(map[group]int)
	for i := range e.object.Nodes {
		node := &e.object.Nodes[i]
		state := "not_ready"
		if node.Ready {
			state = "ready"
		}
		counts[group{node.Clique, state}]++
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.clique, b.clique), cmp.Compare(a.state, b.state))
	})
	for _, g := range order {
		b.Add(metric.NewLabels(family.Labels, e.object.Ref.Namespace, e.object.Ref.Name, g.clique, g.state), float64(counts[g]))
	}
}
