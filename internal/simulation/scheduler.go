package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refuse says on the pod why it is not scheduled.
func refuse(pod *corev1.Pod, reason, message string, at time.Time) {
	tell(pod, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at),
	})
}

// nodes is how many there are to schedule on.
const nodes = 2

// The messages of the scheduler (kube-scheduler 1.37: FitError of its
// framework, and the plugins DynamicResources, NodeResourcesFit and
// DefaultPreemption), so far as the scenario needs them.

// onEachNode is the message where a plugin refuses every node for one reason,
// and pods of lower priority could not help.
func onEachNode(reason string) string {
	return fmt.Sprintf("0/%d nodes are available: %d %s. %s", nodes, nodes, reason, noPreemption("Preemption is not helpful for scheduling"))
}

// forAllNodes is the message where a plugin refuses the pod before it looks at
// any node.
func forAllNodes(reason string) string {
	return fmt.Sprintf("0/%d nodes are available: %s. %s", nodes, reason, noPreemption("Preemption is not helpful for scheduling"))
}

// crowded is the message where pods of lower priority could help, if there
// were any.
func crowded(reason string) string {
	return fmt.Sprintf("0/%d nodes are available: %d %s. %s", nodes, nodes, reason, noPreemption("No preemption victims found for incoming pod"))
}

func noPreemption(why string) string {
	return fmt.Sprintf("preemption: 0/%d nodes are available: %d %s.", nodes, nodes, why)
}

// cannotAllocate is what DynamicResources says of a node on which the devices
// for a pod's claims are not to be had.
const cannotAllocate = "cannot allocate all claims"
