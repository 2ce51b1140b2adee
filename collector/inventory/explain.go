package inventory

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Concerns says whether what Count and the allocator say about the request may
// have changed since a version: devices, classes or nodes have, or what is
// allocated, tainted or spent of a pool in which the request would take a
// device. It is true as well where that cannot be told, because selectors have
// been forgotten.
func (inv *Inventory) Concerns(request Request, since uint64) bool {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if inv.version <= since {
		return false
	}
	wanted, known := inv.known(&request)
	switch {
	case inv.reshaped > since:
		return true
	case inv.classes[request.Class] == nil:
		return false // nothing is looked at while the class does not exist
	case !known:
		return true
	}
	return slices.ContainsFunc(inv.order, func(p *pool) bool { return p.moved > since && p.wantedBy(wanted) })
}

// wantedBy says whether the selectors select a device of the pool, fail for
// one, or have yet to be asked about one.
func (p *pool) wantedBy(selectors []*selector) bool {
	for _, s := range p.slices {
		for _, b := range s.blocks {
			if match, failed, open := narrow(b, b.all, selectors); match|failed|open != 0 {
				return true
			}
		}
	}
	return false
}

// sieve walks the funnel for one request, for a person.
type sieve struct {
	inv     *Inventory
	request Request
	class   []*selector
	own     []*selector
}

// sieve is to be used under the lock, which it takes.
func (inv *Inventory) sieve(request Request) *sieve {
	compiled := inv.compile(request.Selectors)
	inv.refresh()
	inv.mu.Lock()
	inv.recountDirty(-1)
	s := &sieve{inv: inv, request: request}
	s.class, s.own = inv.chosen(&request, compiled)
	return s
}

// stages are what each stage leaves of a block.
func (s *sieve) stages(p *pool, b *block) (left [dra.StageBestNode]uint64) {
	left[dra.StagePublished] = b.all
	if s.inv.classes[s.request.Class] == nil {
		return left
	}
	left[dra.StageClass], _, _ = narrow(b, b.all, s.class)
	left[dra.StageSelectors], _, _ = narrow(b, left[dra.StageClass], s.own)
	left[dra.StageUntainted] = p.tolerated(b, left[dra.StageSelectors], &s.request)
	left[dra.StageFree] = s.inv.available(p, b, left[dra.StageUntainted], &s.request)
	return left
}

// why says why a device that is otherwise right is not free.
func (inv *Inventory) why(p *pool, d *device, request *Request) Why {
	held := p.held[d.name]
	exclusive := false
	if held != nil {
		exclusive, _ = held.sum()
	}
	switch {
	case exclusive && !request.AdminAccess:
		return WhyHeld // whatever its pool is like, so that Count.Incomplete counts the same devices
	case !p.complete:
		return WhyIncomplete
	case !p.valid:
		return WhyInvalid
	case held != nil && d.multi() && !exclusive:
		return WhyCapacity
	case !p.left.suffices(d):
		return WhyCounters
	case !p.left.admits(d):
		return WhyGroups
	}
	return WhyCapacity
}

// blockers are the devices that are held in the way of a device: itself, else
// those that are cut from the same.
func (p *pool) blockers(d *device) []*device {
	if p.held[d.name] != nil {
		return []*device{d}
	}
	var blockers []*device
	for _, s := range p.current {
		for i := range s.devices {
			other := &s.devices[i]
			if p.held[other.name] != nil && d.sharesCounters(other) {
				blockers = append(blockers, other)
			}
		}
	}
	return blockers
}

func (d *device) sharesCounters(other *device) bool {
	if !d.consumes() || !other.consumes() {
		return false
	}
	return slices.ContainsFunc(d.more.consumes, func(a *book[consumption]) bool {
		return slices.ContainsFunc(other.more.consumes, func(b *book[consumption]) bool { return a.thing.set == b.thing.set })
	})
}

// Holders gives the claims that hold devices which would fit the request, or
// what those are cut from: those with most devices first, at most as many as
// the limit says. Their requests are empty. All is how many there are.
func (inv *Inventory) Holders(request Request, limit int) (holders []dra.Holder, all int) {
	s := inv.sieve(request)
	defer inv.mu.Unlock()
	held := map[*claim][]dra.DeviceID{}
	for _, p := range inv.order {
		seen := map[*device]bool{}
		for _, published := range p.current {
			for _, b := range published.blocks {
				left := s.stages(p, b)
				for bit := range each(left[dra.StageUntainted] &^ left[dra.StageFree]) {
					var fresh []*device
					for _, blocker := range p.blockers(b.device(bit)) {
						if !seen[blocker] {
							seen[blocker] = true
							fresh = append(fresh, blocker)
						}
					}
					gather(held, p, fresh)
				}
			}
		}
	}
	sorted := holdersOf(held)
	return sorted[:min(limit, len(sorted))], len(sorted)
}

func gather(into map[*claim][]dra.DeviceID, p *pool, devices []*device) {
	for _, d := range devices {
		for h := p.held[d.name]; h != nil; h = h.next {
			if id := p.id(d); !slices.Contains(into[h.claim], id) {
				into[h.claim] = append(into[h.claim], id)
			}
		}
	}
}

// holdersOf sorts who has been gathered: who holds most comes first.
func holdersOf(held map[*claim][]dra.DeviceID) []dra.Holder {
	var holders []dra.Holder
	for c, ids := range held {
		holder := dra.Holder{Claim: dra.ClaimRef{Namespace: clean(c.ref.Namespace), Name: clean(c.ref.Name)}, Devices: ids}
		holder.Pods = slices.Clone(c.pods)
		holders = append(holders, holder)
	}
	slices.SortFunc(holders, func(a, b dra.Holder) int {
		return cmp.Or(cmp.Compare(len(b.Devices), len(a.Devices)), compareRef(a.Claim, b.Claim))
	})
	return holders
}
