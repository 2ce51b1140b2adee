package page

import (
	"cmp"
	"slices"
	"strings"
)

// finish puts together what the rows said: sources and claims in order, devices with
// their holders, partitions within their parents.
func (r *reader) finish() View {
	r.view.Sources = r.byName()
	for _, device := range r.devices {
		device.Health.tidy()
	}
	r.recover()
	for _, claim := range r.claims {
		finished := claim.finish()
		r.addFacts(&finished)
		r.view.Claims = append(r.view.Claims, finished)
	}
	slices.SortFunc(r.view.Claims, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Severity().Rank(), b.Severity().Rank()), compareClaims(a, b))
	})
	for i := range r.view.Claims {
		r.addHolder(&r.view.Claims[i])
	}
	r.view.Devices = r.nested()
	r.view.nameParents()
	slices.SortFunc(r.view.Totals, compareTotals)
	return r.view
}

func compareClaims(a, b Claim) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (c *claimOf) finish() Claim {
	claim := c.Claim
	claim.Devices, claim.Consumers = []ClaimDevice{}, []Consumer{}
	for _, device := range c.devices {
		slices.SortFunc(device.Accounts, func(a, b Account) int { return cmp.Compare(a.Attribution, b.Attribution) })
		device.settle()
		claim.Held = claim.Held || device.Held
		claim.Devices = append(claim.Devices, *device)
	}
	slices.SortFunc(claim.Devices, func(a, b ClaimDevice) int {
		return cmp.Or(natural(a.name(), b.name()), cmp.Compare(a.UUID, b.UUID))
	})
	for _, consumer := range c.consumers {
		slices.Sort(consumer.UUIDs)
		claim.Consumers = append(claim.Consumers, consumer.Consumer)
	}
	slices.SortFunc(claim.Consumers, compareConsumers)
	return claim
}

func compareConsumers(a, b Consumer) int {
	return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.PodUID, b.PodUID), cmp.Compare(a.Container, b.Container))
}

// addFacts says beside what a claim gets how the devices are, what they cost,
// and what pods and strangers do on those that it holds.
func (r *reader) addFacts(claim *Claim) {
	for i := range claim.Devices {
		to := &claim.Devices[i]
		of := r.devices[to.UUID]
		if of == nil {
			continue
		}
		to.ParentUUID, to.Model, to.Profile = of.ParentUUID, of.Model, of.Profile
		to.Health = of.Health.known()
		if parent := r.devices[of.ParentUUID]; of.ParentUUID != "" && parent != nil {
			to.ParentHealth = parent.Health.known()
		}
		if !to.Held {
			continue
		}
		to.Price, to.Unattributed = of.priceFor(classOf(claim, *to)), of.unattributed.known()
		for _, pod := range r.podsOf(claim, to.UUID) {
			if use := of.use(pod.Namespace, pod.Name); use != nil {
				to.Pods = append(to.Pods, PodUse{pod.Name, *use})
			}
		}
	}
}

func (c ClaimDevice) name() string {
	if len(c.Allocations) == 0 {
		return ""
	}
	return c.Allocations[0].Device
}

// addHolder tells the devices that the claim holds who holds them. A device
// that only claims know has no hardware.
func (r *reader) addHolder(claim *Claim) {
	for _, held := range claim.Devices {
		if !held.Held {
			continue
		}
		device := r.devices[held.UUID]
		if device == nil {
			device = &heldDevice{Device: Device{UUID: held.UUID}}
			r.devices[held.UUID] = device
		}
		if device.Published.Device == "" && len(held.Allocations) > 0 {
			a := held.Allocations[0]
			device.Published = DeviceName{a.Driver, a.Pool, a.Device}
		}
		device.Holders = append(device.Holders, Holder{
			Kind: ByClaim, Namespace: claim.Namespace, Claim: claim.Name, Class: classOf(claim, held),
			Attribution: held.Way(), Use: held.use(), IdleSince: held.IdleSince, Pods: r.podsOf(claim, held.UUID),
		})
	}
}

// severalClasses stands for the class where there are several, as in the rows.
const severalClasses = "multiple"

// classOf is the class by which the claim got this device, else the claim's.
func classOf(claim *Claim, held ClaimDevice) string {
	class := ""
	for _, a := range held.Allocations {
		switch {
		case a.Class == "" || a.Class == class:
		case class == "":
			class = a.Class
		default:
			return severalClasses
		}
	}
	return cmp.Or(class, claim.Class)
}

// podsOf are the claim's pods that may use a device now. What each of several
// does is told where it is known.
func (r *reader) podsOf(claim *Claim, uuid string) []Pod {
	var pods []Pod
	for _, consumer := range r.presentOn(claim, uuid) {
		if last := len(pods) - 1; last >= 0 && pods[last].Name == consumer.Pod {
			pods[last].Containers = append(pods[last].Containers, consumer.Container)
			continue
		}
		pods = append(pods, Pod{Namespace: claim.Namespace, Name: consumer.Pod, Containers: []string{consumer.Container}})
	}
	if device := r.devices[uuid]; device != nil && len(pods) > 1 {
		for i := range pods {
			pods[i].Use = device.use(pods[i].Namespace, pods[i].Name)
		}
	}
	return pods
}

// presentOn are the consumers of a claim that may use a device now, by pod.
func (r *reader) presentOn(claim *Claim, uuid string) []Consumer {
	var present []Consumer
	for _, consumer := range r.claims[claimKey{claim.Namespace, claim.Name}].consumers {
		if slices.Contains(consumer.present, uuid) {
			present = append(present, consumer.Consumer)
		}
	}
	slices.SortFunc(present, compareConsumers)
	return present
}

// nested sorts the devices and moves partitions into their parents. A
// partition whose parent is not known stands alone.
func (r *reader) nested() []Device {
	var whole, partitions []Device
	for _, device := range r.devices {
		for _, holder := range device.plugins {
			holder.Use = device.use(holder.Namespace, holder.Pods[0].Name)
			device.Holders = append(device.Holders, holder)
		}
		device.Unattributed, device.Prices = device.unattributed.known(), device.finalPrices()
		if parent := r.devices[device.ParentUUID]; device.ParentUUID != "" && parent != nil && parent.ParentUUID == "" {
			partitions = append(partitions, device.Device)
		} else {
			whole = append(whole, device.Device)
		}
	}
	slices.SortFunc(partitions, compareDevices)
	for i := range whole {
		for _, partition := range partitions {
			if partition.ParentUUID == whole[i].UUID {
				whole[i].Partitions = append(whole[i].Partitions, partition)
			}
		}
	}
	slices.SortFunc(whole, compareDevices)
	return whole
}

// compareDevices puts sick devices first, hardware before what could not be matched, published
// devices before others, and goes by the published name, then by the place on
// the bus.
func compareDevices(a, b Device) int {
	x, y := a.name(), b.name()
	return cmp.Or(cmp.Compare(a.Severity().Rank(), b.Severity().Rank()), first(a.Matched, b.Matched), first(x.Device != "", y.Device != ""),
		cmp.Compare(x.Driver, y.Driver), natural(x.Device, y.Device),
		cmp.Compare(a.PCIBusID, b.PCIBusID), cmp.Compare(a.UUID, b.UUID))
}

// first puts what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// natural compares names so that gpu-2 comes before gpu-10.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digitsOf(a), digitsOf(b)
		if x == 0 || y == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
		if order := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n), cmp.Compare(x, y)); order != 0 {
			return order
		}
		a, b = a[x:], b[y:]
	}
	return cmp.Compare(len(a), len(b))
}

// digitsOf is how many digits the text begins with.
func digitsOf(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }
