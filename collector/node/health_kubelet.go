package node

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// hearKubelet takes in what the kubelet says of devices in the statuses of
// the pods that hold them. Where several containers contradict each other,
// the worse counts. While the pod watch is down nobody knows.
func (s *State) hearKubelet(facts Facts) {
	for _, u := range s.devices.byUUID {
		u.health.words[byKubelet] = silent
	}
	if !facts.Cluster.Enabled || !facts.Cluster.Fresh {
		return
	}
	views := make(map[dra.ClaimRef]*claimView, len(s.join.views))
	for i := range s.join.views {
		views[s.join.views[i].ref] = &s.join.views[i]
	}
	var cdi firstCDI
	for _, pod := range facts.Cluster.Pods {
		if len(pod.Health) == 0 || pod.Terminal || pod.Node != s.config.Node {
			continue
		}
		if cdi == nil {
			cdi = firstCDIOf(facts.Listing)
		}
		for _, said := range pod.Health {
			view, known := views[claimOf(pod, said.PodClaim)]
			if !known {
				continue
			}
			if u, known := s.devices.byUUID[view.meant(said, cdi)]; known && u.health.words[byKubelet] != sick {
				u.health.words[byKubelet] = verdict(said.Healthy)
			}
		}
	}
}

// claimOf is the claim that a pod knows by a name of its own.
func claimOf(pod dra.Pod, name string) dra.ClaimRef {
	for _, claim := range pod.Claims {
		if claim.Name == name {
			return dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: claim.Claim}
		}
	}
	return dra.ClaimRef{}
}

// firstCDI is the first CDI id of each claim's devices, by which the kubelet
// names them; empty for a device that has none.
type firstCDI map[claimedDevice]string

type claimedDevice struct {
	claim  dra.ClaimRef
	device dra.DeviceID
}

func firstCDIOf(listing dra.PodResources) firstCDI {
	ids := make(firstCDI, len(listing.Assignments))
	for _, a := range listing.Assignments {
		first := ""
		if len(a.CDIDevices) > 0 {
			first = a.CDIDevices[0]
		}
		ids[claimedDevice{a.Claim, a.Device}] = first
	}
	return ids
}

// meant is the uuid of the one device that the kubelet can mean; empty if
// there are several, or none.
func (v *claimView) meant(said dra.ResourceHealth, cdi firstCDI) string {
	found, several := "", false
	for _, d := range v.devices {
		if !(dra.Use{Request: said.Request}).Covers(d.request) {
			continue
		}
		if d.id.String() == said.ResourceID {
			return d.uuid
		}
		first, listed := cdi[claimedDevice{v.ref, d.id}]
		if listed && first != said.ResourceID {
			continue
		}
		// A device that the kubelet does not list now may have any id.
		several = several || found != "" && found != d.uuid
		found = d.uuid
	}
	if several {
		return ""
	}
	return found
}
