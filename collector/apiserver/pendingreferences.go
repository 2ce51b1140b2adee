package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Limits of the references to claims, and requests of extended resources, of
// pods that are not bound to a node yet. Whoever may create pods decides how
// many there are. Those of bound pods are limited by what nodes can run.
const (
	namespaceReferences = 10_000
	totalReferences     = 60_000
)

// pendingReferences counts the references of pods that are not bound. It is
// used under the lock of the pods, but leftOut.
type pendingReferences struct {
	total      int
	namespaces map[string]int
	leftOut    atomic.Int64
}

// referenceCount is what one pod takes, and what of it is left out.
type referenceCount struct{ followed, leftOut int }

func newPendingReferences() *pendingReferences {
	return &pendingReferences{namespaces: make(map[string]int)}
}

// remove forgets what a pod took; nil: none.
func (p *pendingReferences) remove(gone *podItem) {
	if gone == nil || gone.references == (referenceCount{}) {
		return
	}
	p.count(gone.asked.Ref.Namespace, -gone.references.followed, -gone.references.leftOut)
}

func (p *pendingReferences) count(namespace string, followed, leftOut int) {
	p.total += followed
	if p.namespaces[namespace] += followed; p.namespaces[namespace] == 0 {
		delete(p.namespaces, namespace)
	}
	p.leftOut.Add(int64(leftOut))
}

// admit leaves of a pod those references for which there is room, claims
// first. A pod of which none is left concerns no devices.
func (p *pendingReferences) admit(item *podItem) {
	item.references = referenceCount{}
	told := item.told
	if told == nil || told.Node != "" || told.Terminal {
		return
	}
	wanted := len(told.Claims) + len(told.Extended)
	namespace := told.Ref.Namespace
	room := max(min(namespaceReferences-p.namespaces[namespace], totalReferences-p.total), 0)
	item.references = referenceCount{followed: min(wanted, room), leftOut: max(wanted-room, 0)}
	p.count(namespace, item.references.followed, item.references.leftOut)
	if wanted <= room {
		return
	}
	trimmed := *told
	trimmed.Claims = slices.Clone(told.Claims[:min(room, len(told.Claims))])
	trimmed.Extended = firstExtended(told.Extended, room-len(trimmed.Claims))
	asked := *item.asked
	asked.Claims = trimmed.Claims
	item.told, item.asked = &trimmed, &asked
	if room == 0 {
		item.told = nil
	}
}

// firstExtended are so many of a pod's extended resources, the first by name.
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

// note says in the status of the pods that some references are left out.
func (p *pendingReferences) note(status source.Status) source.Status {
	leftOut := p.leftOut.Load()
	if leftOut == 0 || !status.Up || status.Reason != source.ReasonNone {
		return status
	}
	status.Reason = source.ReasonResourceExhausted
	status.Message = fmt.Sprintf("%d references of pending pods to claims are not followed: the limit is %d in a namespace and %d in all", leftOut, namespaceReferences, totalReferences)
	return status
}
