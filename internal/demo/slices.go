package demo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// driver is the DRA driver of the node's GPUs, networkDriver that of its
// adapters.
const (
	driver        = "gpu.nvidia.com"
	networkDriver = "dra.net"
)

// gpuMemory is the capacity of a whole GPU as its driver publishes it.
const gpuMemory = "80Gi"

// attributes of a published device, by name.
type attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute

// resourceSlices returns the slices of the drivers: of GPUs one slice of
// devices, in no particular order, and one of the counters that partitions draw
// on, because the API keeps the two apart; of adapters, TPU chips and Intel GPUs one
// slice each. Pools are named after the node.
func (h hardware) resourceSlices(node string, owner metav1.OwnerReference, random *rand.Rand) []*resourcev1.ResourceSlice {
	devices := h.publishedDevices()
	random.Shuffle(len(devices), func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
	published := []*resourcev1.ResourceSlice{
		{Spec: resourcev1.ResourceSliceSpec{Driver: driver, Devices: devices}},
	}
	if h.partitioned(minorOnDemand) {
		published = append(published, &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: driver, SharedCounters: []resourcev1.CounterSet{gpuCounters(minorOnDemand)}}})
	}
	gpuSlices := int64(len(published))
	for _, other := range []resourcev1.ResourceSliceSpec{
		{Driver: networkDriver, Devices: h.publishedAdapters()},
		{Driver: tpuDriver, Devices: h.publishedAccelerators(tpuDriver)},
		{Driver: intelDriver, Devices: h.publishedAccelerators(intelDriver)},
	} {
		if len(other.Devices) > 0 {
			published = append(published, &resourcev1.ResourceSlice{Spec: other})
		}
	}
	for _, slice := range published {
		name := slice.Spec.Driver
		slice.ObjectMeta = metav1.ObjectMeta{
			Name: fmt.Sprintf("00000-%s-%s-%s", name, node, suffix(random)), GenerateName: fmt.Sprintf("00000-%s-%s-", name, node),
			UID: newUID(random), Generation: 1, OwnerReferences: []metav1.OwnerReference{owner},
		}
		slice.Spec.NodeName, slice.Spec.Pool = &node, resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}
		if name == driver {
			slice.Spec.Pool.ResourceSliceCount = gpuSlices
		}
	}
	return published
}

// publishedAdapters are distinguished by their address: they have no UUID.
func (h hardware) publishedAdapters() []resourcev1.Device {
	var devices []resourcev1.Device
	for i, nic := range h.nics {
		devices = append(devices, resourcev1.Device{Name: nicName(nic), Attributes: attributes{
			"dra.net/pciAddress": text(nic.PCIBusID),
			"dra.net/rdmaDevice": text(fmt.Sprintf("mlx5_%d", i)),
			"dra.net/ifName":     text(fmt.Sprintf("ib%d", i)),
			"dra.net/rdma":       {BoolValue: new(true)},
			pcieRoot:             text("pci" + nic.PCIBusID[:len("0000:00")]),
			numaNode:             numaAttribute(nic.PCIBusID),
		}})
	}
	return devices
}

// publishedDevices are whole GPUs, the partitions of those that are
// partitioned for good, and all partitions that could be cut of those that
// are partitioned on demand.
func (h hardware) publishedDevices() []resourcev1.Device {
	var devices []resourcev1.Device
	for _, gpu := range h.gpus {
		switch {
		case gpu.Minor == minorOnDemand && h.partitioned(gpu.Minor):
			devices = append(devices, possiblePartitions(gpu)...)
		case !h.partitioned(gpu.Minor):
			devices = append(devices, wholeGPU(gpu, gpu.Minor == h.shareable))
		}
	}
	for _, p := range h.migDevices {
		if p.parent != minorOnDemand {
			devices = append(devices, existingPartition(p))
		}
	}
	return devices
}

func wholeGPU(gpu device.Device, shareable bool) resourcev1.Device {
	published := resourcev1.Device{
		Name:       gpuName(gpu.Minor),
		Attributes: commonAttributes(gpu, "gpu"),
		Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(gpuMemory)}},
	}
	published.Attributes["uuid"] = text(gpu.UUID)
	if shareable {
		several, least, step := true, resource.MustParse("1Gi"), resource.MustParse("1Gi")
		whole := resource.MustParse(gpuMemory)
		published.AllowMultipleAllocations = &several
		published.Capacity["memory"] = resourcev1.DeviceCapacity{Value: whole, RequestPolicy: &resourcev1.CapacityRequestPolicy{
			Default: &whole, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: &least, Max: &whole, Step: &step},
		}}
	}
	return published
}

// existingPartition returns a partition that exists, with its UUID as
// attribute.
func existingPartition(p migDevice) resourcev1.Device {
	published := partition(p.Device, p.ParentUUID, p.parent, p.Profile, p.Placement)
	published.Attributes["uuid"] = text(p.UUID)
	return published
}

// possiblePartitions have no UUID until they are cut, and none after that
// either: the driver does not publish them again.
func possiblePartitions(gpu device.Device) []resourcev1.Device {
	var devices []resourcev1.Device
	shapes := profiles()
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		for _, placement := range shapes[name].placements {
			possible := partition(gpu, gpu.UUID, gpu.Minor, name, placement)
			possible.ConsumesCounters = []resourcev1.DeviceCounterConsumption{
				{CounterSet: counterSet(gpu.Minor), Counters: drawn(shapes[name], placement)},
			}
			devices = append(devices, possible)
		}
	}
	return devices
}

func partition(like device.Device, parentUUID string, parent int, name string, placement int) resourcev1.Device {
	shape := profiles()[name]
	published := resourcev1.Device{
		Name:       partitionName(parent, name, placement),
		Attributes: commonAttributes(like, "mig"),
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			"memory":          {Value: resource.MustParse(shape.memory)},
			"multiprocessors": {Value: *resource.NewQuantity(int64(shape.multiprocs), resource.DecimalSI)},
		},
	}
	published.Attributes["parentUUID"] = text(parentUUID)
	published.Attributes["profile"] = text(name)
	return published
}

func commonAttributes(d device.Device, kind string) attributes {
	return attributes{
		"type":                            text(kind),
		"productName":                     text(d.Model),
		"brand":                           text("Nvidia"),
		"architecture":                    text("Hopper"),
		"cudaComputeCapability":           version("9.0.0"),
		"cudaDriverVersion":               version("13.0.0"),
		"driverVersion":                   version(semantic(d.DriverVersion)),
		"resource.kubernetes.io/pciBusID": text(d.PCIBusID),
		pcieRoot:                          text("pci" + d.PCIBusID[:len("0000:00")]),
		numaNode:                          numaAttribute(d.PCIBusID),
	}
}

func text(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{StringValue: &value}
}

func version(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{VersionValue: &value}
}

// semantic converts a driver's version to as a semantic version, in which
// numbers have no leading zeros: 580.95.05 is published as 580.95.5.
func semantic(version string) string {
	numbers := strings.Split(version, ".")
	for i, number := range numbers {
		if n, err := strconv.Atoi(number); err == nil {
			numbers[i] = strconv.Itoa(n)
		}
	}
	return strings.Join(numbers, ".")
}

func counterSet(minor int) string { return fmt.Sprintf("gpu-%d-counter-set", minor) }

func memorySlice(n int) string { return fmt.Sprintf("memory-slice-%d", n) }

// gpuCounters returns the counters that the partitions of a GPU consume.
func gpuCounters(minor int) resourcev1.CounterSet {
	counters := map[string]resourcev1.Counter{
		"memory": {Value: resource.MustParse(gpuMemory)}, "multiprocessors": {Value: resource.MustParse("132")},
	}
	for n := range 8 {
		counters[memorySlice(n)] = resourcev1.Counter{Value: resource.MustParse("1")}
	}
	return resourcev1.CounterSet{Name: counterSet(minor), Counters: counters}
}

// drawn returns what a partition at a placement consumes of them.
func drawn(shape profile, placement int) map[string]resourcev1.Counter {
	counters := map[string]resourcev1.Counter{
		"memory":          {Value: resource.MustParse(shape.memory)},
		"multiprocessors": {Value: *resource.NewQuantity(int64(shape.multiprocs), resource.DecimalSI)},
	}
	for n := range shape.memorySlices {
		counters[memorySlice(placement+n)] = resourcev1.Counter{Value: resource.MustParse("1")}
	}
	return counters
}

