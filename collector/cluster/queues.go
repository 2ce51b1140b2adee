package cluster

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// queues are the Workloads of Kueue, and the pods that they hold.
type queues struct {
	objects map[dra.PodRef]*dra.KueueWorkload
	alone   map[string]dra.PodRef      // those for one pod alone, by its UID
	named   map[dra.PodRef][]*podEntry // pods by the Workload that they name, which need not exist
}

func newQueues() queues {
	return queues{objects: make(map[dra.PodRef]*dra.KueueWorkload), alone: make(map[string]dra.PodRef), named: make(map[dra.PodRef][]*podEntry)}
}

// apply sets or removes a Workload and returns the one before; false if the object that
// is gone is not the one of that name.
func (q *queues) apply(object *dra.KueueWorkload, gone bool) (previous *dra.KueueWorkload, applied bool) {
	previous = q.objects[object.Ref]
	if gone && (previous == nil || previous.UID != object.UID) {
		return previous, false
	}
	if previous != nil && q.alone[previous.Pod.UID] == object.Ref {
		delete(q.alone, previous.Pod.UID)
	}
	if gone {
		delete(q.objects, object.Ref)
	} else if q.objects[object.Ref] = object; object.Pod.UID != "" {
		q.alone[object.Pod.UID] = object.Ref
	}
	return previous, true
}

// heldBy returns the pods that name a Workload, and the one that it is for alone.
func (q *queues) heldBy(object *dra.KueueWorkload, pods map[dra.PodRef]*podEntry) []*podEntry {
	if object == nil {
		return nil
	}
	held := q.named[object.Ref]
	p := pods[dra.PodRef{Namespace: object.Ref.Namespace, Name: object.Pod.Name}]
	if p != nil && p.object.UID == object.Pod.UID {
		held = append(slices.Clip(held), p)
	}
	return held
}

// of returns the Workload that holds a pod; nil if none is known to.
func (q *queues) of(p *podEntry) *dra.KueueWorkload {
	switch name := heldBy(p.object); {
	case p.object.HeldBy == nil:
		return nil
	case name != "":
		return q.objects[dra.PodRef{Namespace: p.ref.Namespace, Name: name}]
	default:
		return q.objects[q.alone[p.object.UID]]
	}
}

// heldBy is the name of the Workload of Kueue that a pod names; empty if it names none,
// and for no pod.
func heldBy(pod *dra.PodLifecycle) string {
	if pod == nil || pod.HeldBy == nil {
		return ""
	}
	return *pod.HeldBy
}
