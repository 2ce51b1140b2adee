package node

import (
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// absenceSpan is how far apart two Lists must be that both miss a pod until
// it is believed gone: after its own restart the kubelet lists nothing for
// about a second.
const absenceSpan = 5 * time.Second

// absences remembers since which List each pod has been missing.
type absences map[dra.PodRef]clock.Instant

// note takes in one more List and returns which of the pods are gone. It may
// be told of the same List again.
func (a absences) note(pods []dra.PodRef, listing dra.PodResources, listedAt clock.Instant) map[dra.PodRef]bool {
	listed := make(map[dra.PodRef]bool, len(listing.Pods))
	for _, pod := range listing.Pods {
		listed[pod] = true
	}
	gone := make(map[dra.PodRef]bool)
	tracked := make(map[dra.PodRef]bool)
	for _, pod := range pods {
		tracked[pod] = true
		since, missing := a[pod]
		switch {
		case listed[pod]:
			delete(a, pod)
		case !missing:
			a[pod] = listedAt
		case listedAt.Since(since) >= absenceSpan:
			gone[pod] = true
		}
	}
	for pod := range a {
		if !tracked[pod] || gone[pod] {
			delete(a, pod)
		}
	}
	return gone
}

// podsOf are the pods of all the views.
func podsOf(views []claimView) []dra.PodRef {
	var pods []dra.PodRef
	for _, view := range views {
		pods = append(pods, view.pods...)
	}
	return pods
}

// joinListing says who holds what by the kubelet's List alone, or by it and
// what was known before: known claims stay until their pods are gone, and a
// claim that is newly listed holds with unknown class.
func joinListing(known []claimView, gone map[dra.PodRef]bool, listing dra.PodResources, uuid resolve) []claimView {
	listed := listedClaims(listing, uuid)
	views := make([]claimView, 0, len(known)+len(listed))
	for _, view := range known {
		fresh, isListed := listed[view.ref]
		delete(listed, view.ref)
		view = view.without(gone).resolved(uuid)
		switch {
		case isListed && !view.covers(fresh):
			views = append(views, fresh)
		case isListed:
			views = append(views, view.with(fresh))
		case len(view.pods) > 0:
			views = append(views, view)
		}
	}
	for _, view := range listed {
		views = append(views, view)
	}
	for i := range views {
		views[i].settle()
	}
	sortClaims(views)
	return views
}

// listedClaims turns a List into claims. A claim that is named without
// devices is not prepared yet and holds nothing that is known.
func listedClaims(listing dra.PodResources, uuid resolve) map[dra.ClaimRef]claimView {
	views := make(map[dra.ClaimRef]claimView)
	for _, a := range listing.Assignments {
		view, seen := views[a.Claim]
		if !seen {
			view = claimView{ref: a.Claim, info: claimInfo{sharing: sharingNone}}
		}
		id := uuid(a.Device)
		view.devices = append(view.devices, claimDevice{id: a.Device, uuid: id, shareID: a.ShareID})
		view.consumers = append(view.consumers, claimConsumer{uuid: id, pod: a.Pod.Name, container: a.Container})
		view.pods = append(view.pods, a.Pod)
		if a.ShareID != "" {
			view.info.sharing = sharingCapacity
		}
		if view.info.uid == "" {
			view.info.uid = claimUID(a)
		}
		views[a.Claim] = view
	}
	return views
}

// claimUID finds the claim's UID in a CDI id such as
// k8s.gpu.nvidia.com/claim=<claim UID>-<device>, which is how several drivers
// name them.
func claimUID(a dra.Assignment) string {
	const length = len("00000000-0000-0000-0000-000000000000")
	for _, name := range a.CDIDevices {
		_, local, _ := strings.Cut(name, "=")
		if uid, ok := strings.CutSuffix(local, "-"+a.Device.Name); ok && len(uid) == length && strings.Count(uid, "-") == 4 {
			return uid
		}
	}
	return ""
}

// resolved names the view's devices as they are named now: the hardware of
// some may have been found only later.
func (v claimView) resolved(uuid resolve) claimView {
	renamed := make(map[string]string)
	for _, d := range v.devices {
		if now := uuid(d.id); now != d.uuid {
			renamed[d.uuid] = now
		}
	}
	if len(renamed) == 0 {
		return v
	}
	v.devices, v.consumers = slices.Clone(v.devices), slices.Clone(v.consumers)
	for i := range v.devices {
		v.devices[i].uuid = uuid(v.devices[i].id)
	}
	for i, c := range v.consumers {
		if now, ok := renamed[c.uuid]; ok {
			v.consumers[i].uuid = now
		}
	}
	return v
}

// without leaves out the pods that are gone and their containers.
func (v claimView) without(gone map[dra.PodRef]bool) claimView {
	if len(gone) == 0 {
		return v
	}
	pods, consumers := v.pods, v.consumers
	v.pods, v.consumers = nil, nil
	for _, pod := range pods {
		if !gone[pod] {
			v.pods = append(v.pods, pod)
		}
	}
	for _, c := range consumers {
		if !gone[dra.PodRef{Namespace: v.ref.Namespace, Name: c.pod}] {
			v.consumers = append(v.consumers, c)
		}
	}
	return v
}

// covers reports whether every device that is listed is known to the claim.
// If not, it is another claim under the same name.
func (v claimView) covers(listed claimView) bool {
	for _, d := range listed.devices {
		if !v.has(d.id) {
			return false
		}
	}
	return len(v.pods) > 0
}

func (v claimView) has(id dra.DeviceID) bool {
	for _, d := range v.devices {
		if d.id == id {
			return true
		}
	}
	return false
}

// with adds the pods and containers that are newly listed for a known claim.
// Containers of pods that are known already are left as the API described
// them: the List names each device for each container.
func (v claimView) with(listed claimView) claimView {
	known := make(map[dra.PodRef]bool, len(v.pods))
	for _, pod := range v.pods {
		known[pod] = true
	}
	v.pods, v.consumers = slices.Clone(v.pods), slices.Clone(v.consumers)
	for _, pod := range listed.pods {
		if !known[pod] {
			v.pods = append(v.pods, pod)
		}
	}
	for _, c := range listed.consumers {
		if !known[dra.PodRef{Namespace: v.ref.Namespace, Name: c.pod}] {
			v.consumers = append(v.consumers, c)
		}
	}
	return v
}
