package page

import (
	"cmp"
	"slices"
	"time"
)

// assembler makes a view of the records that were read.
type assembler struct {
	at      time.Time
	devices map[string]*deviceRecord
	claims  map[claimKey]*claimRecord
}

// assemble returns the view: sources and claims sorted, devices with their holders,
// partitions within their parents.
func assemble(r *nodeReader) View {
	a, view := assembler{r.at, r.devices, r.claims}, r.view
	view.Sources = r.byName()
	for _, device := range a.devices {
		device.Health.sort()
	}
	a.setRecovering()
	for _, record := range a.claims {
		claim := record.claim(r.pods, r.aligned)
		a.addFacts(&claim)
		view.Claims = append(view.Claims, claim)
	}
	slices.SortFunc(view.Claims, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Severity().Rank(), b.Severity().Rank()), compareClaims(a, b))
	})
	for i := range view.Claims {
		a.addHolder(&view.Claims[i])
	}
	view.Devices = a.nested()
	view.nameParents()
	slices.SortFunc(view.Totals, compareTotals)
	return view
}

// setRecovering marks the devices that are recovering: those that had a fatal Xid,
// and their partitions, which were unhealthy with them.
func (a assembler) setRecovering() {
	for _, device := range a.devices {
		device.Health.Recovering = device.Health.recovery(a.at)
	}
	for _, device := range a.devices {
		parent := a.devices[device.ParentUUID]
		if device.ParentUUID == "" || parent == nil || parent == device || device.Health.Severity() <= Recovering {
			continue
		}
		if of := parent.Health.Recovering; of != nil && !of.Whole {
			device.Health.Recovering = &Recovery{XID: of.XID, Meaning: of.Meaning, Last: of.Last, Whole: true}
		}
	}
}

func compareClaims(a, b Claim) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// claim returns the claim with its devices and consumers sorted, and the workloads
// and the topology of the consumers' pods.
func (c *claimRecord) claim(workloads map[podKey]*PodWorkload, aligned map[podKey][]Alignment) Claim {
	claim := c.Claim
	claim.Devices, claim.Consumers = []ClaimDevice{}, []Consumer{}
	for _, device := range c.devices {
		slices.SortFunc(device.Accounts, func(a, b Account) int { return cmp.Compare(a.Attribution, b.Attribution) })
		device.setAttribution()
		claim.Held = claim.Held || device.Held
		claim.Devices = append(claim.Devices, *device)
	}
	slices.SortFunc(claim.Devices, func(a, b ClaimDevice) int {
		return cmp.Or(natural(a.name(), b.name()), cmp.Compare(a.UUID, b.UUID))
	})
	for _, consumer := range c.consumers {
		slices.Sort(consumer.UUIDs)
		pod := podKey{claim.Namespace, consumer.Pod}
		consumer.Workload, consumer.Topology = workloads[pod], aligned[pod]
		claim.Consumers = append(claim.Consumers, consumer.Consumer)
	}
	slices.SortFunc(claim.Consumers, compareConsumers)
	return claim
}

func compareConsumers(a, b Consumer) int {
	return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.PodUID, b.PodUID), cmp.Compare(a.Container, b.Container))
}

// addFacts adds the health and the prices of the claim's devices, and the use by its
// pods and by unattributed processes of those that it holds.
func (a assembler) addFacts(claim *Claim) {
	for i := range claim.Devices {
		to := &claim.Devices[i]
		of := a.devices[to.UUID]
		if of == nil {
			continue
		}
		to.ParentUUID, to.Model, to.Profile = of.ParentUUID, of.Model, of.Profile
		to.Health = of.Health.known()
		if parent := a.devices[of.ParentUUID]; of.ParentUUID != "" && parent != nil {
			to.ParentHealth = parent.Health.known()
		}
		if !to.Held {
			continue
		}
		to.Price, to.Unattributed = of.priceFor(classOf(claim, *to)), of.unattributed.known()
		for _, pod := range a.podsOf(claim, to.UUID) {
			if use := of.use(pod.Namespace, pod.Name); use != nil {
				to.Pods = append(to.Pods, PodUse{pod.Name, *use})
			}
		}
	}
}

