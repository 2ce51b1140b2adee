package node

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// resolve gives each device that a driver named its uuid: the hardware's, or
// one made of the names.
type resolve func(dra.DeviceID) string

// joinCluster says who holds what while the pod watch is synced: a claim
// that is allocated and reserved for a pod that is bound here and not
// finished, whether the kubelet lists it or not. The fallback answers for
// claims that have not been read.
func joinCluster(node string, cluster Cluster, uuid resolve, fallback func(dra.ClaimRef) (claimView, bool)) []claimView {
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
					views = append(views, viewOf(claim, named.Template, uuid))
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
		views[i].settle()
	}
	sortClaims(views)
	return views
}

func viewOf(claim *dra.Claim, template string, uuid resolve) claimView {
	view := claimView{ref: claim.Ref, devices: make([]claimDevice, 0, len(claim.Results))}
	for _, result := range claim.Results {
		view.devices = append(view.devices, claimDevice{
			id: result.Device, uuid: uuid(result.Device), request: result.Request,
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
	v.pods = append(v.pods, pod.Ref)
	for _, container := range pod.Containers {
		for _, use := range container.Uses {
			if use.Claim == v.ref.Name {
				v.addConsumers(pod, container.Name, use)
			}
		}
	}
}
