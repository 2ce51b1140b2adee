package node

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// resolve gives each device that a driver named its uuid: the hardware's, or
// one made of the names.
type resolve func(dra.DeviceID) string

// joinCluster says who holds what while the pod watch is synced: a claim
// that is allocated and reserved for a pod that is bound here and not
// finished, whether the kubelet lists it or not. The fallback answers for
// claims that have not been read. Devices have no uuids yet.
func joinCluster(node string, cluster Cluster, fallback func(dra.ClaimRef) (claimView, bool)) []claimView {
	claims := make(map[dra.ClaimRef]*dra.Claim, len(cluster.Claims))
	for i := range cluster.Claims {
		claims[cluster.Claims[i].Ref] = &cluster.Claims[i]
	}
	views := make([]claimView, 0, len(claims))
	index := make(map[dra.ClaimRef]int, len(claims))
	for _, pod := range cluster.Pods {
		if pod.Terminal || pod.Node != node {
			continue
		}
		for _, named := range pod.Claims {
			ref := dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: named.Claim}
			claim, known := claims[ref]
			switch {
			case named.Claim == "":
			case known && claim.Allocated && claim.HeldBy(pod.UID):
				at, seen := index[ref]
				if !seen {
					at = len(views)
					index[ref] = at
					views = append(views, viewOf(claim, named.Template))
				}
				views[at].join(pod)
			case !known:
				if view, ok := fallback(ref); ok {
					views = append(views, view)
				}
			}
		}
	}
	for i := range views {
		if claim, known := claims[views[i].ref]; known {
			views[i].charge = chargingOf(claim, views[i].podUIDs)
		}
	}
	return views
}

func viewOf(claim *dra.Claim, template string) claimView {
	view := claimView{ref: claim.Ref, devices: make([]claimDevice, 0, len(claim.Results))}
	for _, result := range claim.Results {
		view.devices = append(view.devices, claimDevice{
			id: result.Device, request: result.Request,
			class: claim.ClassOf(result.Request), shareID: result.ShareID,
			admin: result.AdminAccess, consumed: result.Consumed,
		})
	}
	view.info = describe(*claim, template, view.devices)
	return view
}

// join adds a pod that the claim is reserved for, and those of its
// containers that use the claim.
func (v *claimView) join(pod dra.Pod) {
	v.pods, v.podUIDs = append(v.pods, pod.Ref), append(v.podUIDs, pod.UID)
	for _, container := range pod.Containers {
		for _, use := range container.Uses {
			if use.Claim == v.ref.Name {
				v.addConsumers(pod, container.Name, use)
			}
		}
	}
}

// chargingOf says whether this node counts the device-seconds of a claim. A
// claim on devices of one node is counted there. Pods on several nodes may
// share a claim on network-attached devices, and every agent must come to the
// same answer without asking the others: the node counts them on which the
// first pod runs that the claim is reserved for. That pod stays the first for
// as long as the claim is reserved for it, so an agent that has read the claim
// long ago is not wrong. The members of a pod group are not in the claim.
func chargingOf(claim *dra.Claim, here []string) charging {
	if claim.Node != "" || len(claim.ReservedFor) == 0 {
		return chargedHere
	}
	switch first := claim.ReservedFor[0]; {
	case first.Resource != "pods":
		return chargedNowhere
	case slices.Contains(here, first.UID):
		return chargedHere
	default:
		return chargedElsewhere
	}
}
