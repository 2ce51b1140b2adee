package inventory

import (
	"slices"
	"strings"
	"unique"

	"github.com/blang/semver/v4"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// device is a published device in a compact form.
type device struct {
	name       unique.Handle[string]
	properties []property // sorted by name
	extras     *extras    // nil: none
}

// property is an attribute or a capacity: the numbers of its name and its value
// in the textTable.
type property struct {
	name, value uint32
}

// extras has the properties that most devices lack.
type extras struct {
	shareable bool // several claims may share the device
	irregular bool // has an attribute that CEL cannot read, or one twice: selectors are evaluated for the published object
	taints    []resourcev1.DeviceTaint
	consumes  []*interned[counterConsumption]
	capacity  *interned[capacities]     // as published, if the properties do not have all of it, or the device may be shared
	selection *interned[*nodeSelection] // nil: that of the slice
}

// counterConsumption is what a device consumes of a counter set.
type counterConsumption struct {
	set      string
	groups   []string // compatibility groups
	counters []counter
}

type counter struct {
	name  string
	value resource.Quantity
}

func (d *device) shareable() bool { return d.extras != nil && d.extras.shareable }
func (d *device) irregular() bool { return d.extras != nil && d.extras.irregular }

// consumes returns what the device consumes of counter sets.
func (d *device) consumes() []*interned[counterConsumption] {
	if d.extras == nil {
		return nil
	}
	return d.extras.consumes
}

// sharesCounters reports whether both devices consume from the same counter set.
func (d *device) sharesCounters(other *device) bool {
	return slices.ContainsFunc(d.consumes(), func(a *interned[counterConsumption]) bool {
		return slices.ContainsFunc(other.consumes(), func(b *interned[counterConsumption]) bool { return a.value.set == b.value.set })
	})
}

// capacity returns the published capacity if it is kept. It is kept for devices
// that may be shared, and for devices whose properties do not contain all of
// it.
func (d *device) capacity() capacities {
	if d.extras == nil || d.extras.capacity == nil {
		return nil
	}
	return d.extras.capacity.value
}

// sameProperties reports whether both devices have the same results of all
// selectors.
func (d *device) sameProperties(other *device) bool {
	return d.name == other.name && d.shareable() == other.shareable() && !d.irregular() && !other.irregular() &&
		slices.Equal(d.properties, other.properties)
}

// property returns the number of the value of an attribute or capacity.
func (d *device) property(name uint32) (value uint32, published bool) {
	for _, p := range d.properties {
		if p.name == name {
			return p.value, true
		}
	}
	return 0, false
}

// deviceStore keeps what devices have in common: each value once.
type deviceStore struct {
	texts        *textTable
	consumptions *internPool[counterConsumption]
	capacities   *internPool[capacities]
}

func newDeviceStore(texts *textTable) *deviceStore {
	return &deviceStore{texts: texts, consumptions: newInternPool[counterConsumption](), capacities: newInternPool[capacities]()}
}

// encode returns the compact form of a device of the driver. The device needs
// one release. A selection of nodes that is not nil is the device's own.
func (s *deviceStore) encode(driver string, published *resourcev1.Device, selection *interned[*nodeSelection]) device {
	encoded := device{name: unique.Make(validUTF8(published.Name))}
	more := extras{
		shareable: published.AllowMultipleAllocations != nil && *published.AllowMultipleAllocations,
		selection: selection,
		taints:    slices.Clone(published.Taints),
	}
	encoded.properties, more.irregular = s.properties(driver, published)
	for i := range published.ConsumesCounters {
		consumption := &published.ConsumesCounters[i]
		consumed := s.consumptions.acquireFor(consumption, func() counterConsumption {
			return counterConsumption{
				set:      strings.Clone(consumption.CounterSet),
				groups:   slices.Clone(consumption.CompatibilityGroups),
				counters: newCounters(consumption.Counters),
			}
		})
		if consumed != nil {
			more.consumes = append(more.consumes, consumed)
		}
	}
	if len(published.Capacity) > 0 && (more.shareable || needsPublished(published.Capacity)) {
		object := &resourcev1.Device{Capacity: published.Capacity}
		more.capacity = s.capacities.acquireFor(object, func() capacities { return object.DeepCopy().Capacity })
	}
	if more.shareable || more.irregular || more.selection != nil || more.capacity != nil || more.taints != nil || more.consumes != nil {
		encoded.extras = &more
	}
	return encoded
}

// properties acquires the texts of everything that selectors can see. These
// texts do not describe irregular devices completely.
func (s *deviceStore) properties(driver string, published *resourcev1.Device) (properties []property, irregular bool) {
	properties = make([]property, 0, len(published.Attributes)+len(published.Capacity))
	for name, attribute := range published.Attributes {
		text, ok := attributeText(&attribute)
		if !ok || !readable(&attribute) {
			irregular = true // CEL refuses the whole device
			continue
		}
		properties = append(properties, property{s.texts.acquire(nameAttribute + qualified(driver, name)), s.texts.acquire(text)})
	}
	for name, capacity := range published.Capacity {
		properties = append(properties, property{s.texts.acquire(nameCapacity + qualified(driver, name)), s.texts.acquire(quantityText(capacity.Value))})
	}
	slices.SortFunc(properties, func(a, b property) int { return int(a.name) - int(b.name) })
	for i := 1; i < len(properties); i++ {
		irregular = irregular || properties[i].name == properties[i-1].name // with the driver's domain, and without
	}
	return properties, irregular
}

func newCounters(published map[string]resourcev1.Counter) []counter {
	counters := make([]counter, 0, len(published))
	for name, c := range published {
		counters = append(counters, counter{strings.Clone(name), c.Value.DeepCopy()})
	}
	slices.SortFunc(counters, func(a, b counter) int { return strings.Compare(a.name, b.name) })
	return counters
}

// needsPublished reports whether capacities have policies, or a domain in their
// names, which properties do not have.
func needsPublished(published capacities) bool {
	for name, capacity := range published {
		if capacity.RequestPolicy != nil || strings.Contains(string(name), "/") {
			return true
		}
	}
	return false
}

// readable reports whether CEL accepts the attribute: versions have to parse.
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

// release ends the use of all that encode acquired for the device.
func (s *deviceStore) release(d *device) {
	for _, p := range d.properties {
		s.texts.release(p.name)
		s.texts.release(p.value)
	}
	for _, consumed := range d.consumes() {
		s.consumptions.release(consumed)
	}
	if d.extras != nil {
		s.capacities.release(d.extras.capacity)
	}
}

// capacity returns the capacity of any device of the driver.
func (s *deviceStore) capacity(driver string, d *device) capacities {
	if kept := d.capacity(); kept != nil {
		return kept
	}
	published := capacities{}
	for _, p := range d.properties {
		name, ok := strings.CutPrefix(s.texts.text(p.name), nameCapacity+driver+"/")
		if !ok {
			continue
		}
		if quantity, err := parseQuantity(s.texts.text(p.value)); err == nil {
			published[resourcev1.QualifiedName(name)] = resourcev1.DeviceCapacity{Value: quantity}
		}
	}
	return published
}

// celDevice returns a device that is not irregular in the form that CEL
// evaluates, with the properties that read reports true for.
func (s *deviceStore) celDevice(driver string, d *device, read func(name uint32) bool) dracel.Device {
	shareable := d.shareable()
	made := dracel.Device{
		Driver:                   driver,
		AllowMultipleAllocations: &shareable,
		Attributes:               map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{},
		Capacity:                 map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{},
	}
	for _, p := range d.properties {
		if !read(p.name) {
			continue
		}
		name, value := s.texts.text(p.name), s.texts.text(p.value)
		if attribute, ok := strings.CutPrefix(name, nameAttribute); ok {
			made.Attributes[resourcev1.QualifiedName(attribute)] = parseAttribute(value)
		} else if quantity, err := parseQuantity(value); err == nil {
			made.Capacity[resourcev1.QualifiedName(name[len(nameCapacity):])] = resourcev1.DeviceCapacity{Value: quantity}
		}
	}
	return made
}
