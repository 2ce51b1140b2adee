package node

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// join determines which claims are held on the node, and by which pods.
type join struct {
	node      string
	views     []claimView // sorted by claim
	absent    absences
	recreated map[dra.PodRef]bool // pods that are others than the stale watch has under their names
	uncertain []uncertainHold

	causes causes // of the views
	valid  bool   // the views follow from the causes alone
}

// uncertainHold is a device that a claim may hold. The claim has not been read,
// and may have admin access.
type uncertainHold struct {
	device dra.DeviceID
	uuid   string
}

// causes is everything that matching and joining depend on while the facts of
// the API server decide. Most steps bring new readings alone.
type causes struct {
	pods        listIdentity[dra.Pod]
	claims      listIdentity[dra.Claim]
	published   listIdentity[dra.PublishedDevice]
	assignments listIdentity[dra.Assignment]
	cdi         listIdentity[dra.CDIDevice]
	hardware    uint64 // changes of the hardware so far
}

func newJoin(node string) *join {
	return &join{node: node, absent: make(absences), recreated: make(map[dra.PodRef]bool)}
}

// update joins the facts again where anything has changed that the views depend
// on, and reports whether it did. The views that it leaves are to be resolved.
func (j *join) update(facts Facts, hardwareChanges uint64) bool {
	causes := causes{
		pods:        newListIdentity(facts.Cluster.Pods),
		claims:      newListIdentity(facts.Cluster.Claims),
		published:   newListIdentity(facts.Cluster.Published),
		assignments: newListIdentity(facts.Listing.Assignments),
		cdi:         newListIdentity(facts.CDI),
		hardware:    hardwareChanges,
	}
	// Otherwise the views depend on time, or on the views before.
	fromCauses := facts.Cluster.Enabled && facts.Cluster.Fresh && len(facts.Cluster.Unread) == 0
	if fromCauses && j.valid && causes == j.causes {
		return false
	}
	j.uncertain = nil
	j.views = j.joinClaims(facts)
	j.causes, j.valid = causes, fromCauses
	return true
}

// held returns the devices of the views.
func (j *join) held() map[dra.DeviceID]bool {
	held := make(map[dra.DeviceID]bool)
	for i := range j.views {
		for _, d := range j.views[i].devices {
			held[d.id] = true
		}
	}
	return held
}

// resolve gives each device its uuid, and sorts the views.
func (j *join) resolve(identify resolve) {
	for i := range j.views {
		j.views[i].resolve(j.node, identify)
	}
	for i := range j.uncertain {
		j.uncertain[i].uuid, _ = identify(j.uncertain[i].device)
	}
	slices.SortFunc(j.views, func(a, b claimView) int { return compareClaims(a.ref, b.ref) })
}

// joinClaims joins by the facts that decide at the moment: those of the API
// server while the pod watch is fresh, else those of the kubelet and the views
// before.
func (j *join) joinClaims(facts Facts) []claimView {
	switch {
	case facts.Cluster.Enabled && facts.Cluster.Fresh:
		clear(j.absent)
		clear(j.recreated)
		return joinCluster(j.node, facts.Cluster, j.unreadClaims(facts))
	case facts.ListedAt.IsZero():
		return slices.Clone(j.views)
	case !facts.Cluster.Enabled && complete(facts.Listing, j.node):
		clear(j.absent)
		return joinListing(nil, nil, nil, facts.Listing)
	default:
		missing, gone := j.absent.observe(listPods(j.views), facts.Listing, facts.ListedAt)
		addRecreated(gone, j.recreated, j.views, facts.Cluster.Pods, facts.Listing)
		return joinListing(j.views, missing, gone, facts.Listing)
	}
}

