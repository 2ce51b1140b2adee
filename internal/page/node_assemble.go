package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// assembler makes a view of what a node knows.
type assembler struct {
	at      time.Time
	devices map[string]*deviceRecord
	claims  map[dra.ClaimRef]*claimRecord
	uses    map[usedByPod]*Use // of devices that several pods use; nil: unknown
}

// usedByPod is what a pod uses of a device.
type usedByPod struct {
	pod  dra.PodRef
	uuid string
}

// newView returns the view of a node at a time, empty if nothing is known of it: sources
// and claims sorted, devices with their holders, partitions within their parents.
func newView(n *model.Node, at time.Time) View {
	view := View{At: at}
	if n == nil {
		return view
	}
	view.Node, view.Version, view.SampledAt = n.Name, n.Version, inMilliseconds(n.SampledAt)
	view.ProcessAttribution, view.Released, view.Sources = n.ProcessAttribution, n.Access.Released, newSources(n.Sources, at)
	view.Totals, view.CountedSince = newTotals(n)
	a := newAssembler(n, at)
	a.setRecovering()
	workloads, alignments := newWorkloads(n), newPodAlignments(n.PodAlignments)
	for _, record := range a.claims {
		claim := record.claim(workloads, alignments)
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
	return view
}

func newAssembler(n *model.Node, at time.Time) assembler {
	a := assembler{at: at, devices: map[string]*deviceRecord{}, claims: map[dra.ClaimRef]*claimRecord{}, uses: map[usedByPod]*Use{}}
	for i := range n.Devices {
		a.devices[n.Devices[i].UUID] = newDeviceRecord(&n.Devices[i], n.Currency)
	}
	for i := range n.Pods {
		pod := &n.Pods[i]
		a.uses[usedByPod{pod.Pod, pod.UUID}] = Use{useValue(pod.Utilization), useValue(pod.Memory)}.known()
	}
	for i := range n.Plugins {
		a.device(n.Plugins[i].UUID).addPlugin(&n.Plugins[i])
	}
	for _, claim := range n.Claims {
		a.claim(claim.Ref).add(claim)
	}
	for i := range n.Holds {
		hold := &n.Holds[i]
		a.claim(hold.Claim).addHold(hold)
		if hold.Bundled > 0 {
			a.device(hold.UUID).Bundled = hold.Bundled
		}
	}
	for _, alignment := range n.ClaimAlignments {
		claim := a.claim(alignment.Claim)
		claim.Topology = append(claim.Topology, newAlignment(alignment.Alignment))
	}
	return a
}

// device returns the record of a device, a new one if there is none: it has no hardware.
func (a assembler) device(uuid string) *deviceRecord {
	return find(a.devices, uuid, deviceRecord{Device: Device{UUID: uuid}})
}

// claim returns the record of a claim, a new one if there is none.
func (a assembler) claim(ref dra.ClaimRef) *claimRecord {
	record := a.claims[ref]
	if record == nil {
		record = &claimRecord{Claim: Claim{Namespace: ref.Namespace, Name: ref.Name}, devices: map[string]*ClaimDevice{}}
		a.claims[ref] = record
	}
	return record
}

// use returns the use of a device by a pod; nil: unknown.
func (a assembler) use(uuid, namespace, pod string) *Use {
	return a.uses[usedByPod{dra.PodRef{Namespace: namespace, Name: pod}, uuid}]
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
		if recovery := parent.Health.Recovering; recovery != nil && !recovery.Whole {
			device.Health.Recovering = &Recovery{XID: recovery.XID, Meaning: recovery.Meaning, Last: recovery.Last, Whole: true}
		}
	}
}

