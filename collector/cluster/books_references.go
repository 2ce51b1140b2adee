package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// resolve says anew what the pod's references are and which claims they name,
// and keeps the index from claims to pods. Claims that it names now, or does
// not any more, are touched.
func (s *State) resolve(p *podEntry) {
	before := p.refs
	p.refs = s.books.referencesOf(p)
	for i := range p.refs {
		if c := p.refs[i].claim; c != nil && !names(before, c) && !names(p.refs[:i], c) {
			c.users = append(c.users, p)
			s.touched.claims[c] = struct{}{}
		}
	}
	for i := range before {
		if c := before[i].claim; c != nil && !names(p.refs, c) && !names(before[:i], c) {
			c.users = without(c.users, p)
			s.touched.claims[c] = struct{}{}
			s.books.release(c)
		}
	}
}

func names(refs []reference, c *claimEntry) bool {
	for i := range refs {
		if refs[i].claim == c {
			return true
		}
	}
	return false
}

func (b *books) referencesOf(p *podEntry) []reference {
	if p.life == nil {
		return nil
	}
	refs := make([]reference, 0, len(p.life.Claims)+len(p.life.Extended))
	forExtended := ""
	for _, pc := range p.life.Claims {
		if pc.Name == "" {
			forExtended = pc.Claim
			continue
		}
		refs = append(refs, reference{name: pc.Name, template: pc.Template, claim: b.named(p, b.nameOf(p, pc))})
	}
	if len(p.life.Extended) == 0 {
		return refs
	}
	if forExtended == "" {
		forExtended = b.made[madeKey{owner: p.life.UID}].Name
	}
	for _, resource := range slices.Sorted(maps.Keys(p.life.Extended)) {
		refs = append(refs, reference{name: resource, extended: p.life.Extended[resource], claim: b.named(p, forExtended)})
	}
	return refs
}

func (b *books) named(p *podEntry, claim string) *claimEntry {
	if claim == "" {
		return nil
	}
	return b.claim(dra.ClaimRef{Namespace: p.ref.Namespace, Name: claim})
}

// nameOf is the name of the claim that a pod's reference stands for: what its
// status or its spec says; what its group has under the same name, made from
// the same template; or the claim that says that it was made for this.
func (b *books) nameOf(p *podEntry, pc dra.PodClaim) string {
	if pc.Claim != "" {
		return pc.Claim
	}
	owner := p.life.UID
	if group := b.group(p); group != nil {
		for _, of := range group.Claims {
			if of.Name != pc.Name || of.Template != pc.Template {
				continue
			}
			if of.Claim != "" {
				return of.Claim
			}
			owner = group.UID
		}
	}
	return b.made[madeKey{owner, pc.Name}].Name
}

// alive reports whether the pod can still come to use what it names.
func (p *podEntry) alive() bool {
	return p.life != nil && !p.life.Terminal && p.life.Deleted.IsZero()
}

// satisfied reports whether a reference of the pod does not wait: its claim is
// allocated, reserved for the pod or its group, and all binding conditions are
// true; or the pod is bound, or will never be.
func (p *podEntry) satisfied(r *reference) bool {
	if !p.alive() || p.life.Node != "" {
		return true
	}
	return r.claim != nil && r.claim.reservedFor(p) && (r.claim.life.Binding == dra.BindingNone || r.claim.life.Binding == dra.BindingDone)
}

// reservedFor reports whether the claim is there, allocated, and reserved for
// the pod or its group.
func (c *claimEntry) reservedFor(p *podEntry) bool {
	if c.life == nil || !c.life.Allocated || p.life == nil {
		return false
	}
	for i := range c.life.ReservedFor {
		if p.isFor(&c.life.ReservedFor[i]) {
			return true
		}
	}
	return false
}

// isFor reports whether a reservation is for the pod, or for its group.
func (p *podEntry) isFor(consumer *dra.Consumer) bool {
	switch consumer.Resource {
	case "pods":
		return consumer.UID == p.life.UID
	case "podgroups":
		return p.life.Group != "" && consumer.Name == p.life.Group
	default:
		return false
	}
}

// since is the API server's time since when a reference of the pod waits, or
// waited. A claim for extended resources is made when the wait is over, so the
// pod's creation alone counts there.
func (p *podEntry) since(r *reference) time.Time {
	if r.claim == nil || r.claim.life == nil || r.extended > 0 || r.claim.life.Created.Before(p.life.Created) {
		return p.life.Created
	}
	return r.claim.life.Created
}
