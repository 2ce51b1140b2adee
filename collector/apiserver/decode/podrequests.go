package decode

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// maxTolerations bounds the tolerations of a pod that are kept.
const maxTolerations = 64

// PodRequests returns what a pod takes of its node besides devices, and nil for one
// that takes nothing: it has finished, or is not bound and uses no claims. It neither
// keeps nor changes anything of the pod.
func PodRequests(pod *corev1.Pod) *dra.PodRequests {
	claims := len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
	if isTerminal(pod) || pod.Spec.NodeName == "" && !claims {
		return nil
	}
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true})
	decoded := &dra.PodRequests{
		Node: Text(pod.Spec.NodeName), CPU: requests.Cpu().MilliValue(), Memory: requests.Memory().Value(),
	}
	if !claims {
		return decoded
	}
	user := &dra.ClaimUser{Pod: dra.PodRef{Namespace: Text(pod.Namespace), Name: Text(pod.Name)}}
	for _, toleration := range first(pod.Spec.Tolerations, maxTolerations) {
		if toleration.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		user.Tolerations = append(user.Tolerations, dra.Toleration{
			Key: shortText(toleration.Key, maxName), Operator: Text(string(toleration.Operator)),
			Value: shortText(toleration.Value, maxName), Effect: Text(string(toleration.Effect)),
		})
	}
	decoded.User = user
	return decoded
}
