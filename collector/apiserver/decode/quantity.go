package decode

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits of quantities. Kubernetes accepts 1e2147483647, but its digits are written out
// where it is added to another one or compared with it, which takes hours and all memory.
// What is larger than an int64 is 0 as a whole number.
const (
	maxAmount   = 1e15 // of what a node has and a pod takes: thousands of them can be added as an int64
	maxCapacity = 1e30 // of devices, with which no whole numbers are computed
)

// LimitQuantities replaces the quantities of an object by the largest ones with which
// can be computed, where they are larger. Objects of other kinds than pods, nodes,
// claims, templates and slices are not changed.
func LimitQuantities(object any) {
	switch typed := object.(type) {
	case *corev1.Pod:
		limitPod(typed)
	case *corev1.Node:
		limitAll(typed.Status.Allocatable, maxAmount)
		limitAll(typed.Status.Capacity, maxAmount)
	case *resourcev1.ResourceClaim:
		limitSpec(&typed.Spec)
		if typed.Status.Allocation != nil {
			for i := range typed.Status.Allocation.Devices.Results {
				limitAll(typed.Status.Allocation.Devices.Results[i].ConsumedCapacity, maxCapacity)
			}
		}
	case *resourcev1.ResourceClaimTemplate:
		limitSpec(&typed.Spec.Spec)
	case *resourcev1.ResourceSlice:
		limitSlice(&typed.Spec)
	}
}

func limitPod(pod *corev1.Pod) {
	for _, group := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range group {
			limitResources(&group[i].Resources)
		}
	}
	limitAll(pod.Spec.Overhead, maxAmount)
	limitResources(pod.Spec.Resources)
	for _, group := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range group {
			limitAll(group[i].AllocatedResources, maxAmount)
			limitResources(group[i].Resources)
		}
	}
	limitAll(pod.Status.AllocatedResources, maxAmount)
	limitResources(pod.Status.Resources)
	for i := range pod.Status.NodeAllocatableResourceClaimStatuses {
		status := &pod.Status.NodeAllocatableResourceClaimStatuses[i]
		for j := range status.Mapping {
			limitOne(status.Mapping[j].Quantity, maxAmount)
		}
		for j := range status.Overhead {
			limitOne(status.Overhead[j].PerPod, maxAmount)
			limitOne(status.Overhead[j].PerContainer, maxAmount)
		}
	}
}

func limitResources(requirements *corev1.ResourceRequirements) {
	if requirements != nil {
		limitAll(requirements.Requests, maxAmount)
		limitAll(requirements.Limits, maxAmount)
	}
}

func limitSpec(spec *resourcev1.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			limitRequest(request.Exactly.Capacity)
		}
		for j := range request.FirstAvailable {
			limitRequest(request.FirstAvailable[j].Capacity)
		}
	}
}

func limitRequest(capacity *resourcev1.CapacityRequirements) {
	if capacity != nil {
		limitAll(capacity.Requests, maxCapacity)
	}
}

func limitSlice(spec *resourcev1.ResourceSliceSpec) {
	for i := range spec.Devices {
		for name, capacity := range spec.Devices[i].Capacity {
			capacity.Value = limited(capacity.Value, maxCapacity)
			limitPolicy(capacity.RequestPolicy)
			spec.Devices[i].Capacity[name] = capacity
		}
		for _, resource := range spec.Devices[i].NodeAllocatableResources {
			if resource.Mapping != nil {
				limitOne(resource.Mapping.CapacityMultiplier, maxAmount)
				limitOne(resource.Mapping.DeviceMultiplier, maxAmount)
			}
			if resource.Overhead != nil {
				limitOne(resource.Overhead.PerPod, maxAmount)
				limitOne(resource.Overhead.PerContainer, maxAmount)
			}
		}
		for j := range spec.Devices[i].ConsumesCounters {
			limitCounters(spec.Devices[i].ConsumesCounters[j].Counters)
		}
	}
	for i := range spec.SharedCounters {
		limitCounters(spec.SharedCounters[i].Counters)
	}
}

func limitPolicy(policy *resourcev1.CapacityRequestPolicy) {
	if policy == nil {
		return
	}
	limitOne(policy.Default, maxCapacity)
	for i := range policy.ValidValues {
		limitOne(&policy.ValidValues[i], maxCapacity)
	}
	if bounds := policy.ValidRange; bounds != nil {
		limitOne(bounds.Min, maxCapacity)
		limitOne(bounds.Max, maxCapacity)
		limitOne(bounds.Step, maxCapacity)
	}
}

func limitCounters(counters map[string]resourcev1.Counter) {
	for name, counter := range counters {
		counters[name] = resourcev1.Counter{Value: limited(counter.Value, maxCapacity)}
	}
}

func limitOne(quantity *resource.Quantity, most float64) {
	if quantity != nil {
		*quantity = limited(*quantity, most)
	}
}

func limitAll[N ~string](quantities map[N]resource.Quantity, most float64) {
	for name, quantity := range quantities {
		if beyond(quantity, most) {
			quantities[name] = limited(quantity, most)
		}
	}
}

func beyond(quantity resource.Quantity, most float64) bool {
	return !(quantity.AsApproximateFloat64() <= most)
}

// limited returns a quantity of at most so much.
func limited(quantity resource.Quantity, most float64) resource.Quantity {
	if beyond(quantity, most) {
		return resource.MustParse(strconv.FormatFloat(most, 'e', 0, 64))
	}
	return quantity
}

// Whole returns an amount as a whole number of a scale, at most maxAmount.
func Whole(quantity *resource.Quantity, scale resource.Scale) int64 {
	amount := limited(*quantity, maxAmount)
	return min(amount.ScaledValue(scale), maxAmount)
}
