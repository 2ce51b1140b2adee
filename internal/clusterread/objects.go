package clusterread

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Objects indexes the newest version of each object of the API server. It is not
// safe for concurrent use; what it points to is immutable.
type Objects struct {
	Claims    map[dra.ClaimRef]*dra.ClaimLifecycle
	Pods      map[dra.PodRef]*dra.PodLifecycle
	Groups    map[dra.PodRef]*dra.Group
	generated map[generatedKey]string // names of claims
	Warnings  map[string]*dra.Warning
	Nodes     map[string]*dra.Node
	Kueue     map[dra.PodRef]*dra.KueueWorkload
	Domains   map[dra.PodRef]*dra.ComputeDomain
	Scaling   map[string]*dra.Autoscaling // the newest event of autoscalers, by the pod's UID

	usedBy map[dra.ClaimRef][]*dra.PodLifecycle // made when it is first asked for; nil after a change
}

// generatedKey identifies a claim that is generated for a pod or a group by the
// owner's UID and the reference: the pod's status has its name only later.
type generatedKey struct{ owner, podClaim string }

// NewObjects returns an index of what the changes leave.
func NewObjects(changes ...cluster.Change) *Objects {
	objects := &Objects{
		Claims: make(map[dra.ClaimRef]*dra.ClaimLifecycle), Pods: make(map[dra.PodRef]*dra.PodLifecycle),
		Groups: make(map[dra.PodRef]*dra.Group), generated: make(map[generatedKey]string), Warnings: make(map[string]*dra.Warning), Nodes: make(map[string]*dra.Node),
		Kueue: make(map[dra.PodRef]*dra.KueueWorkload), Domains: make(map[dra.PodRef]*dra.ComputeDomain),
		Scaling: make(map[string]*dra.Autoscaling),
	}
	for _, change := range changes {
		objects.Apply(change)
	}
	return objects
}

// Apply sets or deletes the object of a change. An event of an autoscaler is left out if a
// newer one is known.
func (o *Objects) Apply(change cluster.Change) {
	switch gone := change.Gone; {
	case change.Claim != nil:
		o.applyClaim(change.Claim, gone)
	case change.Pod != nil:
		o.usedBy = nil
		set(o.Pods, change.Pod.Ref, change.Pod, gone)
	case change.Group != nil:
		o.usedBy = nil
		set(o.Groups, change.Group.Ref, change.Group, gone)
	case change.Warning != nil:
		set(o.Warnings, change.Warning.Name, change.Warning, gone)
	case change.Node != nil:
		set(o.Nodes, change.Node.Name, change.Node, gone)
	case change.KueueWorkload != nil:
		set(o.Kueue, change.KueueWorkload.Ref, change.KueueWorkload, gone)
	case change.ComputeDomain != nil:
		set(o.Domains, change.ComputeDomain.Ref, change.ComputeDomain, gone)
	case change.Autoscaling != nil:
		event := change.Autoscaling
		known := o.Scaling[event.PodUID]
		if gone && known != nil && known.Name == event.Name || !gone && (known == nil || known.Name == event.Name || !known.Last.After(event.Last)) {
			set(o.Scaling, event.PodUID, event, gone)
		}
	}
}

func (o *Objects) applyClaim(claim *dra.ClaimLifecycle, gone bool) {
	o.usedBy = nil
	set(o.Claims, claim.Ref, claim, gone)
	key := generatedKey{claim.MadeFor.UID, claim.PodClaim}
	if key.owner != "" && key.podClaim != "" && (!gone || o.generated[key] == claim.Ref.Name) {
		set(o.generated, key, claim.Ref.Name, gone)
	}
}

func set[K comparable, V any](all map[K]V, key K, value V, gone bool) {
	if gone {
		delete(all, key)
		return
	}
	all[key] = value
}

// Users returns the pods that refer to the claim and have not ended, sorted by
// name.
func (o *Objects) Users(ref dra.ClaimRef) []*dra.PodLifecycle {
	if o.usedBy == nil {
		o.findUsers()
	}
	return o.usedBy[ref]
}

// findUsers finds the users of all claims.
func (o *Objects) findUsers() {
	o.usedBy = make(map[dra.ClaimRef][]*dra.PodLifecycle)
	for _, pod := range o.Pods {
		if pod.Terminal {
			continue
		}
		for _, reference := range pod.Claims {
			ref := dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: o.ClaimName(pod, reference)}
			users := o.usedBy[ref]
			if last := len(users) - 1; ref.Name != "" && (last < 0 || users[last] != pod) { // it may refer to a claim twice
				o.usedBy[ref] = append(users, pod)
			}
		}
	}
	for _, users := range o.usedBy {
		slices.SortFunc(users, func(a, b *dra.PodLifecycle) int { return cmp.Compare(a.Ref.Name, b.Ref.Name) })
	}
}

// ClaimName returns the name of the claim that a reference of a pod names, that its
// group shares, or that was generated for either; empty while there is none. A pod
// shares a claim of its group by a reference of the same name to the same claim or
// template.
func (o *Objects) ClaimName(pod *dra.PodLifecycle, reference dra.PodClaim) string {
	if reference.Claim != "" {
		return reference.Claim
	}
	owner := pod.UID
	if group, ok := o.Groups[dra.PodRef{Namespace: pod.Ref.Namespace, Name: pod.Group}]; ok {
		for _, shared := range group.Claims {
			if shared.Name != reference.Name || shared.Template != reference.Template {
				continue
			}
			if shared.Claim != "" {
				return shared.Claim
			}
			owner = group.UID
		}
	}
	return o.generated[generatedKey{owner, reference.Name}]
}

// PodClaim returns the pod's reference of the name; one without a name where the
// name is that of an extended resource.
func (o *Objects) PodClaim(ref dra.PodRef, name string) dra.PodClaim {
	pod, ok := o.Pods[ref]
	if !ok {
		return dra.PodClaim{Name: name}
	}
	for _, reference := range pod.Claims {
		if reference.Name != "" && reference.Name == name {
			return reference
		}
	}
	return dra.PodClaim{}
}