// unreadClaims returns the views of claims that pods reference and that have
// not been read yet: the view before, if it is of the same claim; else, if no
// claim can be read at all (for want of permission, say), the devices of the
// kubelet's List, with an unknown class. A claim that only the List has, while
// others can be read, is uncertain: it may have admin access. It does not hold
// its devices yet, but no other holder of them is exclusive. The result is asked
// for the pods that reference a claim.
func (j *join) unreadClaims(facts Facts) func(dra.ClaimRef, []*dra.Pod) (claimView, bool) {
	unread := make(map[dra.ClaimRef]bool, len(facts.Cluster.Unread))
	for _, ref := range facts.Cluster.Unread {
		unread[ref] = true
	}
	var listed map[dra.ClaimRef]claimView
	return func(ref dra.ClaimRef, pods []*dra.Pod) (claimView, bool) {
		if listed == nil {
			listed = listedClaims(facts.Listing)
		}
		now, ok := listed[ref]
		at := slices.IndexFunc(j.views, func(view claimView) bool { return view.ref == ref })
		switch {
		case unread[ref] && at >= 0 && j.views[at].belongsTo(pods, now, ok):
			view := j.views[at].of(pods)
			view.missing = false
			return view, true
		case !ok:
		case unread[ref] && facts.claimsDown():
			return now, true
		default:
			for _, d := range now.devices {
				j.uncertain = append(j.uncertain, uncertainHold{device: d.id})
			}
		}
		return claimView{}, false
	}
}

// joinCluster returns the claims that are held while the pod watch is synced: a
// claim is held that is allocated and reserved for a pod that is bound to the
// node and not finished, whether the kubelet lists it or not. A pod is bound only
// after its claims were reserved for it: a claim that is not reserved for a pod
// here has not been read since, or is another one that had the name before.
// fallback returns the view of such a claim. Devices have no uuids yet.
func joinCluster(node string, cluster APIFacts, fallback func(dra.ClaimRef, []*dra.Pod) (claimView, bool)) []claimView {
	claims := make(map[dra.ClaimRef]*dra.Claim, len(cluster.Claims))
	for i := range cluster.Claims {
		claims[cluster.Claims[i].Ref] = &cluster.Claims[i]
	}
	views := make([]claimView, 0, len(claims))
	index := make(map[dra.ClaimRef]int, len(claims))
	var refs []dra.ClaimRef // of claims that are not known to be reserved for a pod
	unread := make(map[dra.ClaimRef][]*dra.Pod)
	for i := range cluster.Pods {
		pod := &cluster.Pods[i]
		if pod.Terminal || pod.Node != node {
			continue
		}
		for _, named := range pod.Claims {
			ref := dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: named.Claim}
			claim, ok := claims[ref]
			switch {
			case named.Claim == "":
			case ok && claim.Allocated && claim.HeldBy(pod.UID):
				at, ok := index[ref]
				if !ok {
					at = len(views)
					index[ref] = at
					views = append(views, newClaimView(claim, named.Template))
				}
				views[at].addPod(*pod)
			default:
				if unread[ref] == nil {
					refs = append(refs, ref)
				}
				unread[ref] = append(unread[ref], pod)
			}
		}
	}
	for i := range views {
		if claim, ok := claims[views[i].ref]; ok {
			views[i].charge = decideCharging(claim, views[i].podUIDs)
		}
	}
	for _, ref := range refs {
		if _, ok := index[ref]; ok {
			continue // it is reserved for another pod
		}
		if view, ok := fallback(ref, unread[ref]); ok {
			views = append(views, view)
		}
	}
	return views
}

// absenceSpan is how far apart two Lists must be that both miss a pod for the pod
// to count as gone, if Lists may not be complete.
const absenceSpan = 5 * time.Second

// complete reports whether a List has all pods of the node that hold devices. A
// kubelet that has just restarted lists nothing for about a second, then perhaps
// the static pods alone, and after that all pods of the API server at once. So one
// assignment to a pod of the API server proves that the List is complete. The
// kubelet names static pods <name>-<node>; they cannot have claims.
func complete(listing dra.PodResources, node string) bool {
	ofAPI := func(pod dra.PodRef) bool { return !strings.HasSuffix(pod.Name, "-"+node) }
	return slices.ContainsFunc(listing.Assignments, func(a dra.Assignment) bool { return ofAPI(a.Pod) }) ||
		slices.ContainsFunc(listing.Plugins, func(a dra.PluginAssignment) bool { return ofAPI(a.Pod) })
}

