package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The keeper is given objects without what nobody asks it for: who manages
// the object, what drivers are configured with, what they wrote of devices.
// Of one that is gone it is nil.

// lightMeta is what is left of an object's metadata.
func lightMeta(of metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: of.Namespace, Name: of.Name, UID: of.UID, ResourceVersion: of.ResourceVersion, Generation: of.Generation,
		CreationTimestamp: of.CreationTimestamp, DeletionTimestamp: of.DeletionTimestamp,
	}
}

func lightClaim(claim *resourcev1.ResourceClaim, kept bool) *resourcev1.ResourceClaim {
	if !kept {
		return nil
	}
	light := &resourcev1.ResourceClaim{ObjectMeta: lightMeta(claim.ObjectMeta), Spec: claim.Spec, Status: claim.Status}
	light.Spec.Devices.Config = nil
	light.Status.Devices = nil
	if claim.Status.Allocation != nil {
		allocation := *claim.Status.Allocation
		allocation.Devices.Config = nil
		light.Status.Allocation = &allocation
	}
	return light
}

func lightTemplate(template *resourcev1.ResourceClaimTemplate, kept bool) *resourcev1.ResourceClaimTemplate {
	if !kept {
		return nil
	}
	light := &resourcev1.ResourceClaimTemplate{ObjectMeta: lightMeta(template.ObjectMeta)}
	light.Spec.Spec = template.Spec.Spec
	light.Spec.Spec.Devices.Config = nil
	return light
}

func lightSlice(slice *resourcev1.ResourceSlice, kept bool) *resourcev1.ResourceSlice {
	if !kept {
		return nil
	}
	return &resourcev1.ResourceSlice{ObjectMeta: lightMeta(slice.ObjectMeta), Spec: slice.Spec}
}

func lightClass(class *resourcev1.DeviceClass, kept bool) *resourcev1.DeviceClass {
	if !kept {
		return nil
	}
	light := &resourcev1.DeviceClass{ObjectMeta: lightMeta(class.ObjectMeta), Spec: class.Spec}
	light.Spec.Config = nil
	return light
}

func lightRule(rule *resourcev1.DeviceTaintRule, kept bool) *resourcev1.DeviceTaintRule {
	if !kept {
		return nil
	}
	return &resourcev1.DeviceTaintRule{ObjectMeta: lightMeta(rule.ObjectMeta), Spec: rule.Spec}
}

// lightNode has what node selectors look at, and what decides whether pods
// can come to the node: no version, because that is always another.
func lightNode(node *corev1.Node, kept bool) *corev1.Node {
	if !kept {
		return nil
	}
	light := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, Labels: node.Labels}}
	light.Spec.Unschedulable = node.Spec.Unschedulable
	light.Status.DeclaredFeatures = node.Status.DeclaredFeatures
	light.Status.NodeInfo.KubeletVersion = node.Status.NodeInfo.KubeletVersion
	return light
}
