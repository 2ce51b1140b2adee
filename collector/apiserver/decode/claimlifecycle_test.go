package decode

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// second returns a time as the API server writes it.
func second(n int) metav1.Time { return metav1.Unix(1_800_000_000+int64(n), 0) }

func on(n int) time.Time { return second(n).UTC() }

func TestClaimLifecycle(t *testing.T) {
	yes, grace := true, int64(30)
	allocatedAt, deletion := second(3), second(40)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "train-gpu-x7k2p", UID: "claim-1", CreationTimestamp: second(0),
		DeletionTimestamp: &deletion, DeletionGracePeriodSeconds: &grace,
		Annotations:     map[string]string{"resource.kubernetes.io/pod-claim-name": "gpu", "resource.kubernetes.io/extended-resource-claim": "true"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "j"}, {APIVersion: "v1", Kind: "Pod", Name: "train", UID: "pod-1", Controller: &yes}},
		Finalizers:      []string{"resource.kubernetes.io/delete-protection"},
	}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{
		{Name: "main", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "big", DeviceClassName: "z-large"}, {Name: "small", DeviceClassName: "a-small"}}},
		{Name: "watch", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "z-large", AllocationMode: "All"}},
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{
		AllocationTimestamp: &allocatedAt,
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"node-a"}}},
		}}},
	}
	claim.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{
		{Request: "main/small", Driver: "gpu.example.com", Pool: "node-a", Device: "gpu-3", ShareID: new(types.UID("s"))},
		{Request: "watch", Driver: "gpu.example.com", Pool: "node-a", Device: "gpu-4", AdminAccess: &yes},
	}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "train", UID: "pod-1"}}
	want := dra.ClaimLifecycle{
		Ref: dra.ClaimRef{Namespace: "lab", Name: "train-gpu-x7k2p"}, UID: "claim-1",
		Created: on(0), Deleted: on(10),
		MadeFor:  dra.Consumer{Resource: "pods", Name: "train", UID: "pod-1"},
		PodClaim: "gpu", ExtendedResource: true,
		Classes: []string{"a-small", "z-large"}, AllDevices: true,
		Allocated: true, AllocatedAt: on(3), Node: "node-a",
		Results: []dra.AllocatedDevice{
			{Request: "main/small", Class: "a-small", Device: dra.DeviceID{Driver: "gpu.example.com", Pool: "node-a", Name: "gpu-3"}, Shared: true},
			{Request: "watch", Class: "z-large", Device: dra.DeviceID{Driver: "gpu.example.com", Pool: "node-a", Name: "gpu-4"}, AdminAccess: true},
		},
		ReservedFor: []dra.Consumer{{Resource: "pods", Name: "train", UID: "pod-1"}},
		Finalizers:  []string{"resource.kubernetes.io/delete-protection"},
	}
	if got := ClaimLifecycle(claim); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestMadeFor(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		owner metav1.OwnerReference
		want  dra.Consumer
	}{
		"a pod":                          {metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "1", Controller: &yes}, dra.Consumer{Resource: "pods", Name: "a", UID: "1"}},
		"a group":                        {metav1.OwnerReference{APIVersion: "scheduling.k8s.io/v1alpha2", Kind: "PodGroup", Name: "a", UID: "1", Controller: &yes}, dra.Consumer{Resource: "podgroups", Name: "a", UID: "1"}},
		"an owner that is no controller": {metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "1", Controller: &no}, dra.Consumer{}},
		"another kind of pod":            {metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Pod", Name: "a", UID: "1", Controller: &yes}, dra.Consumer{}},
		"another kind of group":          {metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "PodGroup", Name: "a", UID: "1", Controller: &yes}, dra.Consumer{}},
		"an operator":                    {metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a", UID: "1", Controller: &yes}, dra.Consumer{}},
	} {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{c.owner}}}
		if got := madeFor(claim); got != c.want {
			t.Errorf("%s: made for %+v", name, got)
		}
	}
}

