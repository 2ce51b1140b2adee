package decode

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Kueue's names (sigs.k8s.io/kueue v0.19.2, apis/kueue/v1beta2 and
// pkg/controller/jobs/pod/constants).
const (
	kueueGate       = "kueue.x-k8s.io/admission"
	kueueAnnotation = "kueue.x-k8s.io/workload"
	kueueGroupLabel = "kueue.x-k8s.io/pod-group-name"    // a group's Workload has its name
	kueueOfGroup    = "kueue.x-k8s.io/is-group-workload" // annotation of the Workload of a group of pods, true
	kueueReserved   = "QuotaReserved"
	kueueAdmitted   = "Admitted"
	kueueFinished   = "Finished"
)

// KueueWorkload returns what a Workload of Kueue is for and why it waits. The result
// is false for one that has finished. It neither keeps nor changes anything of the
// object.
func KueueWorkload(object *customresource.Workload) (dra.KueueWorkload, bool) {
	decoded := dra.KueueWorkload{
		Ref:     dra.PodRef{Namespace: Text(object.Namespace), Name: Text(object.Name)},
		UID:     Text(string(object.UID)),
		Waiting: kueueWaiting(object),
	}
	decoded.Workload, decoded.Pod = kueueOwner(object)
	decoded.Workload.Queue = shortText(object.Spec.QueueName, maxName)
	pods, extended := int64(0), make(map[string]int64)
	for i := range object.Spec.PodSets {
		set := &object.Spec.PodSets[i]
		count := set.Count
		if set.MinCount != nil {
			count = min(*set.MinCount, count)
		}
		pods += int64(max(count, 0))
		decoded.Claims = decoded.Claims || len(set.Template.Spec.ResourceClaims) > 0
		extendedOfSet(&set.Template.Spec, extended)
	}
	decoded.Pods = int32(min(pods, math.MaxInt32))
	decoded.Extended = slices.Sorted(maps.Keys(limitExtended(extended)))
	return decoded, !meta.IsStatusConditionTrue(object.Status.Conditions, kueueFinished)
}

// extendedOfSet adds the extended resources that pods request.
func extendedOfSet(spec *customresource.PodSpec, all map[string]int64) {
	for _, containers := range [][]customresource.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			for _, amounts := range []map[corev1.ResourceName]customresource.AnyQuantity{resources.Requests, resources.Limits} {
				for name := range amounts {
					if isExtended(string(name)) {
						all[shortText(string(name), maxName)]++
					}
				}
			}
		}
	}
}

// kueueOwner returns the job that a Workload is for, as the pods of the job have it,
// else the one pod that it is for.
func kueueOwner(object *customresource.Workload) (dra.Workload, dra.Consumer) {
	owners := object.OwnerReferences
	at := slices.IndexFunc(owners, func(owner metav1.OwnerReference) bool { return owner.Controller != nil && *owner.Controller })
	at = max(at, 0)
	switch {
	case len(owners) == 0:
		return dra.Workload{}, dra.Consumer{}
	case owners[at].Kind != "Pod":
		return dra.Workload{Kind: shortText(owners[at].Kind, maxName), Name: shortText(owners[at].Name, maxName)}, dra.Consumer{}
	case object.Annotations[kueueOfGroup] == "true":
		return dra.Workload{Kind: podGroupKind, Name: Text(object.Name)}, dra.Consumer{}
	default:
		pod := &owners[at]
		return dra.Workload{}, dra.Consumer{Resource: "pods", Name: shortText(pod.Name, maxName), UID: shortText(string(pod.UID), maxUID)}
	}
}

// kueueWaiting returns why a Workload is not admitted: quota is not reserved for it,
// else its admission checks have not passed.
func kueueWaiting(object *customresource.Workload) *dra.KueueWaiting {
	conditions := object.Status.Conditions
	if meta.IsStatusConditionTrue(conditions, kueueAdmitted) {
		return nil
	}
	for _, kind := range []string{kueueReserved, kueueAdmitted} {
		if condition := meta.FindStatusCondition(conditions, kind); condition != nil && condition.Status != metav1.ConditionTrue {
			return &dra.KueueWaiting{Reason: shortText(condition.Reason, maxName), Message: shortText(condition.Message, maxMessage), Since: instant(condition.LastTransitionTime)}
		}
	}
	return &dra.KueueWaiting{Reason: "Queued", Message: "Kueue has not reported on it yet", Since: instant(object.CreationTimestamp)}
}

// heldBy returns the name of the Workload of Kueue that holds a pod by a scheduling gate,
// if the pod has it; nil if Kueue does not hold the pod.
func heldBy(pod *corev1.Pod) *string {
	if !slices.ContainsFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == kueueGate }) {
		return nil
	}
	name := cmp.Or(podValue(pod, kueueAnnotation), podValue(pod, kueueGroupLabel))
	return &name
}
