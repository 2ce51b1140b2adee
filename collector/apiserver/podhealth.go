package apiserver

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// decodeHealth returns what the kubelet says of the devices that containers
// of any kind got through claims: sorted, each word once, because the kubelet
// writes them in any order. The words on device plugins' devices are left
// out, and those that say neither healthy nor unhealthy.
func decodeHealth(pod *corev1.Pod, claims []dra.PodClaim) []dra.ResourceHealth {
	var words []dra.ResourceHealth
	groups := [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	}
	for _, statuses := range groups {
		for i := range first(statuses, maxContainers) {
			for _, status := range statuses[i].AllocatedResourcesStatus {
				words = appendHealth(words, status, claims)
			}
		}
	}
	slices.SortFunc(words, compareHealth)
	return slices.Compact(words)
}

// appendHealth appends what is said of one claim, or of one request of it.
func appendHealth(words []dra.ResourceHealth, status corev1.ResourceStatus, claims []dra.PodClaim) []dra.ResourceHealth {
	name, ofClaim := strings.CutPrefix(clean(string(status.Name)), "claim:")
	if !ofClaim {
		return words
	}
	name, request, _ := strings.Cut(name, "/")
	claim, known := claimNamed(name, claims)
	if !known {
		return words
	}
	for _, resource := range status.Resources {
		if resource.Health != corev1.ResourceHealthStatusHealthy && resource.Health != corev1.ResourceHealthStatusUnhealthy {
			continue
		}
		words = append(words, dra.ResourceHealth{
			PodClaim: claim, Request: request, ResourceID: clean(string(resource.ResourceID)),
			Healthy: resource.Health == corev1.ResourceHealthStatusHealthy,
		})
	}
	return words
}

// claimNamed finds the claim that the kubelet means: by its name within the
// pod, or, for the claim of extended resources, which has none, by its own.
func claimNamed(name string, claims []dra.PodClaim) (podClaim string, known bool) {
	for _, claim := range claims {
		if name != "" && (claim.Name == name || claim.Name == "" && claim.Claim == name) {
			return claim.Name, true
		}
	}
	return "", false
}

func compareHealth(a, b dra.ResourceHealth) int {
	order := cmp.Or(cmp.Compare(a.PodClaim, b.PodClaim), cmp.Compare(a.Request, b.Request), cmp.Compare(a.ResourceID, b.ResourceID))
	switch {
	case order != 0 || a.Healthy == b.Healthy:
		return order
	case b.Healthy:
		return -1
	default:
		return 1
	}
}
