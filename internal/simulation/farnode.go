package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/internal/simulation/apiserver"
)

// farNode is a node of which there is only what the API server shows: its
// devices, and how its pods fare.
const farNode = "gpu-node-2"

// fabricDriver publishes FPGAs that are attached to a node over a fabric, once
// they are allocated to a claim: in fabricPool, and in another pool of which
// half is missing.
const (
	fabricDriver = "fpga.example.com"
	fabricPool   = "rack-1"
	brokenPool   = "rack-2"

	conditionAttached     = fabricDriver + "/attached"
	conditionAttachFailed = fabricDriver + "/attach-failed"
)

// pcieRoot is the attribute by which a claim asks for devices that are near
// each other.
const pcieRoot = "resource.kubernetes.io/pcieRoot"

// farGPUs are the whole GPUs of the far node, by minor number: one of its eight
// is partitioned.
func farGPUs() []int { return []int{0, 1, 2, 3, 5, 6, 7} }

// farParts are the partitions of that one, by the names that its driver gives
// them.
func farParts() map[string]resourcev1.Device {
	parts := make(map[string]resourcev1.Device)
	for _, p := range []struct{ name, profile, memory string }{
		{"gpu-4-mig-1g18gb-19-0", "1g.18gb", "17920Mi"}, {"gpu-4-mig-1g18gb-19-1", "1g.18gb", "17920Mi"},
		{"gpu-4-mig-2g35gb-14-2", "2g.35gb", "35840Mi"}, {"gpu-4-mig-3g71gb-9-4", "3g.71gb", "71680Mi"},
	} {
		device := farDevice(p.name, "mig", 4, p.memory)
		device.Attributes["profile"] = text(p.profile)
		parts[p.name] = device
	}
	return parts
}

const (
	farNIC  = "pci-0000-5d-00-0" // near gpu-3
	farFPGA = "fpga-0"
)

// farDevices are the names of all devices that pods of the far node can have.
func farDevices() []string {
	names := []string{farNIC, farFPGA}
	for _, minor := range farGPUs() {
		names = append(names, gpuName(minor))
	}
	for name := range farParts() {
		names = append(names, name)
	}
	return names
}

// farStanding are the far node and all that is published beside the agent's
// node.
func farStanding(random *rand.Rand) []apiserver.Object {
	node := newNode(farNode, "h200-8x141", random)
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: farNode, UID: node.UID, Controller: new(true)}
	objects := []apiserver.Object{node}
	for _, slice := range farSlices() {
		of := slice.Spec.Driver + "-" + slice.Spec.Pool.Name
		slice.ObjectMeta = metav1.ObjectMeta{
			Name: fmt.Sprintf("00000-%s-%s", of, suffix(random)), GenerateName: fmt.Sprintf("00000-%s-", of),
			UID: newUID(random), Generation: 1,
		}
		if slice.Spec.NodeName != nil {
			slice.OwnerReferences = []metav1.OwnerReference{owner}
		}
		objects = append(objects, slice)
	}
	return objects
}

func farSlices() []*resourcev1.ResourceSlice {
	whole := make([]resourcev1.Device, 0, len(farGPUs()))
	for _, minor := range farGPUs() {
		whole = append(whole, farDevice(gpuName(minor), "gpu", minor, "141Gi"))
	}
	parts := farParts()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		whole = append(whole, parts[name])
	}
	nic := resourcev1.Device{Name: farNIC, Attributes: attributes{
		"dra.net/pciAddress": text("0000:5d:00.0"), "dra.net/rdmaDevice": text("mlx5_0"), "dra.net/rdma": {BoolValue: new(true)},
		pcieRoot: text(rootOf(3)),
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
		slice(driver, farNode, whole...), slice(networkDriver, farNode, nic), slice(fabricDriver, fabricPool, fpga(farFPGA, "U55C")), half,
	}
}

// farDevice is a GPU of the far node, or a partition of one.
func farDevice(name, kind string, minor int, memory string) resourcev1.Device {
	return resourcev1.Device{
		Name: name,
		Attributes: attributes{
			"type": text(kind), "productName": text("NVIDIA H200"), "architecture": text("Hopper"),
			"uuid": text(fmt.Sprintf("GPU-f0a7c5ea-6bf4-4d12-8c7f-%012d", len(name)*100+minor)), "driverVersion": version("580.95.5"), pcieRoot: text(rootOf(minor)),
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}},
	}
}

// rootOf is where a GPU of the far node sits on the PCI bus.
func rootOf(minor int) string {
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

// taintRule keeps claims from a device, and evicts pods that have it already
// if it is to do so.
func taintRule(name, node, device string, effect resourcev1.DeviceTaintEffect) *resourcev1.DeviceTaintRule {
	return &resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: new(driver), Pool: new(node), Device: new(device)},
			Taint:          resourcev1.DeviceTaint{Key: "example.com/" + name, Effect: effect},
		},
	}
}

// evict is what the device taint eviction controller writes on a pod before it
// deletes it.
func evict(pod *corev1.Pod, at metav1.Time) {
	tell(pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: at,
		Reason: "DeletionByDeviceTaintManager", Message: "Device Taint manager: deleting due to NoExecute taint",
	})
	pod.DeletionTimestamp = &at
}
