package apiserver

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// podItem is what is kept of a pod that uses claims, requests extended resources
// or belongs to a group, or takes something of a node.
type podItem struct {
	version  objectVersion
	requests *dra.PodRequests  // nil: it takes nothing
	decoded  *dra.PodLifecycle // with all extended resources; nil: it has nothing to do with devices
	reported *dra.PodLifecycle // with those backed by device classes; nil: the pod

	references referenceCount // of reported
}

// clusterPods records the changes of the pods that use claims, request extended
// resources that stand for devices, or belong to a PodGroup. Every other extended
// resource is provided by a device plugin. It passes on what all pods take of nodes.
type clusterPods struct {
	keeper   Keeper
	recorder changeRecorder[dra.PodLifecycle]
	limit    *referenceLimit // of references of pending pods
	store    *watch.Store[*corev1.Pod, podItem]
	lock     sync.Locker // of the store

	mu      sync.Mutex
	classes map[string]int // by extended resource: how many device classes back it
}

func newClusterPods(log *changelog, keeper Keeper) *clusterPods {
	return &clusterPods{
		keeper: keeper,
		recorder: changeRecorder[dra.PodLifecycle]{
			log:    log,
			uid:    func(lifecycle *dra.PodLifecycle) string { return lifecycle.UID },
			change: func(lifecycle *dra.PodLifecycle) dra.Change { return dra.Change{Pod: lifecycle} },
		},
		limit: newReferenceLimit(), classes: make(map[string]int),
	}
}

// apply applies, under the lock of the store, the change of a pod. The status
// of a pod does not keep the first start of a container that has started often.
func (p *clusterPods) apply(previous, updated *podItem, live bool) {
	if old, current := previous.requested(), updated.requested(); !reflect.DeepEqual(old, current) {
		p.keeper.ApplyPodRequests(old, current)
	}
	previous, updated = previous.ofDevices(), updated.ofDevices()
	if previous == nil && updated == nil {
		return
	}
	if previous != nil && updated != nil && previous.decoded.UID == updated.decoded.UID {
		if first := previous.decoded.Started; !first.IsZero() && first.Before(updated.decoded.Started) {
			updated.decoded.Started = first
		}
	}
	p.record(previous, updated, live)
}

// requested returns what the pod takes of its node; nil: nothing, or there is no pod.
func (i *podItem) requested() *dra.PodRequests {
	if i == nil {
		return nil
	}
	return i.requests
}

// ofDevices returns the item, and nil for that of a pod that has nothing to do with
// devices.
func (i *podItem) ofDevices() *podItem {
	if i == nil || i.decoded == nil {
		return nil
	}
	return i
}

// record records the change of what is reported of a pod. A pod that was there
// and is reported from now on was created before: that is not live.
func (p *clusterPods) record(previous, updated *podItem, live bool) {
	p.limit.release(previous)
	var old, current *dra.PodLifecycle
	if previous != nil {
		old = previous.reported
	}
	if updated != nil {
		updated.reported = p.reported(updated.decoded)
		p.limit.admit(updated)
		current = updated.reported
	}
	known := previous != nil && old == nil && updated != nil && previous.decoded.UID == updated.decoded.UID
	kept := p.recorder.record(old, current, live && !known)
	if current != nil && kept != current {
		if updated.decoded == current {
			updated.decoded = kept
		}
		updated.reported = kept
	}
}

// reported returns the pod with only those extended resources that stand for
// devices; nil if it has none, no claims and no group.
func (p *clusterPods) reported(pod *dra.PodLifecycle) *dra.PodLifecycle {
	extended := make(map[string]int64, len(pod.Extended))
	for name, amount := range pod.Extended {
		if p.standsForDevices(name) {
			extended[name] = amount
		}
	}
	switch {
	case len(extended) == len(pod.Extended):
		return pod
	case len(extended) == 0 && len(pod.Claims) == 0 && pod.Group == "":
		return nil
	case len(extended) == 0:
		extended = nil
	}
	reported := *pod
	reported.Extended = extended
	return &reported
}

// standsForDevices reports whether an extended resource stands for devices of a
// class. A name that is made of the name of a class always does, even if there
// is no such class: no device plugin can provide it.
func (p *clusterPods) standsForDevices(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.classes[name] > 0 || strings.HasPrefix(name, resourcev1.ResourceDeviceClassPrefix)
}