// holdersKnown reports whether it is certain which devices are held: all claims and
// device plugins' pods of the node have been read. At the start they have not, and a
// device that is held looks free.
func holdersKnown(f Facts, node string) bool {
	listed := !f.ListedAt.IsZero() && complete(f.Listing, node)
	if !f.Cluster.Enabled {
		return listed
	}
	return f.Cluster.Fresh && f.Cluster.SlicesFresh && len(f.Cluster.Unread) == 0 &&
		(listed || !f.ListedAt.IsZero() && len(f.Cluster.PluginPods) == 0)
}

// absences is since which List each pod has been missing.
type absences map[dra.PodRef]clock.Instant

// observe applies one more List that may not be complete, and returns which of
// the pods are missing from it, and which of those are gone. The List may be the
// same as before.
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
		start, ok := a[pod]
		switch {
		case !ok:
			a[pod] = listedAt
		case listedAt.Since(start) >= absenceSpan:
			gone[pod] = true
		}
	}
	maps.DeleteFunc(a, func(pod dra.PodRef, _ clock.Instant) bool { return !missing[pod] || gone[pod] })
	return missing, gone
}

// listPods returns the pods of all views.
func listPods(views []claimView) []dra.PodRef {
	var pods []dra.PodRef
	for _, view := range views {
		pods = append(pods, view.pods...)
	}
	return pods
}

// joinListing returns the claims that are held by the kubelet's List alone, or by
// it and the views before: a known claim stays until its pods are gone, and a claim
// that is newly listed has an unknown class. Devices that are new have no uuids
// yet.
func joinListing(known []claimView, missing, gone map[dra.PodRef]bool, listing dra.PodResources) []claimView {
	listed := listedClaims(listing)
	views := make([]claimView, 0, len(known)+len(listed))
	for _, view := range known {
		now, ok := listed[view.ref]
		delete(listed, view.ref)
		view = view.without(gone)
		switch {
		case ok && !view.covers(now):
			views = append(views, now)
		case ok:
			views = append(views, view.with(now))
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

// addRecreated adds to the pods that are gone those that were recreated by the
// List: they have a claim that the pod before did not reference, and a pod's claims
// never change. The new pod has what the List has of it. It counts as recreated
// until the watch has its UID.
func addRecreated(gone, recreated map[dra.PodRef]bool, known []claimView, pods []dra.Pod, listing dra.PodResources) {
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
	unnamed := make(map[dra.PodRef]bool) // some of its claims had not been created yet
	for i := range pods {
		for _, claim := range pods[i].Claims {
			name(pods[i].Ref, dra.ClaimRef{Namespace: pods[i].Ref.Namespace, Name: claim.Claim})
			unnamed[pods[i].Ref] = unnamed[pods[i].Ref] || claim.Claim == ""
		}
	}
	for _, a := range listing.Assignments {
		if claims, ok := named[a.Pod]; ok && !claims[a.Claim] && !unnamed[a.Pod] {
			gone[a.Pod], recreated[a.Pod] = true, true
		}
	}
}

// listedClaims returns the claims of a List. A claim that is listed without devices
// is not prepared, and holds nothing that is known.
func listedClaims(listing dra.PodResources) map[dra.ClaimRef]claimView {
	views := make(map[dra.ClaimRef]claimView)
	for _, a := range listing.Assignments {
		view, ok := views[a.Claim]
		if !ok {
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

// claimUID finds the claim's UID in a CDI id: k8s.gpu.nvidia.com/claim=<claim
// UID>-<device>, which is how several drivers name them, or <driver>/metadata=<claim
// UID>_<request>, which Kubernetes' library for drivers adds to the first device of
// a request if the driver provides device metadata.
func claimUID(a dra.Assignment) string {
	for _, name := range a.CDIDevices {
		kind, local, _ := strings.Cut(name, "=")
		uid, ok := strings.CutSuffix(local, "-"+a.Device.Name)
		if !ok && kind == a.Device.Driver+"/metadata" {
			uid, _, ok = strings.Cut(local, "_")
		}
		if ok && isUID(uid) {
			return uid
		}
	}
	return ""
}

func isUID(s string) bool {
	return len(s) == len("00000000-0000-0000-0000-000000000000") && strings.Count(s, "-") == 4
}
