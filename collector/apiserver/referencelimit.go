package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

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
	wanted := len(pod.Claims) + len(pod.Extended)
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
	status.Message = fmt.Sprintf("%d references of pending pods to claims are not followed: the limit is %d in a namespace and %d in all", dropped, namespaceReferences, totalReferences)
	return status
}
