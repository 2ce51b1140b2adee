package decode

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func opaque(source resourcev1.AllocationConfigSource, parameters string) resourcev1.DeviceAllocationConfiguration {
	return resourcev1.DeviceAllocationConfiguration{
		Source: source,
		DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{
			Driver: "gpu.nvidia.com", Parameters: runtime.RawExtension{Raw: []byte(parameters)},
		}},
	}
}

func TestSharingStrategy(t *testing.T) {
	class, claim := resourcev1.AllocationConfigSourceClass, resourcev1.AllocationConfigSourceClaim
	slicing, mps := `{"kind":"GpuConfig","sharing":{"strategy":"TimeSlicing"}}`, `{"sharing":{"strategy":"MPS"}}`
	cases := map[string]struct {
		configurations []resourcev1.DeviceAllocationConfiguration
		want           string
	}{
		"none":                       {nil, ""},
		"time slicing":               {[]resourcev1.DeviceAllocationConfiguration{opaque(class, slicing)}, "time_slicing"},
		"MPS":                        {[]resourcev1.DeviceAllocationConfiguration{opaque(claim, mps)}, "mps"},
		"the claim before the class": {[]resourcev1.DeviceAllocationConfiguration{opaque(class, slicing), opaque(claim, mps)}, "mps"},
		"a claim without a strategy": {[]resourcev1.DeviceAllocationConfiguration{opaque(class, slicing), opaque(claim, `{}`)}, "time_slicing"},
		"another shape":              {[]resourcev1.DeviceAllocationConfiguration{opaque(claim, `{"sharing":"MPS"}`)}, ""},
		"another strategy":           {[]resourcev1.DeviceAllocationConfiguration{opaque(claim, `{"sharing":{"strategy":"Magic"}}`)}, ""},
		"no JSON":                    {[]resourcev1.DeviceAllocationConfiguration{opaque(claim, `{"sharing":`), {Source: claim}}, ""},
	}
	for name, c := range cases {
		if got := sharingStrategy(c.configurations); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestDeviceStatusIdentity(t *testing.T) {
	for data, want := range map[string][2]string{
		`{"uuid":"GPU-1","pciAddress":"C1:00.0"}`:                       {"GPU-1", "0000:c1:00.0"},
		`{"uuid":{"string":"gpu-2"},"pciBusID":{"string":"0:c2:00.0"}}`: {"gpu-2", "0000:c2:00.0"},
		`{"resource.kubernetes.io/pciBusID":"0000:c3:00.0"}`:            {"", "0000:c3:00.0"},
		`{"uuid":7,"pciAddr":"nowhere","pciAddress":"0000:c4:00.0"}`:    {"", "0000:c4:00.0"},
		`{"uuid":{"version":"1.0.0"}}`:                                  {"", ""},
		`["uuid"]`:                                                      {"", ""},
		`{"uuid":`:                                                      {"", ""},
	} {
		members := jsonMembers([]byte(data))
		if uuid, address := members.UUID(), members.Address(); uuid != want[0] || address != want[1] {
			t.Errorf("%s: got %q and %q, want %q", data, uuid, address, want)
		}
	}
}

func TestClaim(t *testing.T) {
	yes, share := true, types.UID("share-1")
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: "c", UID: "uid-1", Annotations: map[string]string{"resource.kubernetes.io/extended-resource-claim": "true"},
		},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "plain", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}},
			{Name: "main", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "big", DeviceClassName: "b200"}, {Name: "small", DeviceClassName: "h100"}}},
		}}},
		Status: resourcev1.ResourceClaimStatus{
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "pod-1"}},
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{
					Request: "main/small", Driver: "d", Pool: "p", Device: "x", ShareID: &share,
					ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("16Gi"), "compute": resource.MustParse("500m")},
				},
				{Request: "plain", Driver: "d", Pool: "p", Device: "y", AdminAccess: &yes},
			}}},
			Devices: []resourcev1.AllocatedDeviceStatus{
				{Driver: "d", Pool: "p", Device: "x", ShareID: (*string)(&share), Data: &runtime.RawExtension{Raw: []byte(`{"uuid":"U"}`)}},
				{Driver: "d", Pool: "p", Device: "y"},
			},
		},
	}
	want := dra.Claim{
		Ref: dra.ClaimRef{Namespace: "lab", Name: "c"}, UID: "uid-1", Allocated: true, ExtendedResource: true,
		Requests: []dra.Request{{Name: "plain", DeviceClass: "gpu"}, {Name: "main/big", DeviceClass: "b200"}, {Name: "main/small", DeviceClass: "h100"}},
		Results: []dra.Result{
			{
				Request: "main/small", Device: dra.DeviceID{Driver: "d", Pool: "p", Name: "x"}, ShareID: "share-1",
				Consumed: map[string]float64{"memory": 16 << 30, "compute": 0.5},
			},
			{Request: "plain", Device: dra.DeviceID{Driver: "d", Pool: "p", Name: "y"}, AdminAccess: true},
		},
		ReservedFor:  []dra.Consumer{{Resource: "pods", Name: "p", UID: "pod-1"}},
		DeviceStatus: []dra.DeviceStatus{{Device: dra.DeviceID{Driver: "d", Pool: "p", Name: "x"}, ShareID: "share-1", UUID: "U"}},
	}
	if got := Claim(claim); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestOnlyNode(t *testing.T) {
	byName := func(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: operator, Values: values}}}
	}
	byLabel := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: "In", Values: []string{"node-a"}}}}
	for name, c := range map[string]struct {
		terms []corev1.NodeSelectorTerm
		want  string
	}{
		"by name":          {[]corev1.NodeSelectorTerm{byName("In", "node-a")}, "node-a"},
		"by two names":     {[]corev1.NodeSelectorTerm{byName("In", "node-a", "node-b")}, ""},
		"by all but one":   {[]corev1.NodeSelectorTerm{byName("NotIn", "node-a")}, ""},
		"by label":         {[]corev1.NodeSelectorTerm{byLabel}, ""},
		"by another field": {[]corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.uid", Operator: "In", Values: []string{"node-a"}}}}}, ""},
		"by one or other":  {[]corev1.NodeSelectorTerm{byName("In", "node-a"), byLabel}, ""},
		"everywhere":       {nil, ""},
	} {
		if got := onlyNode(&corev1.NodeSelector{NodeSelectorTerms: c.terms}); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := onlyNode(nil); got != "" {
		t.Errorf("without a selector: %q", got)
	}
}
