package decode

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		Node: Text(pod.Spec.NodeName), CPU: Whole(requests.Cpu(), apiresource.Milli), Memory: Whole(requests.Memory(), 0),
	}
	decoded.KeptByClusterAutoscaler, decoded.KeptByKarpenter = removalObstacles(pod)
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

// Annotations of pods by which they allow or refuse Cluster Autoscaler to evict them.
const (
	safeToEvict        = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	safeToEvictVolumes = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
)

// removalObstacles returns why Cluster Autoscaler, with its defaults, and Karpenter do
// not evict a pod. Neither cares for static pods, and Cluster Autoscaler not for those of
// DaemonSets.
func removalObstacles(pod *corev1.Pod) (clusterAutoscaler, karpenter dra.RemovalObstacle) {
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return dra.RemovalNone, dra.RemovalNone
	}
	if pod.Annotations[dra.DoNotDisrupt] == "true" {
		karpenter = dra.RemovalPodAnnotation
	}
	controller := metav1.GetControllerOfNoCopy(pod)
	switch {
	case controller != nil && controller.Kind == "DaemonSet", pod.Annotations[safeToEvict] == "true":
	case controller == nil:
		clusterAutoscaler = dra.RemovalNoController
	case pod.Namespace == metav1.NamespaceSystem:
		clusterAutoscaler = dra.RemovalSystemPod
	case pod.Annotations[safeToEvict] == "false":
		clusterAutoscaler = dra.RemovalPodAnnotation
	case hasLocalStorage(pod):
		clusterAutoscaler = dra.RemovalLocalStorage
	}
	return clusterAutoscaler, karpenter
}

// hasLocalStorage reports whether a pod has a volume whose data is on its node, unless an
// annotation names the volume.
func hasLocalStorage(pod *corev1.Pod) bool {
	safe := strings.Split(pod.Annotations[safeToEvictVolumes], ",")
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		local := v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
		return local && !slices.Contains(safe, v.Name)
	})
}
