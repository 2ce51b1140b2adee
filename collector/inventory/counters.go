package inventory

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// counterState has the counters of a pool that the present allocations leave,
// and which devices can still be allocated together from each counter set.
type counterState struct {
	sets          map[string]*counterSetState
	overcommitted bool // the allocator then allocates no device that needs a counter
}

type counterSetState struct {
	left   map[string]*resource.Quantity
	groups groupState
}

// newCounterState computes the counters of a pool. Counters and devices may be
// published in different slices. It returns false if the slices contradict each
// other.
func newCounterState(current []*slice, allocated func(*device) bool) (counterState, bool) {
	var c counterState
	for _, s := range current {
		if s.counters != nil && !c.add(s.counters.value) {
			return c, false
		}
	}
	for _, s := range current {
		for i := range s.devices {
			if !c.published(&s.devices[i]) {
				return c, false
			}
		}
	}
	if c.sets == nil {
		return c, true
	}
	for _, s := range current {
		for i := range s.devices {
			if d := &s.devices[i]; allocated(d) {
				c.consume(d)
			}
		}
	}
	for _, set := range c.sets {
		for _, left := range set.left {
			c.overcommitted = c.overcommitted || left.Sign() < 0
		}
	}
	return c, true
}

// add adds counter sets. It is false if a set is published twice.
func (c *counterState) add(sets []counterSet) bool {
	if c.sets == nil {
		c.sets = map[string]*counterSetState{}
	}
	for _, set := range sets {
		if c.sets[set.name] != nil {
			return false
		}
		state := &counterSetState{left: make(map[string]*resource.Quantity, len(set.counters))}
		for _, published := range set.counters {
			left := published.value.DeepCopy()
			state.left[published.name] = &left
		}
		c.sets[set.name] = state
	}
	return true
}

// published reports whether all counters that the device consumes are published.
func (c *counterState) published(d *device) bool {
	for _, consumed := range d.consumes() {
		set := c.sets[consumed.value.set]
		if set == nil || slices.ContainsFunc(consumed.value.counters, func(c counter) bool { return set.left[c.name] == nil }) {
			return false
		}
	}
	return true
}

func (c *counterState) consume(d *device) {
	for _, consumed := range d.consumes() {
		set := c.sets[consumed.value.set]
		set.groups.add(consumed.value.groups)
		for i := range consumed.value.counters {
			set.left[consumed.value.counters[i].name].Sub(consumed.value.counters[i].value)
		}
	}
}

// suffice reports whether enough is left for the device.
func (c *counterState) suffice(d *device) bool {
	for _, consumed := range d.consumes() {
		set := c.sets[consumed.value.set]
		if c.overcommitted || set == nil {
			return false
		}
		for i := range consumed.value.counters {
			left := set.left[consumed.value.counters[i].name]
			if left == nil || left.Cmp(consumed.value.counters[i].value) < 0 {
				return false
			}
		}
	}
	return true
}

// compatible reports whether the device can be allocated beside the devices
// that are allocated already.
func (c *counterState) compatible(d *device) bool {
	for _, consumed := range d.consumes() {
		if set := c.sets[consumed.value.set]; set == nil || !set.groups.admits(consumed.value.groups) {
			return false
		}
	}
	return true
}

// groupState determines which devices can be allocated together from a counter
// set. It has the intersection of the compatibility groups of the devices that
// are allocated from the set. Devices without groups are compatible only with
// each other (KEP-5941).
type groupState struct {
	any     bool // something is allocated
	names   []string
	grouped bool // what is allocated has groups
}

func (g groupState) admits(device []string) bool {
	switch {
	case !g.any:
		return true
	case !g.grouped || len(device) == 0:
		return !g.grouped && len(device) == 0
	}
	return slices.ContainsFunc(device, func(name string) bool { return slices.Contains(g.names, name) })
}

func (g *groupState) add(device []string) {
	switch {
	case !g.any:
		*g = groupState{any: true, names: device, grouped: len(device) > 0}
	case g.grouped && len(device) > 0:
		g.names = slices.DeleteFunc(slices.Clone(g.names), func(name string) bool { return !slices.Contains(device, name) })
	}
}
