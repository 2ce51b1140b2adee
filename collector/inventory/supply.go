package inventory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// poolsPerPass is how many pools are counted under the lock at once.
const poolsPerPass = 256

// Supply is what is published, and what of it is left. It counts what has
// changed since the last time. It does not ask selectors: Settle does, and a
// class whose selectors have not been asked about all devices says so.
func (inv *Inventory) Supply() *dra.Supply {
	inv.refresh()
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.recountDirty(-1) // what has come since
	countedMore := inv.countClasses()
	oversized := inv.oversized()
	if inv.supply != nil && inv.supply.Version == inv.version && !countedMore && maps.Equal(inv.supply.Oversized, oversized) {
		return inv.supply
	}
	made := &dra.Supply{Version: inv.version, Pools: make([]*dra.PoolSupply, 0, len(inv.order)), Oversized: oversized}
	for _, p := range inv.order {
		made.Pools = append(made.Pools, p.supply)
		made.Taints = append(made.Taints, p.taints...)
		made.Tainted = append(made.Tainted, p.marked...)
	}
	for _, name := range slices.Sorted(maps.Keys(inv.classes)) {
		made.Classes = append(made.Classes, inv.classes[name].classSupply(name))
	}
	slices.SortStableFunc(made.Taints, func(a, b dra.TaintCount) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), compareTaint(a.Taint, b.Taint))
	})
	inv.supply = made
	return made
}

// refresh counts the pools anew that need it, a few at a time.
func (inv *Inventory) refresh() {
	for more := true; more; {
		inv.mu.Lock()
		more = inv.recountDirty(poolsPerPass)
		inv.mu.Unlock()
	}
}

// recountDirty counts pools anew, at most as many as the limit says (-1: all).
// It is true if there are more.
func (inv *Inventory) recountDirty(limit int) bool {
	for p := range inv.dirty {
		if limit == 0 {
			return true
		}
		limit--
		inv.recount(p)
	}
	return false
}

// countClasses brings the counts of all classes up to date whose selectors
// have been asked about all devices. It is true if one became countable, or
// ceased to be.
func (inv *Inventory) countClasses() (changed bool) {
	for _, c := range inv.classes {
		was := c.counted
		c.counted = inv.counted(c) && !c.broken()
		changed = changed || was != c.counted
		switch {
		case c.counted && was:
			for p := range inv.recounted {
				c.put(p.slot, c.selects(p))
			}
		case c.counted:
			for _, p := range inv.order {
				c.put(p.slot, c.selects(p))
			}
		}
	}
	clear(inv.recounted)
	return changed
}

// selects counts what the class selects in a pool.
func (c *class) selects(p *pool) (counts [dra.DeviceStates]int) {
	for _, s := range p.current {
		for _, b := range s.blocks {
			mask, _, _ := narrow(b, b.all, c.selectors)
			b.tally(mask, &counts)
		}
	}
	return counts
}

// narrow is what selectors leave of a mask, one after the other, for which
// devices one failed where all before it matched, and about which one has yet
// to be asked.
func narrow(b *block, mask uint64, selectors []*selector) (match, failed, open uint64) {
	for _, s := range selectors {
		if mask == 0 {
			break
		}
		r := s.at(b)
		failed |= mask & r.failed
		open |= mask &^ r.asked
		mask &= r.match
	}
	return mask, failed, open
}
