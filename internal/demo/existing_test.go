package demo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// summaryOf returns a line with the relevant fields of a pod, a claim, an event
// or a rule.
func summaryOf(object apiserver.Object, now time.Time) string {
	age := now.Sub(object.GetCreationTimestamp().Time)
	switch of := object.(type) {
	case *corev1.Pod:
		words := []string{"pod", of.Namespace, string(of.Status.Phase), age.String()}
		for _, gate := range of.Spec.SchedulingGates {
			words = append(words, "gate", gate.Name)
		}
		for _, condition := range of.Status.Conditions {
			if condition.Status == corev1.ConditionFalse {
				words = append(words, condition.Reason+":", condition.Message)
			}
		}
		for _, status := range of.Status.ContainerStatuses {
			for _, resource := range status.AllocatedResourcesStatus {
				words = append(words, string(resource.Name), string(resource.Resources[0].ResourceID), string(resource.Resources[0].Health))
			}
		}
		return strings.Join(words, " ")
	case *resourcev1.ResourceClaim:
		words := []string{"claim", of.Namespace, age.String()}
		if of.DeletionTimestamp != nil {
			words = append(words, "deleted", now.Sub(of.DeletionTimestamp.Time).String(), strings.Join(of.Finalizers, ","))
		}
		if of.Status.Allocation != nil {
			for _, result := range of.Status.Allocation.Devices.Results {
				words = append(words, result.Pool+"/"+result.Device)
			}
			words = append(words, fmt.Sprintf("for %d", len(of.Status.ReservedFor)))
		}
		return strings.Join(words, " ")
	case *corev1.Event:
		return strings.Join([]string{"event", of.Namespace, of.Reason + ":", of.Message}, " ")
	case *resourcev1.DeviceTaintRule:
		return fmt.Sprintf("rule %s/%s %s", *of.Spec.DeviceSelector.Pool, *of.Spec.DeviceSelector.Device, of.Spec.Taint.Effect)
	case *schedulingv1beta1.PodGroup:
		return fmt.Sprintf("group %s %s of %d", of.Namespace, age, of.Spec.SchedulingPolicy.Gang.MinCount)
	case *customresource.ComputeDomain:
		return fmt.Sprintf("domain %s %s of %d %s", of.Namespace, age, of.Spec.NumNodes, of.Spec.Channel.ResourceClaimTemplate.Name)
	case *customresource.Workload:
		return fmt.Sprintf("workload %s %s of %d %s: %s", of.Namespace, age, of.Spec.PodSets[0].Count, of.Status.Conditions[0].Reason, of.Status.Conditions[0].Message)
	default:
		return ""
	}
}

func TestStaticObjects(t *testing.T) {
	now := time.Unix(1e9, 0)
	var lines []string
	for _, object := range existingObjects(1, now) {
		if line := summaryOf(object, now); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	const nowhere = "Unschedulable: 0/3 nodes are available: 3 cannot allocate all claims. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	expect(t, lines, strings.ReplaceAll(`
claim batch 2h0m0s
claim biology 20h0m0s gpu-node-2/gpu-7 for 1
claim biology 30h0m0s gpu-node-2/gpu-3 for 1
claim finance 2m0s
claim genomics 4m0s
claim hpc 20m0s
claim lab 6m0s
claim lab 72h0m0s
claim llm 26h0m0s
claim llm 3h12m0s
claim llm 5m0s
claim onboarding 17m0s
claim robotics 42m0s
claim speech 50h0m0s gpu-node-2/gpu-0 gpu-node-2/gpu-1 for 1
claim speech 90h0m0s deleted 1h30m0s resource.kubernetes.io/delete-protection gpu-node-2/gpu-2 for 1
domain llm 3m0s of 2 moe-channel
event students FailedResourceClaimCreation: PodResourceClaim gpus: create ResourceClaim : resourceclaims.resource.k8s.io "homework-0-gpus-" is forbidden: exceeded quota: students, requested: count/resourceclaims.resource.k8s.io=1, used: count/resourceclaims.resource.k8s.io=4, limited: count/resourceclaims.resource.k8s.io=4
group llm 5m0s of 2
pod batch Pending 2h0m0s gate kueue.x-k8s.io/admission SchedulingGated: Scheduling is blocked due to non-empty scheduling gates
pod biology Running 20h0m0s claim:gpu/gpu gpu.nvidia.com/gpu-node-2/gpu-7 Unhealthy
pod finance Pending 2m0s Unschedulable: 0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.
pod genomics Pending 4m0s NOWHERE
pod hpc Pending 20m0s NOWHERE
pod lab Pending 6m0s NOWHERE
pod llm Pending 26h0m0s NOWHERE
pod llm Pending 3h12m0s NOWHERE
pod llm Pending 3m0s
pod llm Pending 5m0s Unschedulable: waiting for minCount pods from a gang to appear in scheduling queue
pod onboarding Pending 11m0s
pod onboarding Pending 17m0s Unschedulable: 0/3 nodes are available: request gpu: device class gpu.acme.com does not exist. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.
pod robotics Pending 42m0s NOWHERE
pod speech Running 50h0m0s
pod speech Running 90h0m0s
pod students Pending 9m0s
pod web Pending 8m0s NOWHERE
rule gpu-node-1/gpu-7 NoSchedule
workload batch 26m0s of 4 WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for gpu.nvidia.com in flavor h100, 4 more needed`, "NOWHERE", nowhere))
}

// Devices of the two nodes have the same names, but are different devices.
func TestDevicesOfTwoNodes(t *testing.T) {
	here := workload{namespace: "a", name: "here", containers: []container{{name: "c"}}, claim: claim{name: "c", requests: []request{{name: "r", devices: []string{"gpu-2"}}}}}
	there := here
	there.name, there.node = "there", remoteNode
	taken := newReservations()
	if !taken.reserve(newInstance(here, 0, 1, time.Unix(0, 0))) || !taken.reserve(newInstance(there, 0, 1, time.Unix(0, 0))) {
		t.Error("gpu-2 of one node is taken with that of the other")
	}
	if got := devicePool(remoteNode, remoteFPGA); got != fabricPool {
		t.Errorf("the FPGA is in pool %s", got)
	}
}
