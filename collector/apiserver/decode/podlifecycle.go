package decode

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// reasonDeviceTaint is the reason that the device taint eviction controller
// writes when it evicts a pod.
const reasonDeviceTaint = "DeletionByDeviceTaintManager"

// PodLifecycle returns the progress of a pod from its creation to its end, and the
// workload of one with claims, extended resources or a PodGroup. Extended has all its extended resources, also those that device plugins
// provide. It neither keeps nor changes anything of the pod.
func PodLifecycle(pod *corev1.Pod, workloads *Workloads) dra.PodLifecycle {
	lifecycle := dra.PodLifecycle{
		Ref:      dra.PodRef{Namespace: Text(pod.Namespace), Name: Text(pod.Name)},
		UID:      Text(string(pod.UID)),
		Created:  instant(pod.CreationTimestamp),
		Deleted:  deletedAt(pod),
		Grace:    gracePeriod(pod),
		Node:     Text(pod.Spec.NodeName),
		Terminal: isTerminal(pod),
		Ended:    endedAt(pod),
		Gated:    len(pod.Spec.SchedulingGates) > 0,
		Claims:   neededClaims(pod),
		Extended: extendedRequests(pod),
		Group:    schedulingGroup(pod),
		Started:  firstStart(pod),
	}
	if len(lifecycle.Claims) > 0 || len(lifecycle.Extended) > 0 || lifecycle.Group != "" {
		lifecycle.Member = workloads.member(pod)
	}
	lifecycle.HeldBy = heldBy(pod)
	lifecycle.Allocatable = claimAllocatable(pod)
	lifecycle.Health = deviceHealth(pod, lifecycle.Claims, 0)
	for i := range pod.Status.Conditions {
		applyCondition(&lifecycle, &pod.Status.Conditions[i])
	}
	return lifecycle
}

// gracePeriod returns how long after the request a pod that is being deleted should have
// ended.
func gracePeriod(pod *corev1.Pod) time.Duration {
	if pod.DeletionTimestamp == nil {
		return 0
	}
	return pod.DeletionTimestamp.Sub(deletedAt(pod))
}

// applyCondition sets what a condition of the pod reports. While the pod has
// scheduling gates, PodScheduled is not the scheduler's.
func applyCondition(lifecycle *dra.PodLifecycle, condition *corev1.PodCondition) {
	fulfilled := condition.Status == corev1.ConditionTrue
	switch condition.Type {
	case corev1.PodScheduled:
		if fulfilled {
			lifecycle.Scheduled = instant(condition.LastTransitionTime)
		} else if condition.Status == corev1.ConditionFalse && condition.Reason != corev1.PodReasonSchedulingGated {
			lifecycle.Unschedulable = shortText(condition.Message, maxMessage)
		}
	case corev1.PodReadyToStartContainers:
		if fulfilled {
			lifecycle.Sandbox = instant(condition.LastTransitionTime)
		}
	case corev1.DisruptionTarget:
		lifecycle.Evicted = fulfilled && condition.Reason == reasonDeviceTaint
	}
}

// neededClaims leaves out references for which the status says that no claim is
// needed.
func neededClaims(pod *corev1.Pod) []dra.PodClaim {
	all := podClaims(pod)
	needed := all[:0]
	for _, claim := range all {
		if claim.Claim != "" || !isUnneeded(pod, claim.Name) {
			needed = append(needed, claim)
		}
	}
	return atMost(needed, maxReferences)
}

func isUnneeded(pod *corev1.Pod, name string) bool {
	for _, status := range pod.Status.ResourceClaimStatuses {
		if Text(status.Name) == name && status.ResourceClaimName == nil {
			return true
		}
	}
	return false
}

