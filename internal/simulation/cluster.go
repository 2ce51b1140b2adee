package simulation

import (
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/internal/simulation/apiserver"
)

// nodeName is the node that the agent runs on.
const nodeName = "gpu-node-1"

// standing are the objects that are there before any pod and stay: the node,
// the classes, the templates, and what the driver publishes.
func standing(h hardware, rows []workload, random *rand.Rand) []apiserver.Object {
	node := newNode(nodeName, "h100-8x80", random)
	objects := []apiserver.Object{node}
	for _, class := range deviceClasses() {
		objects = append(objects, class)
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)}
	for _, slice := range h.resourceSlices(node.Name, owner, random) {
		objects = append(objects, slice)
	}
	for _, row := range rows {
		if row.claim.template != "" {
			objects = append(objects, newTemplate(row))
		}
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

// deviceClasses are those that the drivers bring along, and one of the
// administrator's that stands for an extended resource.
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
	}
}

func newTemplate(row workload) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: row.namespace, Name: row.claim.template},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec(row.claim)},
	}
}

// selectors are the CEL expressions that are not empty.
func selectors(expressions ...string) []resourcev1.DeviceSelector {
	var made []resourcev1.DeviceSelector
	for _, expression := range slices.DeleteFunc(expressions, func(e string) bool { return e == "" }) {
		made = append(made, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	return made
}