// applyClass applies the change of a class, from the extended resource that it
// stood for to the one that it stands for. It reports whether pods were recorded
// again.
func (p *clusterPods) applyClass(old, current string) (changed bool) {
	if old == current {
		return false
	}
	for name, delta := range map[string]int{old: -1, current: 1} {
		if name != "" && p.countClass(name, delta) {
			p.revise(name)
			changed = true
		}
	}
	return changed
}

// countClass adds a class of an extended resource, or removes one. It reports
// whether the resource begins or ceases to stand for devices.
func (p *clusterPods) countClass(name string, delta int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.classes[name] > 0
	if p.classes[name] += delta; p.classes[name] <= 0 {
		delete(p.classes, name)
	}
	return had != (p.classes[name] > 0)
}

// revise records again the pods that request an extended resource which begins
// or ceases to stand for devices. The pods themselves did not change.
func (p *clusterPods) revise(resource string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.store.Revise(func(item podItem) podItem {
		if item.decoded == nil {
			return item
		}
		if _, ok := item.decoded.Extended[resource]; !ok {
			return item
		}
		updated := item
		p.record(&item, &updated, false)
		return updated
	})
}

// classItem is what is kept of a device class.
type classItem struct {
	version  objectVersion
	extended string // its extended resource; may be empty
}

func (i *classItem) name() string {
	if i == nil {
		return ""
	}
	return i.extended
}

// Limits of the references to claims, and of the requests of extended resources,
// of pods that are not bound to a node: everybody who may create pods decides
// how many there are. Those of bound pods are limited by what nodes can run.
const (
	namespaceReferences = 10_000
	totalReferences     = 60_000
)

// referenceLimit counts the references of pods that are not bound. It is used
// under the lock of the pods, except for dropped.
type referenceLimit struct {
	total      int
	namespaces map[string]int
	dropped    atomic.Int64
}

// referenceCount is how many references of a pod are reported and dropped.
type referenceCount struct{ reported, dropped int }

func newReferenceLimit() *referenceLimit {
	return &referenceLimit{namespaces: make(map[string]int)}
}

// release removes the references of a pod from the count; nil: there is no pod.
func (l *referenceLimit) release(gone *podItem) {
	if gone != nil {
		l.count(gone.decoded.Ref.Namespace, -gone.references.reported, -gone.references.dropped)
	}
}

func (l *referenceLimit) count(namespace string, reported, dropped int) {
	l.total += reported
	if l.namespaces[namespace] += reported; l.namespaces[namespace] == 0 {
		delete(l.namespaces, namespace)
	}
	l.dropped.Add(int64(dropped))
}

// admit drops the references of a pod beyond the limit, extended resources
// first. A pod without any is not reported.
func (l *referenceLimit) admit(item *podItem) {
	item.references = referenceCount{}
	pod := item.reported
	if pod == nil || pod.Node != "" || pod.Terminal {
		return
	}
	wanted := max(len(pod.Claims)+len(pod.Extended), 1) // a member of a group counts as one
	namespace := pod.Ref.Namespace
	room := max(min(namespaceReferences-l.namespaces[namespace], totalReferences-l.total), 0)
	item.references = referenceCount{reported: min(wanted, room), dropped: max(wanted-room, 0)}
	l.count(namespace, item.references.reported, item.references.dropped)
	if wanted <= room {
		return
	}
	trimmed := *pod
	trimmed.Claims = slices.Clone(pod.Claims[:min(room, len(pod.Claims))])
	trimmed.Extended = firstExtended(pod.Extended, room-len(trimmed.Claims))
	decoded := *item.decoded
	decoded.Claims = trimmed.Claims
	item.reported, item.decoded = &trimmed, &decoded
	if room == 0 {
		item.reported = nil
	}
}

// firstExtended returns at most so many of a pod's extended resources, the first
// by name.
func firstExtended(all map[string]int64, most int) map[string]int64 {
	if len(all) <= most {
		return all
	}
	if most == 0 {
		return nil
	}
	first := make(map[string]int64, most)
	for _, name := range slices.Sorted(maps.Keys(all))[:most] {
		first[name] = all[name]
	}
	return first
}

// status adds to the status of the pods that references were dropped.
func (l *referenceLimit) status(status source.Status) source.Status {
	dropped := l.dropped.Load()
	if dropped == 0 || !status.Up || status.Reason != source.ReasonNone {
		return status
	}
	status.Reason = source.ReasonResourceExhausted
	status.Message = fmt.Sprintf("%d references of pending pods to claims are ignored: the limit is %d in a namespace and %d in total", dropped, namespaceReferences, totalReferences)
	return status
}