func TestBindingConditions(t *testing.T) {
	changed := map[string]metav1.Time{"Ready": second(5), "Attached": second(4), "Broken": second(9)}
	device := func(name string, conditions, failures []string) resourcev1.DeviceRequestAllocationResult {
		return resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: name, BindingConditions: conditions, BindingFailureConditions: failures}
	}
	status := func(device string, conditions map[string]metav1.ConditionStatus) resourcev1.AllocatedDeviceStatus {
		made := resourcev1.AllocatedDeviceStatus{Driver: "d", Pool: "p", Device: device}
		for name, is := range conditions {
			made.Conditions = append(made.Conditions, metav1.Condition{Type: name, Status: is, ObservedGeneration: 7, LastTransitionTime: changed[name]})
		}
		return made
	}
	type is = map[string]metav1.ConditionStatus
	since := map[dra.Binding]time.Time{dra.BindingDone: on(5), dra.BindingFailed: on(9)}
	ready, broken := []string{"Ready", "Attached"}, []string{"Broken"}
	for name, c := range map[string]struct {
		devices  []resourcev1.DeviceRequestAllocationResult
		statuses []resourcev1.AllocatedDeviceStatus
		want     dra.Binding
	}{
		"none":                             {[]resourcev1.DeviceRequestAllocationResult{device("a", nil, nil)}, nil, dra.BindingNone},
		"no condition yet":                 {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, broken)}, nil, dra.BindingWaiting},
		"one of two":                       {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, broken)}, []resourcev1.AllocatedDeviceStatus{status("a", is{"Ready": "True", "Attached": "False"})}, dra.BindingWaiting},
		"both":                             {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, broken)}, []resourcev1.AllocatedDeviceStatus{status("a", is{"Ready": "True", "Attached": "True", "Broken": "False"})}, dra.BindingDone},
		"of another device":                {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, broken)}, []resourcev1.AllocatedDeviceStatus{status("b", is{"Ready": "True", "Attached": "True"})}, dra.BindingWaiting},
		"broken though ready":              {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, broken)}, []resourcev1.AllocatedDeviceStatus{status("a", is{"Ready": "True", "Attached": "True", "Broken": "True"})}, dra.BindingFailed},
		"one waits, one is done":           {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, nil), device("b", ready, nil)}, []resourcev1.AllocatedDeviceStatus{status("b", is{"Ready": "True", "Attached": "True"})}, dra.BindingWaiting},
		"one waits, one is broken":         {[]resourcev1.DeviceRequestAllocationResult{device("a", ready, nil), device("b", ready, broken)}, []resourcev1.AllocatedDeviceStatus{status("b", is{"Broken": "True"})}, dra.BindingFailed},
		"failures without conditions":      {[]resourcev1.DeviceRequestAllocationResult{device("a", nil, broken)}, []resourcev1.AllocatedDeviceStatus{status("a", is{"Broken": "True"})}, dra.BindingNone},
		"one without conditions, one done": {[]resourcev1.DeviceRequestAllocationResult{device("a", nil, nil), device("b", ready, nil)}, []resourcev1.AllocatedDeviceStatus{status("b", is{"Ready": "True", "Attached": "True"})}, dra.BindingDone},
	} {
		claim := &resourcev1.ResourceClaim{}
		claim.Status.Allocation = &resourcev1.AllocationResult{}
		claim.Status.Allocation.Devices.Results, claim.Status.Devices = c.devices, c.statuses
		if got := ClaimLifecycle(claim); got.Binding != c.want || !got.BindingSince.Equal(since[c.want]) {
			t.Errorf("%s: %d since %v, want %d since %v", name, got.Binding, got.BindingSince, c.want, since[c.want])
		}
	}
}

// Kubernetes' own finalizer is kept at any position, because explain reports
// what keeps a claim.
func TestFinalizers(t *testing.T) {
	claim := &resourcev1.ResourceClaim{}
	for i := range 30 {
		claim.Finalizers = append(claim.Finalizers, fmt.Sprintf("example.com/%d", i))
	}
	if got := claimFinalizers(claim); len(got) != maxFinalizers || got[15] != "example.com/15" {
		t.Errorf("%q", got)
	}
	claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
	if got := claimFinalizers(claim); len(got) != maxFinalizers || !slices.Contains(got, resourcev1.Finalizer) || claim.Finalizers[15] != "example.com/15" {
		t.Errorf("%q of %q", got, claim.Finalizers)
	}
	claim.Finalizers = nil
	if got := claimFinalizers(claim); got != nil {
		t.Errorf("%q", got)
	}
}

// A driver is called unless all its devices skip the call, so that nothing is
// prepared only if all devices of the claim skip it.
func TestClaimWithoutPreparation(t *testing.T) {
	const (
		all       = resourcev1.SkipNodeOperationAll
		prepare   = resourcev1.SkipNodeOperationNodePrepareResources
		unprepare = resourcev1.SkipNodeOperationNodeUnprepareResources
	)
	type skip = []resourcev1.SkipNodeOperation
	for name, test := range map[string]struct {
		skips []skip
		want  bool
	}{
		"no device":                   {nil, false},
		"everything is skipped":       {[]skip{{all}}, true},
		"both calls are skipped":      {[]skip{{prepare, unprepare}, {all}}, true},
		"it is only not unprepared":   {[]skip{{unprepare}}, false},
		"one device is prepared":      {[]skip{{all}, nil}, false},
		"a value that is not known":   {[]skip{{"NodeFuture"}}, false},
		"also a value that is not":    {[]skip{{"NodeFuture", prepare, unprepare}}, true},
		"nothing is said about it":    {[]skip{nil}, false},
		"two devices that skip a lot": {[]skip{{prepare, unprepare}, {prepare, unprepare}}, true},
	} {
		claim := &resourcev1.ResourceClaim{Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}}}
		for i, operations := range test.skips {
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
				resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: string(rune('a' + i)), SkipNodeOperations: operations})
		}
		if got := ClaimLifecycle(claim).NoPreparation; got != test.want {
			t.Errorf("%s: no preparation: %v", name, got)
		}
	}
	if ClaimLifecycle(&resourcev1.ResourceClaim{}).NoPreparation {
		t.Error("a claim that is not allocated may be prepared")
	}
}
