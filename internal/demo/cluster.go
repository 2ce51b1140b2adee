package demo

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// staticObjects are the objects that are there before any pod and stay: the first node
// and what drivers publish of it, the classes, and the templates.
func staticObjects(h hardware, rows []workload, random *rand.Rand) []apiserver.Object {
	objects := nodeObjects(nodeName, h, random)
	for _, class := range deviceClasses() {
		objects = append(objects, class)
	}
	for _, row := range rows {
		if row.claim.template != "" {
			objects = append(objects, newTemplate(row))
		}
	}
	return objects
}

// nodeObjects are a node with an agent, and what drivers publish of it.
func nodeObjects(name string, h hardware, random *rand.Rand) []apiserver.Object {
	node := newNode(name, "h100-8x80", random)
	objects := []apiserver.Object{node}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID, Controller: new(true)}
	for _, slice := range h.resourceSlices(name, owner, random) {
		objects = append(objects, slice)
	}
	return objects
}

// remoteNodeObjects are the remote node and all that is published beside the agent's
// node.
func remoteNodeObjects(random *rand.Rand) []apiserver.Object {
	node := newNode(remoteNode, "h200-8x141", random)
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: remoteNode, UID: node.UID, Controller: new(true)}
	objects := []apiserver.Object{node}
	for _, slice := range remoteSlices() {
		pool := slice.Spec.Driver + "-" + slice.Spec.Pool.Name
		slice.ObjectMeta = metav1.ObjectMeta{
			Name: fmt.Sprintf("00000-%s-%s", pool, suffix(random)), GenerateName: fmt.Sprintf("00000-%s-", pool),
			UID: newUID(random), Generation: 1,
		}
		if slice.Spec.NodeName != nil {
			slice.OwnerReferences = []metav1.OwnerReference{owner}
		}
		objects = append(objects, slice)
	}
	return objects
}

func newNode(name, instance string, random *rand.Rand) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("224"),
		corev1.ResourceMemory: resource.MustParse("2Ti"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	if name == nodeName {
		resources[gpuByPlugin] = *resource.NewQuantity(replicas, resource.DecimalSI)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: newUID(random), Labels: map[string]string{
			corev1.LabelHostname:           name,
			corev1.LabelOSStable:           "linux",
			corev1.LabelArchStable:         "amd64",
			corev1.LabelInstanceTypeStable: instance,
			// As topograph labels nodes by their switches: all are in one rack.
			"network.topology.nvidia.com/leaf":  "leaf-7",
			"network.topology.nvidia.com/block": "block-2",
		}},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: "v1.37.1", ContainerRuntimeVersion: "containerd://2.4.2", OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
}

// deviceClasses returns the classes of the drivers, and one of the
// administrator's that backs an extended resource.
func deviceClasses() []*resourcev1.DeviceClass {
	const ofType = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == "
	class := func(name string, expressions ...string) *resourcev1.DeviceClass {
		made := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, expression := range expressions {
			made.Spec.Selectors = append(made.Spec.Selectors, selectors(expression)...)
		}
		return made
	}
	slice := class(classSlice, ofType+"'mig'", profileIs("1g.10gb"))
	slice.Spec.ExtendedResourceName = new(string(sliceByClass))
	return []*resourcev1.DeviceClass{
		class(classGPU, ofType+"'gpu'"), class(classMIG, ofType+"'mig'"), slice, class(classNIC, "device.driver == 'dra.net'"),
		class(classFPGA, "device.driver == 'fpga.example.com'"),
		class(classTPU, "device.driver == 'tpu.google.com'"), class(classIntel, "device.driver == 'gpu.intel.com'"),
	}
}

// taintRule keeps claims from a device, and with NoExecute evicts pods that
// have it.
func taintRule(name, node, device string, effect resourcev1.DeviceTaintEffect) *resourcev1.DeviceTaintRule {
	return &resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: new(driver), Pool: new(node), Device: new(device)},
			Taint:          resourcev1.DeviceTaint{Key: "example.com/" + name, Effect: effect},
		},
	}
}
