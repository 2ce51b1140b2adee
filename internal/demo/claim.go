package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	podClaimAnnotation = "resource.kubernetes.io/pod-claim-name"
	claimFinalizer     = "resource.kubernetes.io/delete-protection"
)

// newClaim is the workload's claim as it is created: by hand, by the claim
// controller from a template, or by the scheduler for an extended resource.
func newClaim(row workload, pod *corev1.Pod, created time.Time, random *rand.Rand) *resourcev1.ResourceClaim {
	made := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: row.namespace, Name: row.claim.name, UID: newUID(random), CreationTimestamp: metav1.NewTime(created),
		},
		Spec: claimSpec(row.claim),
	}
	switch {
	case row.claim.template != "":
		made.GenerateName = pod.Name + "-" + row.claim.name + "-"
		made.Annotations = map[string]string{podClaimAnnotation: row.claim.name}
	case row.claim.extended != "":
		made.GenerateName = pod.Name + "-extended-resources-"
		made.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	}
	if made.GenerateName != "" {
		made.Name = made.GenerateName + suffix(random)
		made.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true)},
		}
	}
	return made
}

func claimSpec(asked claim) resourcev1.ResourceClaimSpec {
	var spec resourcev1.ResourceClaimSpec
	for _, r := range asked.requests {
		spec.Devices.Requests = append(spec.Devices.Requests, deviceRequest(r))
	}
	if asked.align != "" {
		align := resourcev1.FullyQualifiedName(asked.align)
		spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &align}}
	}
	if asked.sharing != "" {
		spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: sharingConfiguration(asked)}}
	}
	return spec
}

func deviceRequest(r request) resourcev1.DeviceRequest {
	made := resourcev1.DeviceRequest{Name: r.name}
	for _, choice := range r.firstAvailable {
		made.FirstAvailable = append(made.FirstAvailable, resourcev1.DeviceSubRequest{
			Name: choice.name, DeviceClassName: choice.class, Selectors: selectors(choice.selector),
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
		})
	}
	if len(r.firstAvailable) > 0 {
		return made
	}
	made.Exactly = &resourcev1.ExactDeviceRequest{
		DeviceClassName: r.class, Selectors: selectors(r.selector),
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(max(len(r.devices), r.count)),
	}
	if r.memory != "" {
		made.Exactly.Capacity = &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(r.memory)},
		}
	}
	if r.admin {
		made.Exactly.AdminAccess = new(true)
		made.Exactly.AllocationMode, made.Exactly.Count = resourcev1.DeviceAllocationModeAll, 0
		made.Exactly.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	}
	return made
}

// sharingConfiguration requests a sharing strategy, by the driver's opaque
// parameters.
func sharingConfiguration(asked claim) resourcev1.DeviceConfiguration {
	kind := "GpuConfig"
	if strings.Contains(asked.requests[0].devices[0], "-mig-") {
		kind = "MigDeviceConfig"
	}
	parameters := fmt.Sprintf(`{"apiVersion":"resource.nvidia.com/v1beta1","kind":%q,"sharing":{"strategy":%q}}`, kind, asked.sharing)
	return resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(parameters)}},
	}
}

// allocate gives a claim its devices and reserves it for its pods, in one go
// as the scheduler does.
func allocate(made *resourcev1.ResourceClaim, row workload, pods []*corev1.Pod, at time.Time, random *rand.Rand) {
	allocation := &resourcev1.AllocationResult{
		AllocationTimestamp: new(metav1.NewTime(at)),
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{row.on()}},
			},
		}}},
	}
	for _, r := range row.claim.requests {
		for _, name := range r.devices {
			allocation.Devices.Results = append(allocation.Devices.Results, result(r, row.on(), name, random))
		}
	}
	for _, configured := range made.Spec.Devices.Config {
		allocation.Devices.Config = append(allocation.Devices.Config, resourcev1.DeviceAllocationConfiguration{
			Source: resourcev1.AllocationConfigSourceClaim, DeviceConfiguration: configured.DeviceConfiguration,
		})
	}
	made.Finalizers = []string{claimFinalizer}
	made.Status.Allocation = allocation
	for _, pod := range pods {
		made.Status.ReservedFor = append(made.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{
			Resource: "pods", Name: pod.Name, UID: pod.UID,
		})
	}
}

func result(r request, node, name string, random *rand.Rand) resourcev1.DeviceRequestAllocationResult {
	made := resourcev1.DeviceRequestAllocationResult{Request: r.chosen(), Driver: deviceDriver(name), Pool: devicePool(node, name), Device: name}
	if made.Driver == fabricDriver {
		made.BindingConditions, made.BindingFailureConditions = []string{conditionAttached}, []string{conditionAttachFailed}
	}
	if r.admin {
		made.AdminAccess = new(true)
	}
	if r.memory != "" {
		made.ShareID = new(newUID(random))
		made.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(r.memory)}
	}
	return made
}

// deallocate removes the allocation with the last reservation.
func deallocate(made *resourcev1.ResourceClaim) {
	made.Finalizers = nil
	made.Status = resourcev1.ResourceClaimStatus{}
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