func compareClaims(a, b Claim) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// claim returns the claim with its devices and consumers sorted, and the workloads
// and the topology of the consumers' pods.
func (c *claimRecord) claim(workloads map[dra.PodRef]*PodWorkload, alignments map[dra.PodRef][]Alignment) Claim {
	claim := c.Claim
	claim.Devices, claim.Consumers = []ClaimDevice{}, []Consumer{}
	for _, device := range c.devices {
		device.setAttribution()
		claim.Held = claim.Held || device.Held
		claim.Devices = append(claim.Devices, *device)
	}
	slices.SortFunc(claim.Devices, func(a, b ClaimDevice) int {
		return cmp.Or(natural(a.name(), b.name()), cmp.Compare(a.UUID, b.UUID))
	})
	for _, consumer := range c.consumers {
		slices.Sort(consumer.UUIDs)
		pod := dra.PodRef{Namespace: claim.Namespace, Name: consumer.Pod}
		consumer.Workload, consumer.Topology = workloads[pod], alignments[pod]
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
		d := &claim.Devices[i]
		record := a.devices[d.UUID]
		if record == nil {
			continue
		}
		d.ParentUUID, d.Model, d.Profile = record.ParentUUID, record.Model, record.Profile
		d.Health = record.Health.known()
		if parent := a.devices[record.ParentUUID]; record.ParentUUID != "" && parent != nil {
			d.ParentHealth = parent.Health.known()
		}
		if !d.Held {
			continue
		}
		d.Price, d.Unattributed = record.priceFor(heldClass(claim, *d)), record.Unattributed
		for _, pod := range a.listPods(claim, d.UUID) {
			if use := a.use(d.UUID, pod.Namespace, pod.Name); use != nil {
				d.Pods = append(d.Pods, PodUse{pod.Name, *use})
			}
		}
	}
}

// addHolder adds the claim to the holders of its devices.
func (a assembler) addHolder(claim *Claim) {
	for _, held := range claim.Devices {
		if !held.Held {
			continue
		}
		device := a.device(held.UUID)
		if device.Published.Device == "" && len(held.Allocations) > 0 {
			first := held.Allocations[0]
			device.Published = DeviceName{first.Driver, first.Pool, first.Device}
		}
		device.Holders = append(device.Holders, Holder{
			Kind: ByClaim, Namespace: claim.Namespace, Claim: claim.Name, Class: heldClass(claim, held),
			Attribution: held.UseAttribution(), Use: held.use(), IdleSince: held.IdleSince, Pods: a.listPods(claim, held.UUID),
		})
	}
}

// severalClasses is the class of a claim if there are several.
const severalClasses = "multiple"

// heldClass returns the class by which the claim was allocated this device, else
// the claim's.
func heldClass(claim *Claim, held ClaimDevice) string {
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

// listPods returns the claim's pods that may use a device now; each of several with
// its use, where that is known.
func (a assembler) listPods(claim *Claim, uuid string) []Pod {
	var pods []Pod
	for _, consumer := range a.presentOn(claim, uuid) {
		if last := len(pods) - 1; last >= 0 && pods[last].Name == consumer.Pod {
			pods[last].Containers = append(pods[last].Containers, consumer.Container)
			continue
		}
		pods = append(pods, Pod{Namespace: claim.Namespace, Name: consumer.Pod, Containers: []string{consumer.Container}})
	}
	if len(pods) > 1 {
		for i := range pods {
			pods[i].Use = a.use(uuid, pods[i].Namespace, pods[i].Name)
		}
	}
	return pods
}

// presentOn returns the consumers of a claim that may use a device now, by pod.
func (a assembler) presentOn(claim *Claim, uuid string) []Consumer {
	var present []Consumer
	for _, consumer := range a.claims[dra.ClaimRef{Namespace: claim.Namespace, Name: claim.Name}].consumers {
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
			holder.Use = a.use(device.UUID, holder.Namespace, holder.Pods[0].Name)
			device.Holders = append(device.Holders, holder)
		}
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

// find returns the value of a key, a copy of begin if there is none.
func find[K comparable, V any](known map[K]*V, key K, begin V) *V {
	if found := known[key]; found != nil {
		return found
	}
	begun := begin // the address of begin itself would cost an allocation for every call
	known[key] = &begun
	return &begun
}
