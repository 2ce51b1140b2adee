package node

import (
	"slices"

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
	pods        span[dra.Pod]
	claims      span[dra.Claim]
	published   span[dra.PublishedDevice]
	assignments span[dra.Assignment]
	cdi         span[dra.CDIDevice]
	hardware    uint64 // changes of the hardware so far
}

func newJoin(node string) *join {
	return &join{node: node, absent: make(absences), recreated: make(map[dra.PodRef]bool)}
}

// update joins the facts again where anything has changed that the views depend
// on, and reports whether it did. The views that it leaves are to be resolved.
func (j *join) update(facts Facts, hardwareChanges uint64) bool {
	causes := causes{
		pods:        spanOf(facts.Cluster.Pods),
		claims:      spanOf(facts.Cluster.Claims),
		published:   spanOf(facts.Cluster.Published),
		assignments: spanOf(facts.Listing.Assignments),
		cdi:         spanOf(facts.CDI),
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
func (j *join) resolve(uuid resolve) {
	for i := range j.views {
		j.views[i].resolve(uuid)
	}
	for i := range j.uncertain {
		j.uncertain[i].uuid = uuid(j.uncertain[i].device)
	}
	sortClaims(j.views)
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
		missing, gone := j.absent.observe(podsOf(j.views), facts.Listing, facts.ListedAt)
		replaced(gone, j.recreated, j.views, facts.Cluster.Pods, facts.Listing)
		return joinListing(j.views, missing, gone, facts.Listing)
	}
}

// unreadClaims returns the views of claims that pods reference and that have
// not been read yet: the view before, if the claim was held; else, if no claim
// can be read at all (for want of permission, say), the devices of the
// kubelet's List, with an unknown class. A claim that only the List has, while
// others can be read, is uncertain: it may have admin access. It does not hold
// its devices yet, but no other holder of them is exclusive.
func (j *join) unreadClaims(facts Facts) func(dra.ClaimRef) (claimView, bool) {
	if len(facts.Cluster.Unread) == 0 {
		return func(dra.ClaimRef) (claimView, bool) { return claimView{}, false }
	}
	unread := make(map[dra.ClaimRef]bool, len(facts.Cluster.Unread))
	for _, ref := range facts.Cluster.Unread {
		unread[ref] = true
	}
	before := make(map[dra.ClaimRef]claimView, len(j.views))
	for _, view := range j.views {
		view.missing = false
		before[view.ref] = view
	}
	for ref, view := range listedClaims(facts.Listing) {
		_, known := before[ref]
		switch {
		case known || !unread[ref]:
		case facts.claimsDown():
			before[ref] = view
		default:
			for _, d := range view.devices {
				j.uncertain = append(j.uncertain, uncertainHold{device: d.id})
			}
		}
	}
	return func(ref dra.ClaimRef) (claimView, bool) {
		view, known := before[ref]
		delete(before, ref) // once, however many pods reference it
		return view, known && unread[ref]
	}
}

// joinCluster returns the claims that are held while the pod watch is synced: a
// claim is held that is allocated and reserved for a pod that is bound to the
// node and not finished, whether the kubelet lists it or not. fallback returns
// the view of a claim that has not been read. Devices have no uuids yet.
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
				views[at].addPod(pod)
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
