package node

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// absenceSpan is how far apart two Lists must be that both miss a pod until
// the pod is taken for gone, where a List may not be complete.
const absenceSpan = 5 * time.Second

// complete reports whether a List names all pods of the node that hold
// devices. A kubelet that has just restarted lists nothing for about a second,
// then perhaps the pods of its manifest folder alone, and after that all pods
// of the API server at once. So one assignment to a pod of the API server
// proves that the List is complete. The kubelet names the pods of manifests
// <name>-<node>; they cannot have claims.
func complete(listing dra.PodResources, node string) bool {
	ofAPI := func(pod dra.PodRef) bool { return !strings.HasSuffix(pod.Name, "-"+node) }
	return slices.ContainsFunc(listing.Assignments, func(a dra.Assignment) bool { return ofAPI(a.Pod) }) ||
		slices.ContainsFunc(listing.Plugins, func(a dra.PluginAssignment) bool { return ofAPI(a.Pod) })
}

// absences remembers since which List each pod has been missing.
type absences map[dra.PodRef]clock.Instant

// observe applies one more List that may not be complete, and returns which of
// the pods are missing from it, and which of those are gone. It may be given
// the same List again.
func (a absences) observe(pods []dra.PodRef, listing dra.PodResources, listedAt clock.Instant) (missing, gone map[dra.PodRef]bool) {
	listed := make(map[dra.PodRef]bool, len(listing.Pods))
	for _, pod := range listing.Pods {
		listed[pod] = true
	}
	missing, gone = make(map[dra.PodRef]bool), make(map[dra.PodRef]bool)
	for _, pod := range pods {
		if listed[pod] {
			continue
		}
		missing[pod] = true
		since, before := a[pod]
		switch {
		case !before:
			a[pod] = listedAt
		case listedAt.Since(since) >= absenceSpan:
			gone[pod] = true
		}
	}
	maps.DeleteFunc(a, func(pod dra.PodRef, _ clock.Instant) bool { return !missing[pod] || gone[pod] })
	return missing, gone
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
// claim that is newly listed holds with unknown class. Devices that are new
// have no uuids yet.
func joinListing(known []claimView, missing, gone map[dra.PodRef]bool, listing dra.PodResources) []claimView {
	listed := listedClaims(listing)
	views := make([]claimView, 0, len(known)+len(listed))
	for _, view := range known {
		fresh, isListed := listed[view.ref]
		delete(listed, view.ref)
		view = view.without(gone)
		switch {
		case isListed && !view.covers(fresh):
			views = append(views, fresh)
		case isListed:
			views = append(views, view.with(fresh))
		case len(view.pods) > 0:
			view.missing = !slices.ContainsFunc(view.pods, func(pod dra.PodRef) bool { return !missing[pod] })
			views = append(views, view)
		}
	}
	for _, view := range listed {
		views = append(views, view)
	}
	return views
}

// replaced adds to the pods that are gone those that the List shows to be
// others under their names: they have a claim that the pod of before did not
// name, and a pod's claims never change. The other pod keeps what the List
// says that it has. It is noted as made again until the watch reports its UID.
func replaced(gone, recreated map[dra.PodRef]bool, known []claimView, pods []dra.Pod, listing dra.PodResources) {
	named := make(map[dra.PodRef]map[dra.ClaimRef]bool)
	name := func(pod dra.PodRef, claim dra.ClaimRef) {
		if named[pod] == nil {
			named[pod] = make(map[dra.ClaimRef]bool)
		}
		named[pod][claim] = true
	}
	for i := range known {
		for _, pod := range known[i].pods {
			name(pod, known[i].ref)
		}
	}
	unnamed := make(map[dra.PodRef]bool) // its claims had not all been made yet
	for i := range pods {
		for _, claim := range pods[i].Claims {
			name(pods[i].Ref, dra.ClaimRef{Namespace: pods[i].Ref.Namespace, Name: claim.Claim})
			unnamed[pods[i].Ref] = unnamed[pods[i].Ref] || claim.Claim == ""
		}
	}
	for _, a := range listing.Assignments {
		if claims, known := named[a.Pod]; known && !claims[a.Claim] && !unnamed[a.Pod] {
			gone[a.Pod], recreated[a.Pod] = true, true
		}
	}
}

// listedClaims turns a List into claims. A claim that is named without
// devices is not prepared yet and holds nothing that is known.
func listedClaims(listing dra.PodResources) map[dra.ClaimRef]claimView {
	views := make(map[dra.ClaimRef]claimView)
	for _, a := range listing.Assignments {
		view, seen := views[a.Claim]
		if !seen {
			view = claimView{ref: a.Claim, info: claimInfo{sharing: sharingNone}, listedOnly: true}
		}
		view.devices = append(view.devices, claimDevice{id: a.Device, shareID: a.ShareID})
		view.consumers = append(view.consumers, claimConsumer{device: a.Device, pod: a.Pod.Name, container: a.Container})
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
