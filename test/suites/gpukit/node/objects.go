package node

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubelet "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

const (
	driver      = "gpu.nvidia.com"
	requestName = "gpu"
	container   = "load"
)

// published is a device with the name that it is published by.
type published struct {
	Device
	name string
}

// publish names devices as NVIDIA's driver does: gpu-0, gpu-1. It names MIG
// devices by their profile and placement, which are not known here: they have
// the ids of their instances.
func publish(devices []Device) []published {
	var all []published
	gpus := -1
	for _, d := range devices {
		if d.ParentUUID == "" {
			gpus++
			all = append(all, published{d, fmt.Sprintf("gpu-%d", gpus)})
			continue
		}
		all = append(all, published{d, fmt.Sprintf("gpu-%d-mig-%d-%d", gpus, d.GPUInstance, d.ComputeInstance)})
	}
	return all
}

func nodeObject() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: Name, UID: "6b1d0000-0000-4000-8000-ffffffffffff"}}
}

// slice publishes all devices. Several claims may have each of them, with
// shares of their own, as with a driver that has consumable capacity.
func slice(devices []published) *resourcev1.ResourceSlice {
	node := Name
	made := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: Name + "-" + driver, UID: "6b1d0000-0000-4000-8000-fffffffffffe", Generation: 1},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: Name, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for _, d := range devices {
		made.Spec.Devices = append(made.Spec.Devices, resourcev1.Device{
			Name: d.name, Attributes: d.attributes(), AllowMultipleAllocations: new(true),
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory": {Value: *resource.NewQuantity(int64(d.MemoryBytes), resource.BinarySI)},
			},
		})
	}
	return made
}

// attributes are those of NVIDIA's driver, as far as they are known.
func (p published) attributes() map[resourcev1.QualifiedName]resourcev1.DeviceAttribute {
	made := make(map[resourcev1.QualifiedName]resourcev1.DeviceAttribute)
	add := func(name resourcev1.QualifiedName, value string) {
		if value != "" {
			made[name] = resourcev1.DeviceAttribute{StringValue: &value}
		}
	}
	add("type", "gpu")
	add("uuid", p.UUID)
	add("productName", p.ProductName)
	if p.ParentUUID != "" {
		add("type", "mig")
		add("parentUUID", p.ParentUUID)
		add("profile", profile(p.ProductName))
	} else {
		add("resource.kubernetes.io/pciBusID", pciBusID(p.PCIBusID))
	}
	if version := semantic(p.DriverVersion); version != "" {
		made["driverVersion"] = resourcev1.DeviceAttribute{VersionValue: &version}
	}
	return made
}

// profile is the part of a MIG device's name after "MIG": 1g.10gb.
func profile(name string) string {
	_, found, _ := strings.Cut(name, " MIG ")
	return found
}

// pciBusID writes an address as the kernel does: 0000:53:00.0.
func pciBusID(address string) string {
	address = strings.ToLower(address)
	if domain, rest, found := strings.Cut(address, ":"); found && len(domain) == 8 {
		return domain[4:] + ":" + rest
	}
	return address
}

// semantic returns a driver's version as a semantic version, which has no
// leading zeros, or "": 580.65.06 is published as 580.65.6.
func semantic(version string) string {
	if !regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`).MatchString(version) {
		return ""
	}
	numbers := append(strings.Split(version, "."), "0")[:3]
	for i, number := range numbers {
		if n, err := strconv.Atoi(number); err == nil {
			numbers[i] = strconv.Itoa(n)
		}
	}
	return strings.Join(numbers, ".")
}

// claim is a claim with the only pod that holds it.
type claim struct {
	name, uid, podUID, container string
	devices                      []published
	shares                       []string // of the devices
}

func (c *claim) podName() string { return c.name + "-pod" }

// claimObject is the claim, allocated and reserved for its pod.
func (c *claim) claimObject(now time.Time) *resourcev1.ResourceClaim {
	made := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: c.name, UID: types.UID(c.uid), CreationTimestamp: metav1.NewTime(now)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: requestName,
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: driver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(len(c.devices)),
			},
		}}}},
	}
	allocated := metav1.NewTime(now)
	made.Status.Allocation = &resourcev1.AllocationResult{AllocationTimestamp: &allocated}
	for i, d := range c.devices {
		made.Status.Allocation.Devices.Results = append(made.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: requestName, Driver: driver, Pool: Name, Device: d.name, ShareID: new(types.UID(c.shares[i])),
		})
	}
	made.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: c.podName(), UID: types.UID(c.podUID)}}
	return made
}

// podObject is the pod, running on the node.
func (c *claim) podObject(now time.Time) *corev1.Pod {
	since := metav1.NewTime(now)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: c.podName(), UID: types.UID(c.podUID), CreationTimestamp: since},
		Spec: corev1.PodSpec{
			NodeName:       Name,
			ResourceClaims: []corev1.PodResourceClaim{{Name: requestName, ResourceClaimName: &c.name}},
			Containers: []corev1.Container{{
				Name: container, Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: requestName}}},
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &since,
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: container, Ready: true, Started: new(true), ContainerID: "containerd://" + c.container,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
			}},
		},
	}
}

// listed is the pod as the kubelet lists it.
func (c *claim) listed() kubelet.Pod {
	of := kubelet.Claim{Name: c.name, Stage: kubelet.Prepared}
	for i, d := range c.devices {
		of.Devices = append(of.Devices, kubelet.Device{
			Request: requestName, Driver: driver, Pool: Name, Name: d.name, ShareID: c.shares[i],
			CDI: []string{"k8s." + driver + "/claim=" + c.uid + "-" + d.name},
		})
	}
	return kubelet.Pod{
		Namespace: Namespace, Name: c.podName(), Claims: []kubelet.Claim{of},
		Containers: []kubelet.Container{{Name: container, Uses: []kubelet.Use{{Claim: c.name}}}},
	}
}

// kubeconfig is the configuration of a client of the simulated API server, which
// has no authentication.
func kubeconfig(host string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: gpukit, cluster: {server: %q}}]
users: [{name: gpukit, user: {}}]
contexts: [{name: gpukit, context: {cluster: gpukit, user: gpukit}}]
current-context: gpukit
`, host)
}
