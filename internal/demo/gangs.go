package demo

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// gangObjects are what pods wait for together: a PodGroup that lacks a pod, a
// ComputeDomain whose controller does not run, and a job without pods in a queue of
// Kueue.
func gangObjects(seed uint64, now time.Time) []apiserver.Object {
	meta := func(namespace, name string, age time.Duration) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: newUID(newRandom(seed, namespace, name, "gang")),
			CreationTimestamp: metav1.NewTime(now.Add(-age).Truncate(time.Second)),
		}
	}
	group := &schedulingv1beta1.PodGroup{ObjectMeta: meta("llm", "post-train", 5*time.Minute)}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}

	domain := &customresource.ComputeDomain{ObjectMeta: meta("llm", "moe", 3*time.Minute)}
	domain.Spec.NumNodes = 2
	domain.Spec.Channel.ResourceClaimTemplate.Name = "moe-channel"

	queued := &customresource.Workload{ObjectMeta: meta("batch", "job-distill-7c1f5", 26*time.Minute)}
	queued.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "Job", Name: "distill", UID: newUID(newRandom(seed, "batch", "distill", "job")), Controller: new(true),
	}}
	queued.Spec.QueueName = "overnight"
	set := customresource.PodSet{Count: 4}
	set.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus"}}
	queued.Spec.PodSets = []customresource.PodSet{set}
	queued.Status.Conditions = []metav1.Condition{{
		Type: "QuotaReserved", Status: metav1.ConditionFalse, Reason: "WaitingForQuota", LastTransitionTime: queued.CreationTimestamp,
		Message: "couldn't assign flavors to pod set main: insufficient unused quota for gpu.nvidia.com in flavor h100, 4 more needed",
	}}
	return []apiserver.Object{group, domain, queued}
}
