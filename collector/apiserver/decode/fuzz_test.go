package decode

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// checkText fails if a string anywhere in the value is not valid UTF-8.
func checkText(t *testing.T, value any) {
	t.Helper()
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			if !utf8.ValidString(v.String()) {
				t.Errorf("%q is not UTF-8 in %+v", v.String(), value)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				walk(key)
				walk(v.MapIndex(key))
			}
		}
	}
	walk(reflect.ValueOf(value))
}

func FuzzOpaqueJSON(f *testing.F) {
	for _, seed := range []string{
		`{"sharing":{"strategy":"MPS"}}`, `{"uuid":"GPU-1","pciAddress":"0000:c1:00.0"}`,
		`{"uuid":{"string":"a"},"pciBusID":{"string":"c1:00.0"}}`, `null`, `[]`, `{"uuid":"` + "\xff" + `"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		switch strategy := vendors.SharingStrategy(data); strategy {
		case "", "time_slicing", "mps":
		default:
			t.Errorf("strategy %q", strategy)
		}
		members := jsonMembers(data)
		uuid, address := members.UUID(), members.Address()
		checkText(t, uuid)
		if address != "" && vendors.PCIAddress(address) != address {
			t.Errorf("address %q is not normalized", address)
		}
	})
}

// FuzzObjects decodes protobuf, whose strings are not checked.
func FuzzObjects(f *testing.F) {
	for _, name := range snapshots() {
		captured := readSnapshot(f, name)
		for i := range captured.pods {
			f.Add(marshal(f, &captured.pods[i]))
		}
		for i := range captured.claims {
			f.Add(marshal(f, &captured.claims[i]))
		}
		for i := range captured.slices {
			f.Add(marshal(f, &captured.slices[i]))
		}
	}
	// Kubernetes itself takes minutes to parse 1e-99999999, so no API server
	// can have stored it.
	minute := regexp.MustCompile(`[eE]-?[0-9]{4}`)
	workloads := DefaultWorkloads()
	f.Fuzz(func(t *testing.T, data []byte) {
		if minute.Match(data) {
			t.Skip()
		}
		if pod := (&corev1.Pod{}); pod.Unmarshal(data) == nil {
			fields := PodFields{Labels: []string{"team"}, Workloads: workloads}
			checkText(t, Pod(pod, fields))
			whole, _ := NewPodRecord(pod, fields)
			light, _ := NewPodRecord(StripPod(pod, fields), fields)
			if !reflect.DeepEqual(whole, light) {
				t.Errorf("stripped, the pod decodes to %+v, not %+v", light, whole)
			}
		}
		if claim := (&resourcev1.ResourceClaim{}); claim.Unmarshal(data) == nil {
			checkText(t, Claim(claim))
		}
		if slice := (&resourcev1.ResourceSlice{}); slice.Unmarshal(data) == nil {
			checkText(t, NewSliceRecord(slice))
		}
	})
}

func marshal(f *testing.F, object interface{ Marshal() ([]byte, error) }) []byte {
	f.Helper()
	data, err := object.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	return data
}

// FuzzLifecycles decodes protobuf, whose strings are not checked, with all
// decoders of the cluster role. Stripped objects must decode to the same
// values. The kept part of an object is within the limits, whatever the
// object's size.
func FuzzLifecycles(f *testing.F) {
	for _, name := range snapshots() {
		captured := readSnapshot(f, name)
		for i := range captured.pods {
			f.Add(marshal(f, &captured.pods[i]))
		}
		for i := range captured.claims {
			f.Add(marshal(f, &captured.claims[i]))
		}
	}
	f.Add(marshal(f, &corev1.Event{Reason: ReasonCreation, Message: "\xff", Count: -1, InvolvedObject: corev1.ObjectReference{Name: "\xff"}}))
	f.Add(marshal(f, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "\xff"}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.0"}}}))
	f.Add(marshal(f, &schedulingv1beta1.PodGroup{Spec: schedulingv1beta1.PodGroupSpec{ResourceClaims: []schedulingv1beta1.PodGroupResourceClaim{{Name: "\xff"}}}}))
	f.Add(marshal(f, &resourcev1alpha3.DeviceTaintRule{Spec: resourcev1alpha3.DeviceTaintRuleSpec{DeviceSelector: &resourcev1alpha3.DeviceTaintSelector{}}}))
	long := strings.Repeat("l", 5000)
	yes := true
	heavy := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "claim", UID: "claim-1", Annotations: map[string]string{resourcev1.PodResourceClaimAnnotation: long},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: long, UID: types.UID(long), Controller: &yes}},
		Finalizers:      append(slices.Repeat([]string{long}, 20), resourcev1.Finalizer),
	}}
	heavy.Status.Allocation = &resourcev1.AllocationResult{}
	heavy.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: "node-a", Device: "gpu-0"}}
	for i := range 12 {
		heavy.Spec.Devices.Requests = append(heavy.Spec.Devices.Requests, resourcev1.DeviceRequest{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: strconv.Itoa(i)}})
	}
	f.Add(marshal(f, heavy))
	f.Add(marshal(f, podWithClaims(200)))
	f.Add(marshal(f, &corev1.Event{Reason: ReasonCreation, Message: long, InvolvedObject: corev1.ObjectReference{Name: long, UID: types.UID(long)}}))
	minute := regexp.MustCompile(`[eE][-+]?[0-9]{4}`) // see FuzzObjects
	f.Fuzz(func(t *testing.T, data []byte) {
		if minute.Match(data) {
			t.Skip()
		}
		fuzzClaimLifecycle(t, data)
		fuzzPodLifecycle(t, data)
		if event := (&corev1.Event{}); event.Unmarshal(data) == nil {
			if scaling, ok := Autoscaling(event); ok && (scaling.Autoscaler == "" || scaling.State == "") {
				t.Errorf("an event without a state: %+v", scaling)
			}
			if warning, ok := Warning(event); ok && warning.Count < 1 {
				t.Errorf("the count is %d", warning.Count)
			} else {
				if len(warning.Message) > 3*maxMessage || len(warning.Pod.Name) > 3*maxName || len(warning.PodUID) > 3*maxUID {
					t.Errorf("long texts are kept: %+v", warning)
				}
				checkText(t, warning)
			}
		}
		if group := (&schedulingv1beta1.PodGroup{}); group.Unmarshal(data) == nil {
			checkText(t, Group(group))
		}
		if node := (&corev1.Node{}); node.Unmarshal(data) == nil {
			checkText(t, Node(node, DefaultTopology()))
			if !reflect.DeepEqual(Node(node, DefaultTopology()), Node(StripNode(node), DefaultTopology())) {
				t.Error("stripped, the node decodes to another")
			}
		}
		if rule := (&resourcev1alpha3.DeviceTaintRule{}); rule.Unmarshal(data) == nil {
			_, _ = TaintRule(rule)
		}
	})
}

func fuzzClaimLifecycle(t *testing.T, data []byte) {
	t.Helper()
	claim := &resourcev1.ResourceClaim{}
	if claim.Unmarshal(data) != nil {
		return
	}
	lifecycle := ClaimLifecycle(claim)
	checkText(t, lifecycle)
	light := ClaimLifecycle(StripClaim(claim))
	if !reflect.DeepEqual(lifecycle.Results, light.Results) || !reflect.DeepEqual(lifecycle.ReservedFor, light.ReservedFor) {
		t.Errorf("stripped, it decodes to %+v, not %+v", light, lifecycle)
	}
	_ = lifecycle.Class()
	// Bytes that are no UTF-8 become three each.
	switch {
	case len(lifecycle.Finalizers) > maxFinalizers, len(lifecycle.Classes) > maxClasses:
		t.Errorf("%d finalizers and %d classes are kept", len(lifecycle.Finalizers), len(lifecycle.Classes))
	case len(lifecycle.PodClaim) > 3*maxName, len(lifecycle.MadeFor.Name) > 3*maxName, len(lifecycle.MadeFor.UID) > 3*maxUID:
		t.Errorf("long texts are kept: %+v", lifecycle)
	case slices.Contains(claim.Finalizers, resourcev1.Finalizer) != slices.Contains(lifecycle.Finalizers, resourcev1.Finalizer):
		t.Errorf("finalizers %q became %q", claim.Finalizers, lifecycle.Finalizers)
	}
}

func fuzzPodLifecycle(t *testing.T, data []byte) {
	t.Helper()
	pod := &corev1.Pod{}
	if pod.Unmarshal(data) != nil {
		return
	}
	lifecycle := PodLifecycle(pod, DefaultWorkloads())
	checkText(t, lifecycle)
	for name, amount := range lifecycle.Extended {
		if amount <= 0 || !isExtended(name) {
			t.Errorf("it requests %d of %q", amount, name)
		}
	}
	if len(lifecycle.Claims) > maxReferences || len(lifecycle.Extended) > maxExtended || len(lifecycle.Unschedulable) > 3*maxMessage {
		t.Errorf("%d claims, %d extended resources and %d bytes of the scheduler are kept", len(lifecycle.Claims), len(lifecycle.Extended), len(lifecycle.Unschedulable))
	}
}
