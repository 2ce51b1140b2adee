package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// class is a device class with what it selects.
type class struct {
	published *resourcev1.DeviceClass
	selectors []*selector
	upTo      uint64                  // stamp of the last block about which the selectors have been asked
	counted   bool                    // the figures are right but for the pools counted anew since
	counts    [][dra.DeviceStates]int // by the pool's slot
	total     [dra.DeviceStates]int
}

// counted reports whether the selectors of the class have been asked about all
// devices.
func (inv *Inventory) counted(c *class) bool {
	for _, b := range inv.blocks[inv.after(c.upTo):] {
		if b.slice != nil {
			if _, _, open := narrow(b, b.all, c.selectors); open != 0 {
				return false
			}
		}
		c.upTo = b.stamp
	}
	return true
}

// broken reports whether a selector of the class cannot be asked.
func (c *class) broken() bool {
	return slices.ContainsFunc(c.selectors, func(s *selector) bool { return s.broken != "" })
}

// forget takes a pool that is gone out of the counts.
func (c *class) forget(slot int) { c.put(slot, [dra.DeviceStates]int{}) }

// put sets what the class selects in one pool.
func (c *class) put(slot int, counts [dra.DeviceStates]int) {
	if slot >= len(c.counts) {
		c.counts = append(c.counts, make([][dra.DeviceStates]int, slot+1-len(c.counts))...)
	}
	for state := range counts {
		c.total[state] += counts[state] - c.counts[slot][state]
	}
	c.counts[slot] = counts
}

// Class takes a device class as it is from now on; nil: it is gone.
func (inv *Inventory) Class(name string, published *resourcev1.DeviceClass) {
	var compiled []*selector
	if published != nil {
		compiled = inv.compile(published.Spec.Selectors)
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	old := inv.classes[name]
	if old != nil && published != nil && equality.Semantic.DeepEqual(old.published.Spec, published.Spec) &&
		old.published.CreationTimestamp.Equal(&published.CreationTimestamp) {
		return // nothing that matters is different
	}
	inv.version++
	inv.reshaped = inv.version
	if published != nil {
		made := &class{published: published}
		made.selectors = inv.pin(compiled)
		inv.classes[strings.Clone(name)] = made
	} else {
		delete(inv.classes, name)
	}
	if old != nil {
		inv.unpin(old.selectors)
	}
}

// ClassNamed is the class of that name. It must not be changed.
func (inv *Inventory) ClassNamed(name string) (*resourcev1.DeviceClass, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	found := inv.classes[name]
	if found == nil {
		return nil, false
	}
	return found.published, true
}

// ClassFor is the class by which an extended resource is allocated: where
// several name the same one, the youngest, then the first by name, as the
// scheduler chooses; each class has an implicit name besides.
func (inv *Inventory) ClassFor(extendedResource string) (*resourcev1.DeviceClass, bool) {
	if name, implicit := strings.CutPrefix(extendedResource, resourcev1.ResourceDeviceClassPrefix); implicit {
		return inv.ClassNamed(name)
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	var best *resourcev1.DeviceClass
	for _, c := range inv.classes {
		named := c.published.Spec.ExtendedResourceName
		if named != nil && *named == extendedResource && (best == nil || prefer(c.published, best) < 0) {
			best = c.published
		}
	}
	return best, best != nil
}

func prefer(a, b *resourcev1.DeviceClass) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// Classes lists the device classes for upstream's allocator.
func (inv *Inventory) Classes() structured.DeviceClassLister { return lister{inv} }

type lister struct{ inv *Inventory }

// List returns all classes, sorted by name.
func (l lister) List() ([]*resourcev1.DeviceClass, error) {
	l.inv.mu.Lock()
	defer l.inv.mu.Unlock()
	var all []*resourcev1.DeviceClass
	for _, name := range slices.Sorted(maps.Keys(l.inv.classes)) {
		all = append(all, l.inv.classes[name].published)
	}
	return all, nil
}

// Get returns the class of that name, or an error that says "not found".
func (l lister) Get(name string) (*resourcev1.DeviceClass, error) {
	found, known := l.inv.ClassNamed(name)
	if !known {
		return nil, fmt.Errorf("get device class: %w", apierrors.NewNotFound(resourcev1.Resource("deviceclasses"), name))
	}
	return found, nil
}

// classSupply is what of a class goes into a Supply.
func (c *class) classSupply(name string) dra.ClassSupply {
	made := dra.ClassSupply{Class: clean(name), Counted: c.counted}
	if extended := c.published.Spec.ExtendedResourceName; extended != nil {
		made.ExtendedResource = clean(*extended)
	}
	for _, s := range c.selectors {
		made.Error = cmp.Or(made.Error, clean(s.broken))
	}
	if c.counted {
		made.Devices = c.total
	}
	return made
}