// pcieRoot is the attribute by which a claim requests devices with a common
// PCIe root.
const pcieRoot = "resource.kubernetes.io/pcieRoot"

// numaNode is the attribute that says which NUMA node a device is next to.
const numaNode = "resource.kubernetes.io/numaNode"

// numaAttribute returns the NUMA node of an address: the upper half of the buses are
// those of the second processor.
func numaAttribute(address string) resourcev1.DeviceAttribute {
	if address[len("0000:"):] >= "80" {
		return resourcev1.DeviceAttribute{IntValue: new(int64(1))}
	}
	return resourcev1.DeviceAttribute{IntValue: new(int64(0))}
}

// remotePartitions are the partitions of that one, by the names that its driver gives
// them.
func remotePartitions() map[string]resourcev1.Device {
	parts := make(map[string]resourcev1.Device)
	for _, p := range []struct{ name, profile, memory string }{
		{"gpu-4-mig-1g18gb-19-0", "1g.18gb", "17920Mi"}, {"gpu-4-mig-1g18gb-19-1", "1g.18gb", "17920Mi"},
		{"gpu-4-mig-2g35gb-14-2", "2g.35gb", "35840Mi"}, {"gpu-4-mig-3g71gb-9-4", "3g.71gb", "71680Mi"},
	} {
		device := remoteDevice(p.name, "mig", 4, p.memory)
		device.Attributes["profile"] = text(p.profile)
		parts[p.name] = device
	}
	return parts
}

func remoteSlices() []*resourcev1.ResourceSlice {
	whole := make([]resourcev1.Device, 0, len(remoteGPUs()))
	for _, minor := range remoteGPUs() {
		whole = append(whole, remoteDevice(gpuName(minor), "gpu", minor, "141Gi"))
	}
	parts := remotePartitions()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		whole = append(whole, parts[name])
	}
	nic := resourcev1.Device{Name: remoteNIC, Attributes: attributes{
		"dra.net/pciAddress": text("0000:5d:00.0"), "dra.net/rdmaDevice": text("mlx5_0"), "dra.net/rdma": {BoolValue: new(true)},
		pcieRoot: text(pcieRootName(3)),
	}}
	slice := func(driver, pool string, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
		made := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, Devices: devices, Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
		}}
		if driver == fabricDriver {
			made.Spec.AllNodes = new(true)
		} else {
			made.Spec.NodeName = new(pool)
		}
		return made
	}
	half := slice(fabricDriver, brokenPool, fpga("fpga-0", "V80"), fpga("fpga-1", "V80"))
	half.Spec.Pool.ResourceSliceCount = 2
	return []*resourcev1.ResourceSlice{
		slice(driver, remoteNode, whole...), slice(networkDriver, remoteNode, nic), slice(fabricDriver, fabricPool, fpga(remoteFPGA, "U55C")), half,
	}
}

// remoteDevice is a GPU of the remote node, or a partition of one.
func remoteDevice(name, kind string, minor int, memory string) resourcev1.Device {
	return resourcev1.Device{
		Name: name,
		Attributes: attributes{
			"type": text(kind), "productName": text("NVIDIA H200"), "architecture": text("Hopper"),
			"uuid": text(fmt.Sprintf("GPU-f0a7c5ea-6bf4-4d12-8c7f-%012d", len(name)*100+minor)), "driverVersion": version("580.95.5"), pcieRoot: text(pcieRootName(minor)),
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}},
	}
}

// pcieRootName is where a GPU of the remote node sits on the PCI bus.
func pcieRootName(minor int) string {
	return "pci0000:" + []string{"1b", "3d", "52", "5d", "9d", "b1", "c3", "d1"}[minor]
}

// fpga is attached to a node once it is allocated, and a pod is bound to the
// node only when it is.
func fpga(name, model string) resourcev1.Device {
	return resourcev1.Device{
		Name: name, Attributes: attributes{"model": text(model)}, BindsToNode: new(true),
		BindingConditions: []string{conditionAttached}, BindingFailureConditions: []string{conditionAttachFailed},
	}
}
