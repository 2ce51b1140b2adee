package decode

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// The annotations by which pods name their PodGroup of Volcano and of KAI
// (volcano.sh/apis v1.15, pkg/apis/scheduling/v1beta1/labels.go; KAI's
// pkg/common/constants).
const (
	volcanoGroupAnnotation = "scheduling.k8s.io/group-name"
	kaiGroupAnnotation     = "pod-group-name"
)

// SchedulerGroup returns how many pods of a PodGroup of Volcano or KAI, whose API
// group is given, are placed at once, and why they have not been placed. The result is
// false for a group of one pod: it waits for no other. It neither keeps nor changes
// anything of the object.
func SchedulerGroup(api string, object *customresource.PodGroup) (dra.Group, bool) {
	decoded := dra.Group{
		Ref:     dra.PodRef{Namespace: Text(object.Namespace), Name: schedulerGroupName(api, Text(object.Name))},
		UID:     Text(string(object.UID)),
		MinPods: max(object.Spec.MinMember, 0),
	}
	for _, conditions := range [][]customresource.PodGroupCondition{object.Status.Conditions, object.Status.SchedulingConditions} {
		for _, condition := range conditions {
			unschedulable := condition.Type == customresource.VolcanoUnschedulable || condition.Type == customresource.KAIUnschedulable
			if unschedulable && condition.Status == metav1.ConditionTrue {
				decoded.Unschedulable = shortText(condition.Message, maxMessage)
			}
		}
	}
	return decoded, decoded.MinPods > 1
}

// schedulerGroupName is the name of a PodGroup that is not Kubernetes' own, as kubectl
// takes it: no PodGroup of Kubernetes can be called so.
func schedulerGroupName(api, name string) string { return "podgroup." + api + "/" + name }

// schedulingGroup returns the name of the PodGroup of a pod, of Kubernetes, Volcano or KAI;
// empty without one.
func schedulingGroup(pod *corev1.Pod) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return OptionalText(group.PodGroupName)
	}
	annotation := func(key string) string { return shortText(pod.Annotations[key], maxName) }
	if name := annotation(volcanoGroupAnnotation); name != "" {
		return schedulerGroupName(customresource.VolcanoV1beta1().Group, name)
	}
	if name := annotation(kaiGroupAnnotation); name != "" {
		return schedulerGroupName(customresource.KAIV2alpha2().Group, name)
	}
	return ""
}
