package decode

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true, UseDRANodeAllocatableResourceClaimStatus: true,
	})
	decoded := &dra.PodRequests{
		Node: Text(pod.Spec.NodeName), CPU: units(requests.Cpu(), apiresource.Milli), Memory: units(requests.Memory(), 0), Others: otherAmounts(requests), Repels: repelled(pod),
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

// units returns an amount that is not negative, and no larger than that the sum of those
// of a node's pods does not overflow.
func units(amount *apiresource.Quantity, scale apiresource.Scale) int64 {
	return max(Whole(amount, scale), 0)
}

// maxOthers bounds the other resources of one pod or node.
const maxOthers = 128

// otherAmounts returns the amounts besides those of CPU and memory, sorted by resource.
func otherAmounts(requests corev1.ResourceList) []dra.Amount {
	var all []dra.Amount
	for name, amount := range requests {
		if number := units(&amount, 0); number > 0 && name != corev1.ResourceCPU && name != corev1.ResourceMemory && len(all) < maxOthers {
			all = append(all, dra.Amount{Resource: strings.Clone(Text(string(name))), Units: number})
		}
	}
	slices.SortFunc(all, func(a, b dra.Amount) int { return strings.Compare(a.Resource, b.Resource) })
	return all
}

// maxRepelled bounds the required anti-affinity of one pod, terms times namespaces.
const maxRepelled = 64

// repelled returns which pods the required anti-affinity of a pod keeps from nodes.
func repelled(pod *corev1.Pod) []dra.Repelled {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	var all []dra.Repelled
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			selector = labels.Nothing() // as the scheduler has it
		}
		if _, selectable := selector.Requirements(); !selectable {
			continue
		}
		namespaces := term.Namespaces
		switch {
		case term.NamespaceSelector != nil:
			namespaces = []string{""}
		case len(namespaces) == 0:
			namespaces = []string{pod.Namespace}
		}
		for _, namespace := range namespaces {
			if len(all) < maxRepelled {
				all = append(all, dra.Repelled{Namespace: strings.Clone(Text(namespace)), Labels: Text(selector.String())})
			}
		}
	}
	return all
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
	if _, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
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
