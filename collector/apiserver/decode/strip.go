package decode

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// StripPod returns a pod with the same record, without environment, volumes,
// other annotations, other labels, managed fields and everything else that is
// large.
func StripPod(pod *corev1.Pod, fields PodFields) *corev1.Pod {
	light := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:         pod.Namespace,
		Name:              pod.Name,
		UID:               pod.UID,
		ResourceVersion:   pod.ResourceVersion,
		DeletionTimestamp: pod.DeletionTimestamp,
		OwnerReferences:   stripOwners(pod.OwnerReferences),
	}}
	labels := fields.Labels
	if fields.Workloads != nil {
		labels = slices.Concat(fields.Workloads.keys, labels)
		for _, key := range fields.Workloads.keys {
			if value, ok := pod.Annotations[key]; ok {
				// One byte more than is read, so that what is read is cut in the same way.
				metav1.SetMetaDataAnnotation(&light.ObjectMeta, key, strings.Clone(value[:min(len(value), maxName+1)]))
			}
		}
	}
	for _, key := range labels {
		if value, ok := pod.Labels[key]; ok {
			metav1.SetMetaDataLabel(&light.ObjectMeta, key, value)
		}
	}
	if static, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		metav1.SetMetaDataAnnotation(&light.ObjectMeta, corev1.MirrorPodAnnotationKey, static)
	}
	light.Spec.NodeName, light.Spec.SchedulingGroup = pod.Spec.NodeName, pod.Spec.SchedulingGroup
	light.Spec.ResourceClaims = atMost(pod.Spec.ResourceClaims, maxNodeReferences)
	light.Spec.InitContainers = stripContainers(pod.Spec.InitContainers)
	light.Spec.Containers = stripContainers(pod.Spec.Containers)
	light.Status.Phase = pod.Status.Phase
	light.Status.ResourceClaimStatuses = pod.Status.ResourceClaimStatuses
	light.Status.ExtendedResourceClaimStatus = pod.Status.ExtendedResourceClaimStatus
	light.Status.InitContainerStatuses = stripStatuses(pod.Status.InitContainerStatuses)
	light.Status.ContainerStatuses = stripStatuses(pod.Status.ContainerStatuses)
	light.Status.EphemeralContainerStatuses = stripStatuses(pod.Status.EphemeralContainerStatuses)
	return light
}

// stripOwners keeps the controller, of which the kind and the name are read, and
// a PodGroup.
func stripOwners(owners []metav1.OwnerReference) []metav1.OwnerReference {
	var light []metav1.OwnerReference
	controllers, groups := 0, 0
	for _, owner := range owners {
		switch {
		case owner.Controller != nil && *owner.Controller && controllers == 0:
			controllers++
		case owner.Kind == podGroupKind && groups == 0:
			groups++
		default:
			continue
		}
		owner.APIVersion, owner.Kind = shortText(owner.APIVersion, maxName), shortText(owner.Kind, maxName)
		owner.Name, owner.UID = shortText(owner.Name, maxName), types.UID(shortText(string(owner.UID), maxUID))
		light = append(light, owner)
	}
	return light
}

func stripContainers(containers []corev1.Container) []corev1.Container {
	light := make([]corev1.Container, min(len(containers), maxContainers))
	for i := range light {
		light[i].Name = containers[i].Name
		light[i].Resources.Limits = containers[i].Resources.Limits
		light[i].Resources.Claims = containers[i].Resources.Claims
	}
	return light
}

func stripStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	light := make([]corev1.ContainerStatus, min(len(statuses), maxContainers))
	for i := range light {
		light[i].Name, light[i].ContainerID = statuses[i].Name, statuses[i].ContainerID
		light[i].State = stripState(statuses[i].State)
		light[i].AllocatedResourcesStatus = statuses[i].AllocatedResourcesStatus
	}
	return light
}

// stripState leaves out why a container waits or has ended: its message may
// contain anything.
func stripState(state corev1.ContainerState) corev1.ContainerState {
	light := corev1.ContainerState{Running: state.Running}
	if state.Terminated != nil {
		light.Terminated = &corev1.ContainerStateTerminated{}
	}
	return light
}

