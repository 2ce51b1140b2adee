package dcgm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// instance is one instance of a GPU in a host engine's MIG hierarchy: an
// entry of dcgmMigHierarchy_v2.
type instance struct {
	entity entity
	parent entity // a GPU, or a GPU instance
	gi, ci int    // NVIDIA's ids; ci is Unknown of a GPU instance
	slices uint   // of its profile
}

// identity is what a host engine reports to identify a GPU or an instance.
type identity struct {
	name, uuid, pci, driver string
	minor                   int
	hardware                device.Hardware
}

// watchedDevice is a device with the entities that have its values.
type watchedDevice struct {
	device   device.Device
	whole    entity   // set for a whole GPU
	instance entity   // set for a MIG device that is the only one in its GPU instance
	compute  entity   // set for a MIG device that is a part of its GPU instance
	all      []entity // whose XIDs are the device's
}

// entityFor returns the entity that has the values of a row of that level;
// false if there is none.
func (t *watchedDevice) entityFor(level entityKind) (entity, bool) {
	switch {
	case level == wholeGPU:
		return t.whole, t.whole.kind != 0
	case level == computeInstance && t.compute.kind != 0:
		return t.compute, true
	default:
		return t.instance, t.instance.kind != 0
	}
}

// watchPlan is the set of devices behind a host engine and the entities that are
// watched for them.
type watchPlan struct {
	targets      []watchedDevice
	gpus         []entity // queried for the fields of whole GPUs
	partitions   []entity // queried for those of MIG devices
	instances    []entity // all instances: each may have XIDs
	locations    map[entity]string
	models       map[entity]string // the models of their GPUs
	unidentified []entity          // GPUs that have never reported a UUID
}

// makePlan returns the plan for the GPUs, each followed by its MIG devices in
// the order of their ids. A GPU that has never reported its UUID is
// unidentified. It is left out with its instances, because it could not be
// recognized later.
func makePlan(gpus []uint, hierarchy []instance, identities map[entity]identity) watchPlan {
	p := watchPlan{locations: make(map[entity]string), models: make(map[entity]string)}
	for _, id := range gpus {
		gpu := entity{wholeGPU, id}
		known := identities[gpu]
		if !isGPU(known.uuid) {
			p.unidentified = append(p.unidentified, gpu)
			continue
		}
		d := wholeDevice(known)
		p.gpus, p.locations[gpu], p.models[gpu] = append(p.gpus, gpu), d.UUID, d.Model
		p.targets = append(p.targets, watchedDevice{device: d, whole: gpu, all: []entity{gpu}})
		p.addPartitions(d, gpu, hierarchy, identities)
	}
	return p
}

// addPartitions adds the MIG devices of a GPU: its compute instances.
func (p *watchPlan) addPartitions(parent device.Device, gpu entity, hierarchy []instance, identities map[entity]identity) {
	for _, gi := range findChildren(gpu, hierarchy) {
		p.addInstance(gi, parent)
		parts := findChildren(gi.entity, hierarchy)
		for _, ci := range parts {
			p.addInstance(ci, parent)
			t := watchedDevice{
				device: partitionDevice(parent, gi.gi, ci.ci, identities[ci.entity]),
				all:    []entity{gi.entity, ci.entity},
			}
			alone, covers := len(parts) == 1, ci.slices == gi.slices
			if alone {
				t.instance = gi.entity
				p.partitions = append(p.partitions, gi.entity)
			}
			if !alone || !covers {
				t.compute = ci.entity
				p.partitions = append(p.partitions, ci.entity)
			}
			p.targets = append(p.targets, t)
		}
	}
}

// addInstance records the location and the size of an instance. The id of its
// entity means the same instance only within one MIG configuration.
func (p *watchPlan) addInstance(i instance, gpu device.Device) {
	p.instances = append(p.instances, i.entity)
	p.locations[i.entity] = fmt.Sprintf("%s/%d/%d/%d", gpu.UUID, i.gi, i.ci, i.slices)
	p.models[i.entity] = gpu.Model
}

// err returns an error for each unidentified GPU.
func (p *watchPlan) err() error {
	var errs []error
	for _, gpu := range p.unidentified {
		errs = append(errs, fmt.Errorf("identify GPU %d of the DCGM host engine: it reports no UUID; it may be lost", gpu.id))
	}
	return errors.Join(errs...)
}

// findChildren returns the instances of an entity, in the order of their ids.
func findChildren(parent entity, hierarchy []instance) (children []instance) {
	for _, i := range hierarchy {
		if i.parent == parent {
			children = append(children, i)
		}
	}
	slices.SortFunc(children, func(a, b instance) int { return cmp.Or(cmp.Compare(a.gi, b.gi), cmp.Compare(a.ci, b.ci)) })
	return children
}

func wholeDevice(known identity) device.Device {
	d := device.Device{
		UUID: known.uuid, Vendor: "nvidia", Model: known.name, PCIBusID: device.PCIAddress(known.pci),
		Minor: known.minor, RenderMinor: device.Unknown, Placement: device.Unknown,
		GPUInstance: device.Unknown, ComputeInstance: device.Unknown, DriverVersion: known.driver, Hardware: known.hardware,
	}
	if d.Minor != device.Unknown {
		d.Nodes = []string{fmt.Sprintf("/dev/nvidia%d", d.Minor)}
	}
	return d
}

// partitionDevice returns a MIG device. Since DCGM 2 engines report the UUID
// that the driver gives a compute instance. If one does not, NVIDIA's older
// form of the UUID identifies the device as well. No engine reports its
// placement on the GPU.
func partitionDevice(parent device.Device, gi, ci int, known identity) device.Device {
	d := parent
	d.ParentUUID = parent.UUID
	d.UUID = known.uuid
	if !isMIG(known.uuid) {
		d.UUID = fmt.Sprintf("MIG-%s/%d/%d", parent.UUID, gi, ci)
	}
	d.Minor, d.Nodes, d.Hardware = device.Unknown, nil, device.Hardware{}
	d.Profile, d.GPUInstance, d.ComputeInstance = profile(known.name), gi, ci
	return d
}
