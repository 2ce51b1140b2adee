package inventory

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// stock is what is left of a pool's counter sets after what is allocated, and
// which groups of devices still go together in each of them.
type stock struct {
	sets  map[string]*shelf
	spent bool // some counter is overdrawn: then the allocator takes no device that needs any
}

type shelf struct {
	left   map[string]*resource.Quantity
	groups groups
}

// groups is which devices go together in a counter set: the intersection of
// the compatibility groups of all that is allocated from it. Devices without
// groups go together with each other alone (KEP-5941).
type groups struct {
	any      bool // something is allocated
	names    []string
	grouping bool // what is allocated has groups
}

func (g groups) admit(device []string) bool {
	switch {
	case !g.any:
		return true
	case !g.grouping || len(device) == 0:
		return !g.grouping && len(device) == 0
	}
	return slices.ContainsFunc(device, func(name string) bool { return slices.Contains(g.names, name) })
}

func (g *groups) add(device []string) {
	switch {
	case !g.any:
		*g = groups{any: true, names: device, grouping: len(device) > 0}
	case g.grouping && len(device) > 0:
		var both []string
		for _, name := range g.names {
			if slices.Contains(device, name) {
				both = append(both, name)
			}
		}
		g.names = both
	}
}

// settleStock counts what is left of the counter sets of the pool, which may be
// published in other slices than the devices. It is false where they
// contradict each other.
func (p *pool) settleStock() bool {
	p.left = stock{}
	for _, s := range p.current {
		if s.counters == nil {
			continue
		}
		for _, set := range s.counters.thing {
			if !p.left.put(set) {
				return false
			}
		}
	}
	for _, s := range p.current {
		for i := range s.devices {
			if !p.left.has(&s.devices[i]) {
				return false
			}
		}
	}
	if p.left.sets == nil {
		return true
	}
	for _, s := range p.current {
		for i := range s.devices {
			if p.held[s.devices[i].name] != nil {
				p.left.take(&s.devices[i])
			}
		}
	}
	p.left.settle()
	return true
}

// put adds a counter set; false: it is there already.
func (st *stock) put(set counterSet) bool {
	if st.sets == nil {
		st.sets = map[string]*shelf{}
	}
	if st.sets[set.name] != nil {
		return false
	}
	made := &shelf{left: make(map[string]*resource.Quantity, len(set.counters))}
	for _, c := range set.counters {
		left := c.value.DeepCopy()
		made.left[c.name] = &left
	}
	st.sets[set.name] = made
	return true
}

// has says whether all that the device consumes is published.
func (st *stock) has(d *device) bool {
	return st.every(d, func(_ *consumption, of *shelf) bool { return of != nil }, func(left *resource.Quantity, _ *counter) bool { return left != nil })
}

// every says whether both are true for all that a device consumes: set for each
// counter set, one for each counter in it.
func (st *stock) every(d *device, set func(*consumption, *shelf) bool, one func(left *resource.Quantity, c *counter) bool) bool {
	if d.more == nil {
		return true
	}
	for _, lent := range d.more.consumes {
		of := st.sets[lent.thing.set]
		if !set(&lent.thing, of) {
			return false
		}
		for i := range lent.thing.counters {
			if !one(of.left[lent.thing.counters[i].name], &lent.thing.counters[i]) {
				return false
			}
		}
	}
	return true
}

func (st *stock) take(d *device) {
	st.every(d, func(c *consumption, of *shelf) bool {
		of.groups.add(c.groups)
		return true
	}, func(left *resource.Quantity, c *counter) bool {
		left.Sub(c.value)
		return true
	})
}

// settle notes whether more is taken than there was.
func (st *stock) settle() {
	for _, of := range st.sets {
		for _, left := range of.left {
			st.spent = st.spent || left.Sign() < 0
		}
	}
}

// consumes says whether the device is cut from a counter set.
func (d *device) consumes() bool { return d.more != nil && len(d.more.consumes) > 0 }

// suffices says whether what is left is enough for the device.
func (st *stock) suffices(d *device) bool {
	return !d.consumes() || !st.spent && st.every(d, func(*consumption, *shelf) bool { return true },
		func(left *resource.Quantity, c *counter) bool { return left.Cmp(c.value) >= 0 })
}

// admits says whether the device goes together with what is allocated.
func (st *stock) admits(d *device) bool {
	return st.every(d, func(c *consumption, of *shelf) bool { return of.groups.admit(c.groups) },
		func(*resource.Quantity, *counter) bool { return true })
}