// StripNodeSlice returns a slice with the same record, without shared counters,
// owners and managed fields.
func StripNodeSlice(slice *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	light := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
		Name:              slice.Name,
		ResourceVersion:   slice.ResourceVersion,
		CreationTimestamp: slice.CreationTimestamp,
	}}
	light.Spec = slice.Spec
	light.Spec.SharedCounters = nil
	light.Spec.NodeSelector = nil
	return light
}

// Allocation is simulated with objects that have no managed fields, labels,
// annotations, configuration of drivers and status of devices. The functions
// below return nil for nil.

// stripMetadata keeps of metadata what identifies an object.
func stripMetadata(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion, Generation: meta.Generation,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
	}
}

// StripClaim keeps the requests of a claim and what it was allocated.
func StripClaim(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	if claim == nil {
		return nil
	}
	light := &resourcev1.ResourceClaim{ObjectMeta: stripMetadata(claim.ObjectMeta), Spec: claim.Spec, Status: claim.Status}
	light.Spec.Devices.Config = nil
	light.Status.Devices = nil
	if claim.Status.Allocation != nil {
		allocation := *claim.Status.Allocation
		allocation.Devices.Config = nil
		light.Status.Allocation = &allocation
	}
	return light
}

// StripTemplate keeps the requests of a template.
func StripTemplate(template *resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaimTemplate {
	if template == nil {
		return nil
	}
	light := &resourcev1.ResourceClaimTemplate{ObjectMeta: stripMetadata(template.ObjectMeta)}
	light.Spec.Spec = template.Spec.Spec
	light.Spec.Spec.Devices.Config = nil
	return light
}

// StripSlice keeps the whole specification of a slice.
func StripSlice(slice *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	if slice == nil {
		return nil
	}
	return &resourcev1.ResourceSlice{ObjectMeta: stripMetadata(slice.ObjectMeta), Spec: slice.Spec}
}

// StripClass keeps the selectors of a class.
func StripClass(class *resourcev1.DeviceClass) *resourcev1.DeviceClass {
	if class == nil {
		return nil
	}
	light := &resourcev1.DeviceClass{ObjectMeta: stripMetadata(class.ObjectMeta), Spec: class.Spec}
	light.Spec.Config = nil
	return light
}

// StripRule keeps the specification of a taint rule, and of its status how far
// the eviction of pods has come, unless that is about an earlier specification.
func StripRule(rule *resourcev1.DeviceTaintRule) *resourcev1.DeviceTaintRule {
	if rule == nil {
		return nil
	}
	light := &resourcev1.DeviceTaintRule{ObjectMeta: stripMetadata(rule.ObjectMeta), Spec: rule.Spec}
	eviction := meta.FindStatusCondition(rule.Status.Conditions, resourcev1.DeviceTaintConditionEvictionInProgress)
	if eviction != nil && eviction.ObservedGeneration >= rule.Generation {
		light.Status.Conditions = []metav1.Condition{{
			Type: resourcev1.DeviceTaintConditionEvictionInProgress, Status: metav1.ConditionStatus(shortText(string(eviction.Status), maxUID)),
			Reason: shortText(eviction.Reason, maxName), Message: shortText(eviction.Message, maxMessage),
		}}
	}
	return light
}

// allocatable returns what pods can take of a node.
func allocatable(node *corev1.Node) corev1.ResourceList {
	kept := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if amount, ok := node.Status.Allocatable[name]; ok {
			kept[name] = amount
		}
	}
	for name, amount := range node.Status.Allocatable {
		if amount.Sign() > 0 && len(kept) < maxOthers {
			kept[name] = amount
		}
	}
	return kept
}

// StripNode keeps what node selectors select by, and what decides whether pods
// can be bound to the node. It has no version, because that changes with every
// heartbeat.
func StripNode(node *corev1.Node) *corev1.Node {
	if node == nil {
		return nil
	}
	light := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, Labels: node.Labels}}
	for _, key := range []string{dra.DoNotDisrupt, dra.ScaleDownDisabled} {
		if node.Annotations[key] == "true" {
			light.Annotations = map[string]string{key: "true"}
		}
	}
	light.Spec.Unschedulable = node.Spec.Unschedulable
	light.Spec.Taints = node.Spec.Taints
	light.Status.Allocatable = allocatable(node)
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			light.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	light.Status.DeclaredFeatures = node.Status.DeclaredFeatures
	light.Status.NodeInfo.KubeletVersion = node.Status.NodeInfo.KubeletVersion
	return light
}
