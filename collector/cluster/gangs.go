package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// ownReason is why a reference is pending as far as its own pod and claim go.
type ownReason struct {
	reason  dra.PendingReason
	message string
}

// markGang has the reasons of a pod's gang determined again.
func (p *pending) markGang(pod *podEntry) {
	if pod.object.Group != "" {
		p.gangs[dra.PodRef{Namespace: pod.ref.Namespace, Name: pod.object.Group}] = struct{}{}
	}
}

// updateGangs applies the reasons of the pods of groups: their own, or gang_quorum if
// their gang is not complete and nothing else is known to prevent them. The scheduler
// places so many pods of a PodGroup at once as its gang needs, or none, so that a pod
// for which devices are free waits for the others.
func (p *pending) updateGangs(x *index, now clock.Instant) {
	for ref := range p.gangs {
		members := slices.Clone(x.members[ref])
		slices.SortFunc(members, func(a, b *podEntry) int {
			return cmp.Or(cmp.Compare(a.ref.Name, b.ref.Name), cmp.Compare(a.object.UID, b.object.UID))
		})
		message := ""
		if group := x.groups[ref]; group != nil && group.MinPods > 0 {
			message = p.gangMessage(group, members, x)
		}
		for _, pod := range members {
			owner := p.pods[pod]
			if owner == nil {
				continue
			}
			for _, pending := range owner.pending {
				switch reason := &pending.own; {
				case reason.reason == dra.ReasonNone: // not determined yet
				case pending.suffices && message != "":
					p.applyReason(pending, dra.ReasonGangQuorum, message, now)
				default:
					p.applyReason(pending, reason.reason, reason.message, now)
				}
			}
		}
	}
	clear(p.gangs)
}

// gangMessage describes why a gang is not complete; empty if it is: as many of its
// pods as it needs are bound to nodes. It names the pods that are missing, else one
// that waits for a reason of its own, else what all pods together request.
func (p *pending) gangMessage(group *dra.Group, members []*podEntry, x *index) string {
	members = slices.DeleteFunc(members, func(pod *podEntry) bool { return !pod.alive() })
	needed := int(group.MinPods)
	var waiting []*podEntry
	for _, pod := range members {
		if pod.object.Node == "" {
			waiting = append(waiting, pod)
		}
	}
	bound := len(members) - len(waiting)
	if bound >= needed {
		return ""
	}
	text := fmt.Sprintf("gang %s is placed when %d of its pods can be; bound: %d; ", group.Ref.Name, needed, bound)
	if len(members) < needed {
		return text + fmt.Sprintf("pods that exist: %d", len(members))
	}
	if blocked, why := p.blocked(waiting, x); blocked != nil {
		return text + fmt.Sprintf("pod %s is %s", blocked.ref.Name, why)
	}
	if shortage := p.shortage(waiting[:min(needed-bound, len(waiting))]); shortage != "" {
		return text + shortage
	}
	if group.Unschedulable != "" {
		return text + "the scheduler reports: " + group.Unschedulable
	}
	for _, pod := range waiting {
		if pod.object.Unschedulable != "" {
			return text + fmt.Sprintf("the scheduler reports of pod %s: %s", pod.ref.Name, pod.object.Unschedulable)
		}
	}
	return text + "the scheduler has not placed them yet"
}

// blocked returns the first pod that waits for a reason of its own, and the reason.
func (p *pending) blocked(waiting []*podEntry, x *index) (pod *podEntry, why string) {
	for _, pod := range waiting {
		if pod.object.Gated {
			return pod, "pending because of " + string(findGate(pod, x))
		}
		owner := p.pods[pod]
		if owner == nil {
			continue
		}
		for _, ref := range owner.pending {
			if reason := &ref.own; !ref.suffices && isFailure(reason.reason) {
				return pod, fmt.Sprintf("pending because of %s: %s", reason.reason, reason.message)
			}
		}
	}
	return nil, ""
}

// findGate returns why a pod of a gang has scheduling gates.
func findGate(pod *podEntry, x *index) dra.PendingReason {
	e := evidence{pod: pod, kueue: x.queues.of(pod)}
	reason, _ := e.gated()
	return reason
}

// shortage describes what pods request together, if fewer devices are free. Requests
// for which each stage leaves as many devices are for the same devices. A claim that
// several pods share counts once, and alternatives of a request do not count.
func (p *pending) shortage(waiting []*podEntry) string {
	type requests struct {
		class string
		left  [dra.Stages]int
	}
	var order []requests
	asked, counted := make(map[requests]int64), make(map[string]bool)
	for _, pod := range waiting {
		owner := p.pods[pod]
		if owner == nil {
			continue
		}
		for _, ref := range owner.pending {
			if ref.diagnosis == nil || ref.claimUID != "" && counted[ref.claimUID] {
				continue
			}
			counted[ref.claimUID] = true
			for i := range ref.diagnosis.Requests {
				request := &ref.diagnosis.Requests[i]
				if strings.Contains(request.Request, "/") {
					continue
				}
				key := requests{request.Class, request.Left}
				if _, ok := asked[key]; !ok {
					order = append(order, key)
				}
				asked[key] += request.Count
			}
		}
	}
	for _, request := range order {
		if free := request.left[dra.StageFree]; asked[request] > int64(free) {
			return fmt.Sprintf("devices of class %s that its pods request together: %d, free: %d", request.class, asked[request], free)
		}
	}
	return ""
}