// addHolder adds the claim to the holders of its devices. A device that only claims
// name has no hardware.
func (a assembler) addHolder(claim *Claim) {
	for _, held := range claim.Devices {
		if !held.Held {
			continue
		}
		device := a.devices[held.UUID]
		if device == nil {
			device = &deviceRecord{Device: Device{UUID: held.UUID}}
			a.devices[held.UUID] = device
		}
		if device.Published.Device == "" && len(held.Allocations) > 0 {
			first := held.Allocations[0]
			device.Published = DeviceName{first.Driver, first.Pool, first.Device}
		}
		device.Holders = append(device.Holders, Holder{
			Kind: ByClaim, Namespace: claim.Namespace, Claim: claim.Name, Class: classOf(claim, held),
			Attribution: held.UseAttribution(), Use: held.use(), IdleSince: held.IdleSince, Pods: a.podsOf(claim, held.UUID),
		})
	}
}

// severalClasses is the class in rows if there are several.
const severalClasses = "multiple"

// classOf returns the class by which the claim was allocated this device, else
// the claim's.
func classOf(claim *Claim, held ClaimDevice) string {
	class := ""
	for _, allocation := range held.Allocations {
		switch {
		case allocation.Class == "" || allocation.Class == class:
		case class == "":
			class = allocation.Class
		default:
			return severalClasses
		}
	}
	return cmp.Or(class, claim.Class)
}

// podsOf returns the claim's pods that may use a device now; each of several with
// its use, where that is known.
func (a assembler) podsOf(claim *Claim, uuid string) []Pod {
	var pods []Pod
	for _, consumer := range a.presentOn(claim, uuid) {
		if last := len(pods) - 1; last >= 0 && pods[last].Name == consumer.Pod {
			pods[last].Containers = append(pods[last].Containers, consumer.Container)
			continue
		}
		pods = append(pods, Pod{Namespace: claim.Namespace, Name: consumer.Pod, Containers: []string{consumer.Container}})
	}
	if device := a.devices[uuid]; device != nil && len(pods) > 1 {
		for i := range pods {
			pods[i].Use = device.use(pods[i].Namespace, pods[i].Name)
		}
	}
	return pods
}

// presentOn returns the consumers of a claim that may use a device now, by pod.
func (a assembler) presentOn(claim *Claim, uuid string) []Consumer {
	var present []Consumer
	for _, consumer := range a.claims[claimKey{claim.Namespace, claim.Name}].consumers {
		if slices.Contains(consumer.present, uuid) {
			present = append(present, consumer.Consumer)
		}
	}
	slices.SortFunc(present, compareConsumers)
	return present
}

// nested sorts the devices and moves partitions into their parents. A partition
// without a known parent is a device of its own.
func (a assembler) nested() []Device {
	var whole, partitions []Device
	for _, device := range a.devices {
		for _, holder := range device.plugins {
			holder.Use = device.use(holder.Namespace, holder.Pods[0].Name)
			device.Holders = append(device.Holders, holder)
		}
		device.Unattributed, device.Prices = device.unattributed.known(), device.distinctPrices()
		if parent := a.devices[device.ParentUUID]; device.ParentUUID != "" && parent != nil && parent.ParentUUID == "" {
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

// compareDevices puts unhealthy devices first, hardware before unmatched devices,
// published devices before others, then sorts by the published name and the PCI
// address.
func compareDevices(a, b Device) int {
	x, y := a.name(), b.name()
	return cmp.Or(cmp.Compare(a.Severity().Rank(), b.Severity().Rank()), first(a.Matched, b.Matched), first(x.Device != "", y.Device != ""),
		cmp.Compare(x.Driver, y.Driver), natural(x.Device, y.Device),
		cmp.Compare(a.PCIBusID, b.PCIBusID), cmp.Compare(a.UUID, b.UUID))
}

func compareTotals(a, b Totals) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Model, b.Model))
}
