package explain

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// World is the objects themselves, as the API server told of them last. It is
// not safe for concurrent use; what it points to is immutable.
type World struct {
	claims   map[dra.ClaimRef]*dra.ClaimLife
	pods     map[dra.PodRef]*dra.PodLife
	groups   map[dra.PodRef]*dra.Group
	made     map[madeKey]string // names of claims
	troubles map[string]*dra.Trouble
}

// madeKey is for whom, and for which of its references, a claim was made: so
// it is known before the pod's status tells.
type madeKey struct{ owner, podClaim string }

// NewWorld is a world without anything in it.
func NewWorld() *World {
	return &World{
		claims: make(map[dra.ClaimRef]*dra.ClaimLife), pods: make(map[dra.PodRef]*dra.PodLife),
		groups: make(map[dra.PodRef]*dra.Group), made: make(map[madeKey]string), troubles: make(map[string]*dra.Trouble),
	}
}

// Claim notes a claim as it is now, or that it is gone.
func (w *World) Claim(claim *dra.ClaimLife, gone bool) {
	note(w.claims, claim.Ref, claim, gone)
	key := madeKey{claim.MadeFor.UID, claim.PodClaim}
	if key.owner != "" && key.podClaim != "" && (!gone || w.made[key] == claim.Ref.Name) {
		note(w.made, key, claim.Ref.Name, gone)
	}
}

// Pod notes a pod that uses claims.
func (w *World) Pod(pod *dra.PodLife, gone bool) { note(w.pods, pod.Ref, pod, gone) }

// Group notes a group of pods that share claims.
func (w *World) Group(group *dra.Group, gone bool) { note(w.groups, group.Ref, group, gone) }

// Trouble notes an event.
func (w *World) Trouble(trouble *dra.Trouble, gone bool) {
	note(w.troubles, trouble.Name, trouble, gone)
}

func note[K comparable, V any](all map[K]V, key K, value V, gone bool) {
	if gone {
		delete(all, key)
		return
	}
	all[key] = value
}

// users are the pods that refer to the claim and have not ended, sorted by
// name.
func (w *World) users(ref dra.ClaimRef) []*dra.PodLife {
	var users []*dra.PodLife
	for _, pod := range w.pods {
		if pod.Ref.Namespace != ref.Namespace || pod.Terminal {
			continue
		}
		for _, reference := range pod.Claims {
			if w.claimOf(pod, reference) == ref.Name {
				users = append(users, pod)
				break
			}
		}
	}
	slices.SortFunc(users, func(a, b *dra.PodLife) int { return cmp.Compare(a.Ref.Name, b.Ref.Name) })
	return users
}

// claimOf is the name of the claim that a reference of a pod leads to, by
// itself or by the pod's group, or that was made for it; empty while there is
// none. A pod takes part in a claim of its group by a reference of the same
// name to the same claim or template.
func (w *World) claimOf(pod *dra.PodLife, reference dra.PodClaim) string {
	if reference.Claim != "" {
		return reference.Claim
	}
	owner := pod.UID
	if group, known := w.groups[dra.PodRef{Namespace: pod.Ref.Namespace, Name: pod.Group}]; known {
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
	return w.made[madeKey{owner, reference.Name}]
}

// tells reports whether an event says so of a claim that cannot be made.
func (w *World) tells(message string) bool {
	for _, trouble := range w.troubles {
		if trouble.Kind == dra.TroubleCreation && trouble.Message == message {
			return true
		}
	}
	return false
}

// unprepared is the newest event of devices that could not be prepared for
// the pod; nil without one.
func (w *World) unprepared(pod dra.PodRef, uid string) *dra.Trouble {
	var newest *dra.Trouble
	for _, trouble := range w.troubles {
		if trouble.Kind != dra.TroublePreparation || trouble.Pod != pod || (trouble.PodUID != "" && trouble.PodUID != uid) {
			continue
		}
		if newest == nil || trouble.Last.After(newest.Last) || trouble.Last.Equal(newest.Last) && trouble.Name > newest.Name {
			newest = trouble
		}
	}
	return newest
}
