package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// class is a device class with the devices that it selects.
type class struct {
	published *resourcev1.DeviceClass
	selectors []*selector
	upTo      uint64       // stamp of the last block for which the selectors have been evaluated
	counted   bool         // counts are up to date, except for the pools that were updated since
	counts    []classCount // by slot of the pool
	total     classCount
}

// classCount counts devices that a class selects.
type classCount struct {
	states [dra.DeviceStates]int
	down   [dra.DownReasons]int
}

// evaluated reports whether the selectors have been evaluated for all devices.
func (c *class) evaluated(index *blockIndex) bool {
	for _, b := range index.after(c.upTo) {
		if b.slice != nil {
			if _, _, open := filter(b, b.all, c.selectors); open != 0 {
				return false
			}
		}
		c.upTo = b.stamp
	}
	return true
}

// selectorError returns why a selector of the class cannot be evaluated; empty: all can.
func (c *class) selectorError() string {
	var reason string
	for _, s := range c.selectors {
		reason = cmp.Or(reason, s.broken)
	}
	return reason
}

// count counts the devices of a pool that the class selects.
func (c *class) count(p *pool) {
	var counts classCount
	for _, b := range p.blocks {
		mask, _, _ := filter(b, b.all, c.selectors)
		addStates(&counts.states, b, mask)
		p.addDown(&counts.down, b, mask)
	}
	c.setCounts(p.slot, counts)
}

func (c *class) setCounts(slot int, counts classCount) {
	if slot >= len(c.counts) {
		c.counts = append(c.counts, make([]classCount, slot+1-len(c.counts))...)
	}
	previous := &c.counts[slot]
	for state := range counts.states {
		c.total.states[state] += counts.states[state] - previous.states[state]
	}
	for reason := range counts.down {
		c.total.down[reason] += counts.down[reason] - previous.down[reason]
	}
	c.counts[slot] = counts
}

// supply returns the part of a Supply about the class.
func (c *class) supply(name string) dra.ClassSupply {
	made := dra.ClassSupply{Class: validUTF8(name), Counted: c.counted, Error: validUTF8(c.selectorError())}
	if extended := c.published.Spec.ExtendedResourceName; extended != nil {
		made.ExtendedResource = validUTF8(*extended)
	}
	if c.counted {
		made.Devices, made.Down = c.total.states, c.total.down
	}
	return made
}

// classStore keeps the device classes.
type classStore struct {
	byName    map[string]*class
	selectors *selectorStore
}

func newClassStore(selectors *selectorStore) *classStore {
	return &classStore{byName: map[string]*class{}, selectors: selectors}
}

// set applies the present state of a class; nil: it is gone. It reports whether
// something that matters has changed.
func (cs *classStore) set(name string, published *resourcev1.DeviceClass, compiled []*selector) bool {
	old := cs.byName[name]
	if old != nil && published != nil && equality.Semantic.DeepEqual(old.published.Spec, published.Spec) &&
		old.published.CreationTimestamp.Equal(&published.CreationTimestamp) {
		return false
	}
	if published != nil {
		cs.byName[strings.Clone(name)] = &class{published: published, selectors: cs.selectors.retain(compiled)}
	} else {
		delete(cs.byName, name)
	}
	if old != nil {
		cs.selectors.release(old.selectors)
	}
	return true
}

// forExtendedResource returns the class by which an extended resource is
// allocated, nil if there is none. If several classes name the same resource,
// the scheduler chooses the youngest one, and among these the first by name.
// Each class also has an implicit name.
func (cs *classStore) forExtendedResource(resource string) *resourcev1.DeviceClass {
	if name, implicit := strings.CutPrefix(resource, resourcev1.ResourceDeviceClassPrefix); implicit {
		return cs.get(name)
	}
	var best *resourcev1.DeviceClass
	for _, c := range cs.byName {
		named := c.published.Spec.ExtendedResourceName
		if named != nil && *named == resource && (best == nil || compareAge(c.published, best) < 0) {
			best = c.published
		}
	}
	return best
}

func compareAge(a, b *resourcev1.DeviceClass) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// get returns nil for a class that does not exist.
func (cs *classStore) get(name string) *resourcev1.DeviceClass {
	if found := cs.byName[name]; found != nil {
		return found.published
	}
	return nil
}

// names returns the names of all classes, sorted.
func (cs *classStore) names() []string { return slices.Sorted(maps.Keys(cs.byName)) }

// supplies returns the part of a Supply about classes, sorted by name.
func (cs *classStore) supplies() []dra.ClassSupply {
	var all []dra.ClassSupply
	for _, name := range cs.names() {
		all = append(all, cs.byName[name].supply(name))
	}
	return all
}

// classSelectors returns the selectors of a class, and false if it does not exist.
func (cs *classStore) classSelectors(name string) ([]*selector, bool) {
	if found := cs.byName[name]; found != nil {
		return found.selectors, true
	}
	return nil, false
}

// unevaluated returns the selectors of each class that have not been evaluated for all
// devices.
func (cs *classStore) unevaluated(index *blockIndex) [][]*selector {
	var chains [][]*selector
	for _, c := range cs.byName {
		if !c.evaluated(index) {
			chains = append(chains, c.selectors)
		}
	}
	return chains
}

// count updates the counts of the classes whose selectors have been evaluated
// for all devices. It reports whether a class has become countable or has ceased
// to be.
func (cs *classStore) count(pools *poolStore, index *blockIndex) (changed bool) {
	updated, removed := pools.takeChanges()
	for _, c := range cs.byName {
		for _, slot := range removed {
			c.setCounts(slot, classCount{})
		}
		previous := c.counted
		c.counted = c.evaluated(index) && c.selectorError() == ""
		changed = changed || previous != c.counted
		switch {
		case c.counted && previous:
			for p := range updated {
				c.count(p)
			}
		case c.counted:
			for _, p := range pools.all() {
				c.count(p)
			}
		}
	}
	return changed
}
