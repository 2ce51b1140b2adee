package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// computeDomains outputs the ComputeDomains, since when they are not ready, and which
// pods and workloads use them.
type computeDomains struct {
	byName map[dra.PodRef]*domainEntry
	order  []*domainEntry // sorted; nil: one was added or removed
	users  map[*podEntry]domainUser
	moved  bool // a template is another domain's since the last step

	list      stableList[model.ComputeDomain]
	workloads stableList[model.DomainWorkload]
}

type domainEntry struct {
	object    *dra.ComputeDomain
	since     time.Time            // since when it is not ready; zero: it is, or that is not known
	pods      int                  // that use it
	workloads map[workloadName]int // of these pods
}

// domainUser is a pod that uses a domain, as it was counted last.
type domainUser struct {
	domain   *domainEntry
	workload workloadName // zero: none
}

func newComputeDomains() *computeDomains {
	return &computeDomains{byName: make(map[dra.PodRef]*domainEntry), users: make(map[*podEntry]domainUser)}
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
func (d *computeDomains) update(x *index) {
	if d.moved {
		for _, p := range x.pods {
			d.updatePod(p, x)
		}
		d.moved = false
	}
	if len(d.byName) == 0 && len(d.users) == 0 {
		return
	}
	for p := range x.changed.pods {
		d.updatePod(p, x)
	}
}

// updatePod counts a pod for the domain that it uses, while it is bound to a node and
// has not ended.
func (d *computeDomains) updatePod(p *podEntry, x *index) {
	previous, ok := d.users[p]
	var now domainUser
	if p.alive() && p.object.Node != "" {
		for i := range p.refs {
			domain := x.templates[dra.PodRef{Namespace: p.ref.Namespace, Name: p.refs[i].template}]
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

// lists returns the domains, and the workloads that use them, sorted. Without the pods,
// the users are unknown.
func (d *computeDomains) lists(synced Synced) ([]model.ComputeDomain, []model.DomainWorkload) {
	if d.order == nil {
		d.order = slices.SortedFunc(maps.Values(d.byName), func(a, b *domainEntry) int {
			return cmp.Or(cmp.Compare(a.object.Ref.Namespace, b.object.Ref.Namespace), cmp.Compare(a.object.Ref.Name, b.object.Ref.Name))
		})
	}
	for _, entry := range d.order {
		d.list.add(entry.newModel(synced.Pods))
		if !synced.Pods {
			continue
		}
		for _, name := range slices.SortedFunc(maps.Keys(entry.workloads), compareWorkloads) {
			d.workloads.add(model.DomainWorkload{Namespace: name.namespace, Domain: entry.object.Ref.Name, Kind: name.kind, Name: name.name})
		}
	}
	return d.list.take(), d.workloads.take()
}

// newModel returns the domain as the model has it. pods reports whether pods are known.
func (e *domainEntry) newModel(pods bool) model.ComputeDomain {
	domain := model.ComputeDomain{ComputeDomain: e.object, NotReadySince: e.since}
	if pods {
		domain.Pods = model.Optional{Value: float64(e.pods), Known: true}
	}
	return domain
}
