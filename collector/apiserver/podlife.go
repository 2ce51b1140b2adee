package apiserver

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// reasonDeviceTaint is what the device taint eviction controller gives as
// its reason to evict a pod.
const reasonDeviceTaint = "DeletionByDeviceTaintManager"

// decodePodLife returns what a pod says of how it comes to run. Extended are
// all its extended resources, also those that device plugins provide. It
// neither keeps nor changes anything of the pod.
func decodePodLife(pod *corev1.Pod) dra.PodLife {
	life := dra.PodLife{
		Ref:      dra.PodRef{Namespace: clean(pod.Namespace), Name: clean(pod.Name)},
		UID:      clean(string(pod.UID)),
		Created:  instant(pod.CreationTimestamp),
		Deleted:  deletedAt(pod),
		Node:     clean(pod.Spec.NodeName),
		Terminal: isTerminal(pod),
		Gated:    len(pod.Spec.SchedulingGates) > 0,
		Claims:   neededClaims(pod),
		Extended: extendedOf(pod),
		Started:  firstStart(pod),
	}
	if group := pod.Spec.SchedulingGroup; group != nil {
		life.Group = cleanOr(group.PodGroupName)
	}
	life.Health = decodeHealth(pod, life.Claims)
	for i := range pod.Status.Conditions {
		applyCondition(&life, &pod.Status.Conditions[i])
	}
	return life
}

func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// applyCondition takes a condition of the pod in. While scheduling gates are
// there, it is not the scheduler that speaks.
func applyCondition(life *dra.PodLife, condition *corev1.PodCondition) {
	fulfilled := condition.Status == corev1.ConditionTrue
	switch condition.Type {
	case corev1.PodScheduled:
		if fulfilled {
			life.Scheduled = instant(condition.LastTransitionTime)
		} else if condition.Status == corev1.ConditionFalse && condition.Reason != corev1.PodReasonSchedulingGated {
			life.Unschedulable = cut(condition.Message, maxMessage)
		}
	case corev1.PodReadyToStartContainers:
		if fulfilled {
			life.Sandbox = instant(condition.LastTransitionTime)
		}
	case corev1.DisruptionTarget:
		life.Evicted = fulfilled && condition.Reason == reasonDeviceTaint
	}
}

// neededClaims leaves out references of which the status says that no claim
// is needed for them.
func neededClaims(pod *corev1.Pod) []dra.PodClaim {
	all := decodePodClaims(pod)
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
		if clean(status.Name) == name && status.ResourceClaimName == nil {
			return true
		}
	}
	return false
}

// extendedOf sums up what the pod asks of extended resources in the way that
// the scheduler does: what containers need at one time.
func extendedOf(pod *corev1.Pod) map[string]int64 {
	if !asksExtended(pod) {
		return nil
	}
	extended := make(map[string]int64)
	for name, amount := range resource.PodRequests(pod, resource.PodResourcesOptions{ExcludeOverhead: true, SkipPodLevelResources: true}) {
		if count := amount.Value(); isExtended(string(name)) && count > 0 {
			extended[clean(string(name))] = count
		}
	}
	if len(extended) == 0 {
		return nil
	}
	return boundExtended(extended)
}

func asksExtended(pod *corev1.Pod) bool {
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

// firstStart is when the first container of any kind started, as far as the
// status still knows: it remembers the last two starts of each. Of a container
// that could not be started the runtime says that it did so in 1970.
func firstStart(pod *corev1.Pod) time.Time {
	var first time.Time
	note := func(at time.Time) {
		if at.Unix() > 0 && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	groups := [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	}
	for _, statuses := range groups {
		for i := range statuses {
			for _, state := range []corev1.ContainerState{statuses[i].State, statuses[i].LastTerminationState} {
				if state.Running != nil {
					note(instant(state.Running.StartedAt))
				}
				if state.Terminated != nil {
					note(instant(state.Terminated.StartedAt))
				}
			}
		}
	}
	return first
}
