package inventory

import (
	"slices"
	"strings"
	"unique"

	"github.com/blang/semver/v4"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// device is a published device in a compact form: what selectors can look at
// as numbers of the table, and the rest only where there is any.
type device struct {
	name  unique.Handle[string]
	facts []fact // attributes and capacities, sorted by name
	more  *extras
}

// fact is an attribute or a capacity: numbers of its name and its value.
type fact struct {
	name, value uint32
}

// extras is what most devices do not have.
type extras struct {
	multi    bool // several claims may share it
	odd      bool // has an attribute that cannot be read, or one twice: selectors are asked with the published object
	taints   []resourcev1.DeviceTaint
	consumes []*book[consumption]
	capacity *book[capacities] // as published, where the facts do not tell all of it, or it may be shared
	reach    *book[*reach]     // where the slice leaves it to each device
}

type capacities map[resourcev1.QualifiedName]resourcev1.DeviceCapacity

// consumption is what a device takes of a counter set.
type consumption struct {
	set      string
	groups   []string
	counters []counter
}

type counter struct {
	name  string
	value resource.Quantity
}

func (d *device) multi() bool { return d.more != nil && d.more.multi }
func (d *device) odd() bool   { return d.more != nil && d.more.odd }

// sameFacts says whether no selector can tell the two apart.
func (d *device) sameFacts(other *device) bool {
	return d.name == other.name && d.multi() == other.multi() && !d.odd() && !other.odd() && slices.Equal(d.facts, other.facts)
}

// fact finds the value of a name.
func (d *device) fact(name uint32) (value uint32, published bool) {
	for _, f := range d.facts {
		if f.name == name {
			return f.value, true
		}
	}
	return 0, false
}

// shelve makes the compact form of a device of the driver.
func (inv *Inventory) shelve(driver string, published *resourcev1.Device, reach *book[*reach]) device {
	made := device{name: unique.Make(clean(published.Name))}
	more := extras{
		multi:  published.AllowMultipleAllocations != nil && *published.AllowMultipleAllocations,
		reach:  reach,
		taints: slices.Clone(published.Taints),
	}
	made.facts, more.odd = inv.factsOf(driver, published)
	for i := range published.ConsumesCounters {
		if lent := inv.consumptionOf(&published.ConsumesCounters[i]); lent != nil {
			more.consumes = append(more.consumes, lent)
		}
	}
	if len(published.Capacity) > 0 && (more.multi || peculiar(published.Capacity)) {
		more.capacity = inv.capacityOf(published.Capacity)
	}
	if more.multi || more.odd || more.reach != nil || more.capacity != nil || more.taints != nil || more.consumes != nil {
		made.more = &more
	}
	return made
}

// factsOf holds the texts of all that selectors can see. Odd is what cannot be
// told by them.
func (inv *Inventory) factsOf(driver string, published *resourcev1.Device) (facts []fact, odd bool) {
	facts = make([]fact, 0, len(published.Attributes)+len(published.Capacity))
	for name, attribute := range published.Attributes {
		text, known := attributeText(&attribute)
		if !known || !readable(&attribute) {
			odd = true // CEL refuses the whole device
			continue
		}
		facts = append(facts, fact{inv.texts.hold(attributeName(driver, name)), inv.texts.hold(text)})
	}
	for name, capacity := range published.Capacity {
		facts = append(facts, fact{inv.texts.hold(capacityName(driver, name)), inv.texts.hold(quantityText(capacity.Value))})
	}
	slices.SortFunc(facts, func(a, b fact) int { return int(a.name) - int(b.name) })
	for i := 1; i < len(facts); i++ {
		odd = odd || facts[i].name == facts[i-1].name // with the driver's domain, and without
	}
	return facts, odd
}

func (inv *Inventory) consumptionOf(published *resourcev1.DeviceCounterConsumption) *book[consumption] {
	key, err := published.Marshal()
	if err != nil {
		return nil // not one that came over the wire
	}
	return inv.consumptions.lend(key, func() consumption {
		return consumption{
			set:      strings.Clone(published.CounterSet),
			groups:   slices.Clone(published.CompatibilityGroups),
			counters: countersOf(published.Counters),
		}
	})
}

func countersOf(published map[string]resourcev1.Counter) []counter {
	counters := make([]counter, 0, len(published))
	for name, c := range published {
		counters = append(counters, counter{strings.Clone(name), c.Value.DeepCopy()})
	}
	slices.SortFunc(counters, func(a, b counter) int { return strings.Compare(a.name, b.name) })
	return counters
}

func (inv *Inventory) capacityOf(published capacities) *book[capacities] {
	key, err := (&resourcev1.Device{Capacity: published}).Marshal()
	if err != nil {
		return nil
	}
	return inv.capacities.lend(key, func() capacities {
		return (&resourcev1.Device{Capacity: published}).DeepCopy().Capacity
	})
}

// peculiar says whether capacities have policies, or a domain in their names.
func peculiar(published capacities) bool {
	for name, capacity := range published {
		if capacity.RequestPolicy != nil || strings.Contains(string(name), "/") {
			return true
		}
	}
	return false
}

// discard gives back all that the device holds.
func (inv *Inventory) discard(d *device) {
	for _, f := range d.facts {
		inv.texts.drop(f.name)
		inv.texts.drop(f.value)
	}
	if d.more == nil {
		return
	}
	for _, lent := range d.more.consumes {
		inv.consumptions.giveBack(lent)
	}
	inv.capacities.giveBack(d.more.capacity)
	inv.leave(d.more.reach)
}

// readable says whether CEL accepts the attribute: versions have to parse.
func readable(attribute *resourcev1.DeviceAttribute) bool {
	versions := attribute.VersionValues
	if attribute.VersionValue != nil {
		versions = []string{*attribute.VersionValue}
	}
	return !slices.ContainsFunc(versions, func(version string) bool {
		_, err := semver.Parse(version)
		return err != nil
	})
}