// extendedRequests sums up the pod's requests of extended resources as the scheduler
// does: what its containers need at one time.
func extendedRequests(pod *corev1.Pod) map[string]int64 {
	if !requestsExtended(pod) {
		return nil
	}
	extended := make(map[string]int64)
	for name, amount := range resource.PodRequests(pod, resource.PodResourcesOptions{ExcludeOverhead: true, SkipPodLevelResources: true}) {
		if count := Whole(&amount, 0); isExtended(string(name)) && count > 0 {
			extended[Text(string(name))] = count
		}
	}
	if len(extended) == 0 {
		return nil
	}
	return limitExtended(extended)
}

func requestsExtended(pod *corev1.Pod) bool {
	for _, group := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range group {
			for name := range group[i].Resources.Requests {
				if isExtended(string(name)) {
					return true
				}
			}
		}
	}
	return false
}

// claimAllocatable returns what the pod's claims take of the node's allocatable
// resources. The scheduler writes it when it binds the pod, with the feature
// DRANodeAllocatableResources.
func claimAllocatable(pod *corev1.Pod) []dra.ClaimAllocatable {
	var all []dra.ClaimAllocatable
	for _, status := range first(pod.Status.NodeAllocatableResourceClaimStatuses, maxReferences) {
		amounts := make(map[string]dra.AllocatableAmount)
		for _, mapped := range first(status.Mapping, maxAllocatable) {
			amount := amounts[string(mapped.Name)]
			amount.Devices = quantityText(mapped.Quantity)
			amounts[string(mapped.Name)] = amount
		}
		for _, overhead := range first(status.Overhead, maxAllocatable) {
			amount := amounts[string(overhead.Name)]
			amount.PerPod, amount.PerContainer = quantityText(overhead.PerPod), quantityText(overhead.PerContainer)
			amounts[string(overhead.Name)] = amount
		}
		claim := dra.ClaimAllocatable{Claim: shortText(status.ResourceClaimName, maxName)}
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			amount := amounts[name]
			amount.Resource = shortText(name, maxName)
			claim.Resources = append(claim.Resources, amount)
		}
		all = append(all, claim)
	}
	return all
}

// quantityText is empty for no quantity.
func quantityText(quantity *apiresource.Quantity) string {
	if quantity == nil {
		return ""
	}
	return shortText(quantity.String(), maxName)
}

// limitExtended keeps the extended resources that come first by name; those that
// a device class names before others.
func limitExtended(all map[string]int64) map[string]int64 {
	if len(all) <= maxExtended {
		return all
	}
	order := func(name string) int {
		if strings.HasPrefix(name, resourcev1.ResourceDeviceClassPrefix) {
			return 0
		}
		return 1
	}
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b))
	})
	limited := make(map[string]int64, maxExtended)
	for _, name := range names[:maxExtended] {
		limited[strings.Clone(name)] = all[name]
	}
	return limited
}

// endedAt returns when the last container of a terminal pod ended, as far as its
// status has it.
func endedAt(pod *corev1.Pod) time.Time {
	var last time.Time
	if !isTerminal(pod) {
		return last
	}
	for _, statuses := range allStatuses(pod) {
		for i := range statuses {
			if ended := statuses[i].State.Terminated; ended != nil && ended.FinishedAt.Unix() > 0 && ended.FinishedAt.After(last) {
				last = instant(ended.FinishedAt)
			}
		}
	}
	return last
}

// firstStart returns when the first container of any kind started, as far as the
// status still has it: it has the last two starts of each. For a container that
// could not be started the runtime reports a start in 1970.
func firstStart(pod *corev1.Pod) time.Time {
	var first time.Time
	observe := func(at time.Time) {
		if at.Unix() > 0 && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, statuses := range allStatuses(pod) {
		for i := range statuses {
			for _, state := range []corev1.ContainerState{statuses[i].State, statuses[i].LastTerminationState} {
				if state.Running != nil {
					observe(instant(state.Running.StartedAt))
				}
				if state.Terminated != nil {
					observe(instant(state.Terminated.StartedAt))
				}
			}
		}
	}
	return first
}
