package generator

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeName is the name of a node and of its pool.
func NodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// Node is a node whose kubelet reports at once that a sandbox is ready.
func Node(i int) *corev1.Node {
	name := NodeName(i)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), corev1.LabelInstanceTypeStable: "gpu-8",
		}},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.1"}},
	}
}

// Slice is what NVIDIA's driver publishes of the node's GPUs.
func Slice(i int) *resourcev1.ResourceSlice {
	name := NodeName(i)
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-2qjsh", name, driver)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for d := range DevicesPerNode {
		slice.Spec.Devices = append(slice.Spec.Devices, gpu(i, d))
	}
	return slice
}

func gpu(node, index int) resourcev1.Device {
	text := func(v string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &v} }
	version := func(v string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{VersionValue: &v} }
	minor := int64(index)
	return resourcev1.Device{
		Name: deviceName(index),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": text("gpu"), "brand": text("Nvidia"), "architecture": text("Hopper"), "minor": {IntValue: &minor},
			"productName":           text([]string{"NVIDIA H100 80GB HBM3", "NVIDIA H200"}[node%2]),
			"uuid":                  text(fmt.Sprintf("GPU-%08x-0a6b-4e0a-bf0b-%012x", node, index)),
			"cudaComputeCapability": version("9.0.0"), "cudaDriverVersion": version("13.0.0"), "driverVersion": version("580.65.6"),
			"resource.kubernetes.io/pciBusID": text(fmt.Sprintf("0000:%02x:00.0", 0x19+16*index)),
			"resource.kubernetes.io/pcieRoot": text(fmt.Sprintf("pci0000:%02x", 0x15+16*index)),
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("81559Mi")}},
	}
}

func deviceName(index int) string { return fmt.Sprintf("gpu-%d", index) }

// NewClaim is a claim that is not allocated. Specification 0 asks for one GPU;
// each other asks for what a cluster does not have, in one of five ways.
func NewClaim(of metav1.ObjectMeta, specification int) *resourcev1.ResourceClaim {
	ask := &resourcev1.ExactDeviceRequest{DeviceClassName: className, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
	claim := &resourcev1.ResourceClaim{ObjectMeta: of}
	if specification > 0 {
		product := fmt.Sprintf(`device.attributes["gpu.nvidia.com"].productName.startsWith("NVIDIA H") && device.attributes["gpu.nvidia.com"].minor < %d`, 100+specification)
		switch specification % 5 {
		case 0: // fragmented: no node has so many
			ask.Count = DevicesPerNode + 1
		case 1: // constraints: no two devices have one UUID
			ask.Count = 2
			claim.Spec.Devices.Constraints = sameAttribute("gpu.nvidia.com/uuid")
		case 2: // no device is like that
			product = fmt.Sprintf(`device.attributes["gpu.nvidia.com"].productName == "NVIDIA B%d00"`, specification)
		case 3: // constraints: each device has a root of its own
			ask.Count = 3
			claim.Spec.Devices.Constraints = sameAttribute("resource.kubernetes.io/pcieRoot")
		default: // fragmented, and four nodes would not have so many
			ask.Count = resourcev1.AllocationResultsMaxSize
		}
		ask.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: product}}}
	}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: ask}}
	return claim
}

func sameAttribute(name string) []resourcev1.DeviceConstraint {
	attribute := resourcev1.FullyQualifiedName(name)
	return []resourcev1.DeviceConstraint{{MatchAttribute: &attribute}}
}

// Allocate gives a claim a device, counted over all nodes, and reserves it for
// a pod, in one change as the scheduler does.
func Allocate(claim *resourcev1.ResourceClaim, device int, pod *corev1.Pod) {
	node := NodeName(device / DevicesPerNode)
	claim.Finalizers = []string{resourcev1.Finalizer}
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
			Request: "gpu", Driver: driver, Pool: node, Device: deviceName(device % DevicesPerNode),
		}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}}},
	}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
}

// Release takes the device and the reservation away.
func Release(claim *resourcev1.ResourceClaim) {
	claim.Finalizers, claim.Status = nil, resourcev1.ResourceClaimStatus{}
}

// NewPod is a pod of one container.
func NewPod(of metav1.ObjectMeta) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: of,
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/train:v1", Command: []string{"train", "--all"},
				Env: []corev1.EnvVar{{Name: "RANK", Value: "0"}, {Name: "WORLD_SIZE", Value: "8"}},
			}},
			SchedulerName: corev1.DefaultSchedulerName, RestartPolicy: corev1.RestartPolicyNever,
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// Claiming has the pod use claims by their names.
func Claiming(pod *corev1.Pod, claims ...string) {
	for i := range claims {
		own := fmt.Sprintf("gpu%d", i)
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: own, ResourceClaimName: &claims[i]})
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: own})
	}
}

// Bind is what the scheduler does last.
func Bind(pod *corev1.Pod, node int, at time.Time) {
	pod.Spec.NodeName = NodeName(node)
	setCondition(pod, corev1.PodScheduled, at)
}

// Prepare is what the kubelet reports when the sandbox is ready.
func Prepare(pod *corev1.Pod, at time.Time) {
	setCondition(pod, corev1.PodReadyToStartContainers, at)
}

// Run is what the kubelet reports when the container has started.
func Run(pod *corev1.Pod, at time.Time) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Image: "registry.example/train:v1", ImageID: "registry.example/train@sha256:0123456789abcdef", Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at.Truncate(time.Second))}},
	}}
	setCondition(pod, corev1.ContainersReady, at)
	setCondition(pod, corev1.PodReady, at)
}

// setCondition makes a condition of the pod true.
func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, at time.Time) {
	now := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at.Truncate(time.Second))}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			pod.Status.Conditions[i] = now
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, now)
}
