package decode

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// ClaimLifecycle returns the progress of a ResourceClaim from its creation to its
// deletion. It neither keeps nor changes anything of the claim.
func ClaimLifecycle(claim *resourcev1.ResourceClaim) dra.ClaimLifecycle {
	lifecycle := dra.ClaimLifecycle{
		Ref:              dra.ClaimRef{Namespace: Text(claim.Namespace), Name: Text(claim.Name)},
		UID:              Text(string(claim.UID)),
		Created:          instant(claim.CreationTimestamp),
		Deleted:          deletedAt(claim),
		MadeFor:          madeFor(claim),
		PodClaim:         shortText(claim.Annotations[resourcev1.PodResourceClaimAnnotation], maxName),
		ExtendedResource: claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true",
		Classes:          requestClasses(claim.Spec.Devices.Requests),
		AllDevices:       requestsAll(claim.Spec.Devices.Requests),
		ReservedFor:      consumers(claim.Status.ReservedFor),
		Finalizers:       claimFinalizers(claim),
	}
	if allocation := claim.Status.Allocation; allocation != nil {
		lifecycle.Allocated = true
		if allocation.AllocationTimestamp != nil {
			lifecycle.AllocatedAt = instant(*allocation.AllocationTimestamp)
		}
		lifecycle.Node = onlyNode(allocation.NodeSelector)
		lifecycle.Results = allocatedDevices(claim)
		lifecycle.NoPreparation = skipsPreparation(allocation.Devices.Results)
		lifecycle.Binding, lifecycle.BindingSince = evaluateBinding(claim)
	}
	return lifecycle
}

// instant returns a time of the API server, and the zero time for none.
func instant(at metav1.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.UTC()
}

// deletedAt returns when the deletion was requested. The deletion timestamp of a
// pod is that time plus the pod's grace period.
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

// madeFor returns the controller of a claim that was created for a pod or a
// PodGroup. Other owners of a claim do not use it.
func madeFor(claim *resourcev1.ResourceClaim) dra.Consumer {
	owner := metav1.GetControllerOfNoCopy(claim)
	if owner == nil {
		return dra.Consumer{}
	}
	made := dra.Consumer{Name: shortText(owner.Name, maxName), UID: shortText(string(owner.UID), maxUID)}
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

func requestClasses(all []resourcev1.DeviceRequest) []string {
	var classes []string
	for _, request := range requests(all) {
		classes = append(classes, request.DeviceClass)
	}
	slices.Sort(classes)
	return slices.Clip(atMost(slices.Compact(classes), maxClasses))
}

// requestsAll reports whether a request or an alternative asks for all devices.
func requestsAll(all []resourcev1.DeviceRequest) bool {
	return slices.ContainsFunc(all, func(request resourcev1.DeviceRequest) bool {
		return request.Exactly != nil && request.Exactly.AllocationMode == resourcev1.DeviceAllocationModeAll ||
			slices.ContainsFunc(request.FirstAvailable, func(alternative resourcev1.DeviceSubRequest) bool {
				return alternative.AllocationMode == resourcev1.DeviceAllocationModeAll
			})
	})
}

// claimFinalizers returns the first of the claim's finalizers. That of Kubernetes
// is always among them if the claim has it.
func claimFinalizers(claim *resourcev1.ResourceClaim) []string {
	kept := atMost(claim.Finalizers, maxFinalizers)
	if len(kept) < len(claim.Finalizers) && !slices.Contains(kept, resourcev1.Finalizer) && slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
		kept[len(kept)-1] = resourcev1.Finalizer
	}
	var finalizers []string
	for _, finalizer := range kept {
		finalizers = append(finalizers, shortText(finalizer, maxName+64)) // domain and name
	}
	return finalizers
}

func allocatedDevices(claim *resourcev1.ResourceClaim) []dra.AllocatedDevice {
	classes := make(map[string]string)
	for _, request := range requests(claim.Spec.Devices.Requests) {
		classes[request.Name] = request.DeviceClass
	}
	results := claim.Status.Allocation.Devices.Results
	devices := make([]dra.AllocatedDevice, 0, len(results))
	for i := range results {
		request := Text(results[i].Request)
		devices = append(devices, dra.AllocatedDevice{
			Request:     request,
			Class:       classes[request],
			Device:      dra.DeviceID{Driver: Text(results[i].Driver), Pool: Text(results[i].Pool), Name: Text(results[i].Device)},
			AdminAccess: results[i].AdminAccess != nil && *results[i].AdminAccess,
			Shared:      results[i].ShareID != nil,
		})
	}
	return devices
}

// skipsPreparation reports whether the kubelet calls no driver to prepare an
// allocation. It calls a driver unless each of the driver's devices skips the
// call (pkg/kubelet/cm/dra, computeDriverStates).
func skipsPreparation(results []resourcev1.DeviceRequestAllocationResult) bool {
	return len(results) > 0 && !slices.ContainsFunc(results, func(result resourcev1.DeviceRequestAllocationResult) bool {
		return !slices.Contains(result.SkipNodeOperations, resourcev1.SkipNodeOperationAll) &&
			!slices.Contains(result.SkipNodeOperations, resourcev1.SkipNodeOperationNodePrepareResources)
	})
}

// evaluateBinding evaluates the binding conditions of an allocated claim (KEP-5007) as
// the scheduler does, which decides when the pod is bound: failure conditions
// count only for devices that have binding conditions, and neither the
// generation at which a condition was observed nor the share of the device is
// considered. since is when the binding was done or failed, and may be unknown.
func evaluateBinding(claim *resourcev1.ResourceClaim) (binding dra.Binding, start time.Time) {
	var waiting, failed bool
	var done, failedSince time.Time
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		if len(results[i].BindingConditions) == 0 {
			continue
		}
		binding = dra.BindingDone
		conditions := deviceConditions(claim, &results[i])
		for _, required := range results[i].BindingConditions {
			at, fulfilled := trueSince(conditions, required)
			waiting = waiting || !fulfilled
			if at.After(done) {
				done = at
			}
		}
		for _, failure := range results[i].BindingFailureConditions {
			if at, happened := trueSince(conditions, failure); happened {
				if !failed || at.Before(failedSince) {
					failedSince = at
				}
				failed = true
			}
		}
	}
	switch {
	case failed:
		return dra.BindingFailed, failedSince
	case waiting:
		return dra.BindingWaiting, time.Time{}
	default:
		return binding, done
	}
}

// trueSince returns when a condition became true, and whether it is.
func trueSince(conditions []metav1.Condition, kind string) (start time.Time, ok bool) {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return instant(condition.LastTransitionTime), true
}

// deviceConditions returns the conditions that the driver wrote for a device.
func deviceConditions(claim *resourcev1.ResourceClaim, device *resourcev1.DeviceRequestAllocationResult) []metav1.Condition {
	for i := range claim.Status.Devices {
		status := &claim.Status.Devices[i]
		if status.Driver == device.Driver && status.Pool == device.Pool && status.Device == device.Device {
			return status.Conditions
		}
	}
	return nil
}
