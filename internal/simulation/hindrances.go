package simulation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hinder is what keeps a pod from being scheduled, and what the scheduler
// says of it. It does not say anything of a claim that is not there.
func (n *node) hinder(i *instance) error {
	rule := i.row.hindered.rule
	if rule == "" {
		return nil
	}
	if err := n.server.Put(i.rule()); err != nil {
		return err
	}
	return n.refuse(i)
}

// unhinder takes it away again.
func (n *node) unhinder(i *instance) error {
	hindered := i.row.hindered
	if hindered.rule != "" {
		return n.server.Delete(i.rule())
	}
	if hindered.unmade {
		i.claim.CreationTimestamp = metav1.NewTime(n.now())
		return n.server.Put(i.claim)
	}
	return n.changePods(i, func(pod *corev1.Pod) { ungate(pod) })
}

// ungate takes the gates away, and what the API server said about them.
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

// rule taints the instance's first device, and evicts who has it.
func (i *instance) rule() *resourcev1.DeviceTaintRule {
	return taintRule(i.row.hindered.rule, i.row.on(), i.row.claim.requests[0].devices[0], resourcev1.DeviceTaintEffectNoExecute)
}

// refuse: the scheduler finds no node on which the devices are to be had.
func (n *node) refuse(i *instance) error {
	return n.changePods(i, func(pod *corev1.Pod) { refuse(pod, corev1.PodReasonUnschedulable, onEachNode(cannotAllocate), n.now()) })
}

// attach: the devices can be bound now.
func (n *node) attach(i *instance) error {
	for _, of := range i.claim.Status.Allocation.Devices.Results {
		i.claim.Status.Devices = append(i.claim.Status.Devices, resourcev1.AllocatedDeviceStatus{
			Driver: of.Driver, Pool: of.Pool, Device: of.Device,
			Conditions: []metav1.Condition{{
				Type: conditionAttached, Status: metav1.ConditionTrue, Reason: "Attached", LastTransitionTime: metav1.NewTime(n.now()),
			}},
		})
	}
	return n.server.Put(i.claim)
}

// failPreparation: the driver does not answer in time, and the kubelet tries
// again.
func (n *node) failPreparation(i *instance) error {
	for _, pod := range i.pods {
		told := newEvent(pod, "FailedPrepareDynamicResources", "kubelet",
			fmt.Sprintf("Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed: rpc error: code = DeadlineExceeded desc = %s is restarting", driver), n.now())
		i.events = append(i.events, told)
		if err := n.server.Put(told); err != nil {
			return err
		}
	}
	return nil
}

// evict: a rule taints the device, and the pods that use it have to go.
func (n *node) evict(i *instance) error {
	if err := n.server.Put(i.rule()); err != nil {
		return err
	}
	return n.changePods(i, func(pod *corev1.Pod) { evict(pod, metav1.NewTime(n.now())) })
}
