package demo

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newPod is a pod of the workload as its controller creates it.
func newPod(row workload, meta metav1.ObjectMeta) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: meta}
	if name := row.claim.name; name != "" {
		reference := corev1.PodResourceClaim{Name: name, ResourceClaimName: &name}
		if row.claim.template != "" {
			reference = corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: &row.claim.template}
		}
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{reference}
	}
	if row.group != "" {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &row.group}
	}
	for at, c := range row.containers {
		made := corev1.Container{Name: c.name, Image: c.image, Resources: resourceRequirements(row, c, at == 0)}
		if c.init > 0 {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, made)
			continue
		}
		pod.Spec.Containers = append(pod.Spec.Containers, made)
	}
	if gate := row.delayed.gate; gate != "" {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
		setUnscheduled(pod, corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates", meta.CreationTimestamp.Time)
	}
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	if row.owner == ownedByJob {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	pod.Status.Phase = corev1.PodPending
	return pod
}

// resourceRequirements returns the resources of a container: the claim, or else the
// first container an extended resource.
func resourceRequirements(row workload, c container, first bool) corev1.ResourceRequirements {
	ask := func(name string, count int) corev1.ResourceRequirements {
		list := corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(int64(count), resource.DecimalSI)}
		return corev1.ResourceRequirements{Limits: list, Requests: list}
	}
	switch {
	case row.claim.name != "":
		return corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: row.claim.name, Request: c.request}}}
	case first && row.claim.extended != "":
		return ask(row.claim.extended, max(row.claim.requests[0].count, 1))
	case first && len(row.plugin) > 0:
		return ask(gpuByPlugin, 1)
	default:
		return corev1.ResourceRequirements{}
	}
}

// nameClaim writes the name of the generated claim into the pod's status.
func nameClaim(pod *corev1.Pod, row workload, name string) {
	switch {
	case row.claim.template != "":
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: row.claim.name, ResourceClaimName: &name}}
	case row.claim.extended != "":
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: name,
			RequestMappings: []corev1.ContainerExtendedResourceRequest{{
				ContainerName: row.containers[0].name, ResourceName: row.claim.extended, RequestName: row.claim.requests[0].name,
			}},
		}
	}
}

// bind puts a pod on a node; its containers wait.
func bind(pod *corev1.Pod, node string, at time.Time) {
	pod.Spec.NodeName = node
	pod.Status.StartTime = new(metav1.NewTime(at))
	setConditionTrue(pod, corev1.PodScheduled, at)
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	pod.Status.InitContainerStatuses = statuses(pod.Spec.InitContainers, waiting)
	pod.Status.ContainerStatuses = statuses(pod.Spec.Containers, waiting)
}

// ready: the devices are prepared and the sandbox is made; nothing runs yet.
func ready(pod *corev1.Pod, at time.Time) {
	setConditionTrue(pod, corev1.PodReadyToStartContainers, at)
}

// startInit starts the init containers.
func startInit(pod *corev1.Pod, at time.Time) {
	pod.Status.InitContainerStatuses = statuses(pod.Spec.InitContainers, running(at))
}

// startMain ends the init containers and starts the main ones.
func startMain(pod *corev1.Pod, at time.Time) {
	setConditionTrue(pod, corev1.PodInitialized, at)
	setConditionTrue(pod, corev1.PodReady, at)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.InitContainerStatuses = statuses(pod.Spec.InitContainers, completed(at))
	pod.Status.ContainerStatuses = statuses(pod.Spec.Containers, running(at))
}

// end ends all containers; phase is what becomes of the pod.
func end(pod *corev1.Pod, phase corev1.PodPhase, at time.Time) {
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = statuses(pod.Spec.Containers, completed(at))
}

func statuses(containers []corev1.Container, state corev1.ContainerState) []corev1.ContainerStatus {
	var made []corev1.ContainerStatus
	for _, c := range containers {
		up := state.Running != nil
		made = append(made, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state, Ready: up, Started: &up})
	}
	return made
}

func running(start time.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start)}}
}

func completed(at time.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.NewTime(at)}}
}

// setConditionTrue makes a condition of the pod true, unless it is already.
func setConditionTrue(pod *corev1.Pod, kind corev1.PodConditionType, at time.Time) {
	setCondition(pod, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)})
}

// setCondition replaces the condition of the same type. The transition time stays
// if the status does not change.
func setCondition(pod *corev1.Pod, condition corev1.PodCondition) {
	for i, known := range pod.Status.Conditions {
		if known.Type != condition.Type {
			continue
		}
		if known.Status == condition.Status {
			condition.LastTransitionTime = known.LastTransitionTime
		}
		pod.Status.Conditions[i] = condition
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

// evict sets the condition that the device taint eviction controller writes
// before it deletes a pod.
func evict(pod *corev1.Pod, at metav1.Time) {
	setCondition(pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: at,
		Reason: "DeletionByDeviceTaintManager", Message: "Device Taint manager: deleting due to NoExecute taint",
	})
	pod.DeletionTimestamp = &at
}

// ungate removes the gates, and the API server's condition about them.
func ungate(pod *corev1.Pod) {
	pod.Spec.SchedulingGates = nil
	kept := pod.Status.Conditions[:0]
	for _, condition := range pod.Status.Conditions {
		if condition.Reason != corev1.PodReasonSchedulingGated {
			kept = append(kept, condition)
		}
	}
	pod.Status.Conditions = kept
}

// newEvent is a warning about a pod. Its name follows from the pod and the
// reason, so that a repeated warning is the same event.
func newEvent(pod *corev1.Pod, reason, component, message string, at time.Time) *corev1.Event {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(string(pod.UID) + reason)) // never fails
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%016x", pod.Name, hash.Sum64()), CreationTimestamp: metav1.NewTime(at),
		},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		Count: 1, FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at),
	}
}

// setUnscheduled writes the reason why the pod is not scheduled.
func setUnscheduled(pod *corev1.Pod, reason, message string, at time.Time) {
	setCondition(pod, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at),
	})
}

// nodes is the number of nodes.
const nodes = 3

// The messages of the scheduler (kube-scheduler 1.37: FitError of its
// framework, and the plugins DynamicResources, NodeResourcesFit and
// DefaultPreemption), as far as the scenario needs them.

// onEachNode returns the message if a plugin refuses every node for one reason,
// and pods of lower priority could not help.
func onEachNode(reason string) string {
	return fmt.Sprintf("0/%d nodes are available: %d %s. %s", nodes, nodes, reason, noPreemption("Preemption is not helpful for scheduling"))
}

// forAllNodes is the message where a plugin refuses the pod before it looks at
// any node.
func forAllNodes(reason string) string {
	return fmt.Sprintf("0/%d nodes are available: %s. %s", nodes, reason, noPreemption("Preemption is not helpful for scheduling"))
}

// withoutVictims is the message where pods of lower priority could help, if there
// were any.
func withoutVictims(reason string) string {
	return fmt.Sprintf("0/%d nodes are available: %d %s. %s", nodes, nodes, reason, noPreemption("No preemption victims found for incoming pod"))
}

func noPreemption(why string) string {
	return fmt.Sprintf("preemption: 0/%d nodes are available: %d %s.", nodes, nodes, why)
}

// cannotAllocate is the message of DynamicResources for a node without the
// devices of a pod's claims.
const cannotAllocate = "cannot allocate all claims"
