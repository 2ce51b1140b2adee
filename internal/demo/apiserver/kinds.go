package apiserver

import (
	"cmp"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
)

// Object is what can be put into the server.
type Object interface {
	runtime.Object
	metav1.Object
}

// kind describes one collection.
type kind struct {
	group      schema.GroupVersion
	name       string // Pod
	resource   string // pods
	namespaced bool
	empty      func() Object
	list       func() runtime.Object
	fields     func(Object) fields.Set // beyond those of the metadata
	custom     bool                    // a custom resource: sent as JSON alone
}

// gangKinds are collections that only some clusters serve: PodGroups, and custom
// resources of Kueue and of NVIDIA's driver.
func gangKinds() []kind {
	return []kind{
		{
			group: schedulingv1beta1.SchemeGroupVersion, name: "PodGroup", resource: "podgroups", namespaced: true, fields: noFields,
			empty: func() Object { return &schedulingv1beta1.PodGroup{} },
			list:  func() runtime.Object { return &schedulingv1beta1.PodGroupList{} },
		},
		{
			group: customresource.KueueV1beta2(), name: "Workload", resource: "workloads", namespaced: true, fields: noFields, custom: true,
			empty: func() Object { return &customresource.Workload{} },
			list:  func() runtime.Object { return &customresource.WorkloadList{} },
		},
		{
			group: customresource.NVIDIAV1beta1(), name: "ComputeDomain", resource: "computedomains", namespaced: true, fields: noFields, custom: true,
			empty: func() Object { return &customresource.ComputeDomain{} },
			list:  func() runtime.Object { return &customresource.ComputeDomainList{} },
		},
	}
}

func allKinds() []kind {
	core, dra := corev1.SchemeGroupVersion, resourcev1.SchemeGroupVersion
	return []kind{
		{
			group: core, name: "Node", resource: "nodes", namespaced: false, fields: noFields,
			empty: func() Object { return &corev1.Node{} },
			list:  func() runtime.Object { return &corev1.NodeList{} },
		},
		{
			group: core, name: "Pod", resource: "pods", namespaced: true, fields: podFields,
			empty: func() Object { return &corev1.Pod{} },
			list:  func() runtime.Object { return &corev1.PodList{} },
		},
		{
			group: core, name: "Event", resource: "events", namespaced: true, fields: eventFields,
			empty: func() Object { return &corev1.Event{} },
			list:  func() runtime.Object { return &corev1.EventList{} },
		},
		{
			group: dra, name: "DeviceTaintRule", resource: "devicetaintrules", namespaced: false, fields: noFields,
			empty: func() Object { return &resourcev1.DeviceTaintRule{} },
			list:  func() runtime.Object { return &resourcev1.DeviceTaintRuleList{} },
		},
		{
			group: dra, name: "DeviceClass", resource: "deviceclasses", namespaced: false, fields: noFields,
			empty: func() Object { return &resourcev1.DeviceClass{} },
			list:  func() runtime.Object { return &resourcev1.DeviceClassList{} },
		},
		{
			group: dra, name: "ResourceClaim", resource: "resourceclaims", namespaced: true, fields: noFields,
			empty: func() Object { return &resourcev1.ResourceClaim{} },
			list:  func() runtime.Object { return &resourcev1.ResourceClaimList{} },
		},
		{
			group: dra, name: "ResourceClaimTemplate", resource: "resourceclaimtemplates", namespaced: true, fields: noFields,
			empty: func() Object { return &resourcev1.ResourceClaimTemplate{} },
			list:  func() runtime.Object { return &resourcev1.ResourceClaimTemplateList{} },
		},
		{
			group: dra, name: "ResourceSlice", resource: "resourceslices", namespaced: false, fields: sliceFields,
			empty: func() Object { return &resourcev1.ResourceSlice{} },
			list:  func() runtime.Object { return &resourcev1.ResourceSliceList{} },
		},
	}
}

func noFields(Object) fields.Set { return fields.Set{} }

func podFields(o Object) fields.Set {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return fields.Set{}
	}
	return fields.Set{"spec.nodeName": pod.Spec.NodeName, "status.phase": string(pod.Status.Phase)}
}

func eventFields(o Object) fields.Set {
	event, ok := o.(*corev1.Event)
	if !ok {
		return fields.Set{}
	}
	return fields.Set{
		"reason": event.Reason, "type": event.Type, "source": cmp.Or(event.Source.Component, event.ReportingController),
		"involvedObject.kind": event.InvolvedObject.Kind, "involvedObject.name": event.InvolvedObject.Name,
		"involvedObject.namespace": event.InvolvedObject.Namespace, "involvedObject.uid": string(event.InvolvedObject.UID),
	}
}

func sliceFields(o Object) fields.Set {
	slice, ok := o.(*resourcev1.ResourceSlice)
	if !ok {
		return fields.Set{}
	}
	set := fields.Set{
		resourcev1.ResourceSliceSelectorNodeName: "",
		resourcev1.ResourceSliceSelectorDriver:   slice.Spec.Driver,
		resourcev1.ResourceSliceSelectorPoolName: slice.Spec.Pool.Name,
	}
	if slice.Spec.NodeName != nil {
		set[resourcev1.ResourceSliceSelectorNodeName] = *slice.Spec.NodeName
	}
	return set
}

// selectable are all fields that a selector may name.
func (k kind) selectable(o Object) fields.Set {
	set := k.fields(o)
	set["metadata.name"] = o.GetName()
	if k.namespaced {
		set["metadata.namespace"] = o.GetNamespace()
	}
	return set
}

// holds reports whether an object is of the kind, by its Go type.
func (k kind) holds(o Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(k.empty()) }
