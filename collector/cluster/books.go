package cluster

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// books is what the API server has told so far: pods, claims, groups and nodes
// as they are now, and who names whom. What depends on a change is found by
// index; nothing is searched.
type books struct {
	pods    map[dra.PodRef]*podEntry
	claims  map[dra.ClaimRef]*claimEntry
	groups  map[dra.PodRef]*dra.Group
	members map[dra.PodRef][]*podEntry // of a group, which need not exist
	nodes   map[string]*dra.NodeLife
	made    map[madeKey]dra.ClaimRef
	trouble troubles
}

// podEntry is a pod. An entry stands for one pod, not for its name: a pod made
// again under its name gets another.
type podEntry struct {
	ref     dra.PodRef
	life    *dra.PodLife // nil: gone
	refs    []reference
	journey journey
	waiting podWaiting
}

// claimEntry is a claim, or the name of one that a pod names and that is not
// there: it was deleted, not made yet, or not read yet.
type claimEntry struct {
	ref    dra.ClaimRef
	life   *dra.ClaimLife // nil: not there
	users  []*podEntry    // that name it, in no order
	course course
	state  claimBook
}

// reference is what a pod says it uses: a claim of its spec, or an amount of
// an extended resource, for all of which together the scheduler makes one
// claim.
type reference struct {
	name     string // within the pod; of an extended resource, its name
	template string
	extended int64       // how many of the extended resource; 0: it is none
	claim    *claimEntry // nil until its name is known
}

// madeKey is for whom and for what a claim was made from a template: so it is
// known before the pod's status tells.
type madeKey struct {
	owner    string // UID of the pod or group
	podClaim string // empty: for extended resources
}

func newBooks() books {
	return books{
		pods:    make(map[dra.PodRef]*podEntry),
		claims:  make(map[dra.ClaimRef]*claimEntry),
		groups:  make(map[dra.PodRef]*dra.Group),
		members: make(map[dra.PodRef][]*podEntry),
		nodes:   make(map[string]*dra.NodeLife),
		made:    make(map[madeKey]dra.ClaimRef),
		trouble: newTroubles(),
	}
}

// claim returns the entry of a name, made if there was none.
func (b *books) claim(ref dra.ClaimRef) *claimEntry {
	entry, known := b.claims[ref]
	if !known {
		entry = &claimEntry{ref: ref}
		b.claims[ref] = entry
	}
	return entry
}

// release forgets the name of a claim that is neither there nor named.
func (b *books) release(c *claimEntry) {
	if c.life == nil && len(c.users) == 0 && b.claims[c.ref] == c {
		delete(b.claims, c.ref)
	}
}

// group returns the group that the pod belongs to, nil if it is not known.
func (b *books) group(p *podEntry) *dra.Group {
	if p.life == nil || p.life.Group == "" {
		return nil
	}
	return b.groups[dra.PodRef{Namespace: p.ref.Namespace, Name: p.life.Group}]
}

// regroup keeps the index of groups' pods. before is what the pod was; a pod
// that is gone is in no group.
func (b *books) regroup(p *podEntry, before *dra.PodLife) {
	now := p.life
	if before != nil && now != nil && before.Group == now.Group {
		return
	}
	if before != nil && before.Group != "" {
		key := dra.PodRef{Namespace: p.ref.Namespace, Name: before.Group}
		if b.members[key] = without(b.members[key], p); len(b.members[key]) == 0 {
			delete(b.members, key)
		}
	}
	if now != nil && now.Group != "" {
		key := dra.PodRef{Namespace: p.ref.Namespace, Name: now.Group}
		b.members[key] = append(b.members[key], p)
	}
}

// without removes one pod; the order of the others may change.
func without(pods []*podEntry, p *podEntry) []*podEntry {
	i := slices.Index(pods, p)
	if i < 0 {
		return pods
	}
	last := len(pods) - 1
	pods[i], pods[last] = pods[last], nil
	return pods[:last]
}
