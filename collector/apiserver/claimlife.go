package apiserver

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// decodeClaimLife returns what a ResourceClaim says of how it comes to be
// used. It neither keeps nor changes anything of the claim.
func decodeClaimLife(claim *resourcev1.ResourceClaim) dra.ClaimLife {
	life := dra.ClaimLife{
		Ref:              dra.ClaimRef{Namespace: clean(claim.Namespace), Name: clean(claim.Name)},
		UID:              clean(string(claim.UID)),
		Created:          instant(claim.CreationTimestamp),
		Deleted:          deletedAt(claim),
		MadeFor:          madeFor(claim),
		PodClaim:         cut(claim.Annotations[resourcev1.PodResourceClaimAnnotation], maxName),
		ExtendedResource: claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true",
		Classes:          classesOf(claim.Spec.Devices.Requests),
		ReservedFor:      decodeConsumers(claim.Status.ReservedFor),
		Finalizers:       finalizersOf(claim),
	}
	if allocation := claim.Status.Allocation; allocation != nil {
		life.Allocated = true
		if allocation.AllocationTimestamp != nil {
			life.AllocatedAt = instant(*allocation.AllocationTimestamp)
		}
		life.Node = onlyNode(allocation.NodeSelector)
		life.Results = allocatedDevices(claim)
		life.Binding, life.BindingSince = bindingOf(claim)
	}
	return life
}

// instant is a time of the API server's; the zero time stands for none.
func instant(at metav1.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.UTC()
}

// deletedAt is when the deletion was asked for. The timestamp of a pod is
// that, and the time that the pod is given to end in addition.
func deletedAt(object metav1.Object) time.Time {
	at, grace := object.GetDeletionTimestamp(), object.GetDeletionGracePeriodSeconds()
	switch {
	case at == nil:
		return time.Time{}
	case grace == nil || *grace < 0:
		return instant(*at)
	default:
		return instant(*at).Add(-time.Duration(*grace) * time.Second)
	}
}

// madeFor is the controller of a claim that was made for somebody: a pod, or
// a group of pods. Who else may own a claim does not use it.
func madeFor(claim *resourcev1.ResourceClaim) dra.Consumer {
	owner := metav1.GetControllerOfNoCopy(claim)
	if owner == nil {
		return dra.Consumer{}
	}
	made := dra.Consumer{Name: cut(owner.Name, maxName), UID: cut(string(owner.UID), maxUID)}
	group, _, versioned := strings.Cut(owner.APIVersion, "/")
	switch {
	case owner.Kind == "Pod" && owner.APIVersion == corev1.SchemeGroupVersion.String():
		made.Resource = "pods"
	case owner.Kind == "PodGroup" && versioned && group == schedulingv1beta1.GroupName:
		made.Resource = "podgroups"
	default:
		return dra.Consumer{}
	}
	return made
}

func classesOf(requests []resourcev1.DeviceRequest) []string {
	var classes []string
	for _, request := range decodeRequests(requests) {
		classes = append(classes, request.DeviceClass)
	}
	slices.Sort(classes)
	return slices.Clip(atMost(slices.Compact(classes), maxClasses))
}

// onlyNode is the node that an allocation is bound to. The allocator writes
// this one shape of selector when a device is local to a node; what other
// selectors say may hold for several.
func onlyNode(selector *corev1.NodeSelector) string {
	if selector == nil || len(selector.NodeSelectorTerms) != 1 {
		return ""
	}
	for _, field := range selector.NodeSelectorTerms[0].MatchFields {
		if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
			return clean(field.Values[0])
		}
	}
	return ""
}

func allocatedDevices(claim *resourcev1.ResourceClaim) []dra.AllocatedDevice {
	classes := make(map[string]string)
	for _, request := range decodeRequests(claim.Spec.Devices.Requests) {
		classes[request.Name] = request.DeviceClass
	}
	results := claim.Status.Allocation.Devices.Results
	devices := make([]dra.AllocatedDevice, 0, len(results))
	for i := range results {
		request := clean(results[i].Request)
		devices = append(devices, dra.AllocatedDevice{
			Request:     request,
			Class:       classes[request],
			Device:      dra.DeviceID{Driver: clean(results[i].Driver), Pool: clean(results[i].Pool), Name: clean(results[i].Device)},
			AdminAccess: results[i].AdminAccess != nil && *results[i].AdminAccess,
		})
	}
	return devices
}
