package apiserver

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

func TestSpellsPCIAddressesInOneWay(t *testing.T) {
	for given, want := range map[string]string{
		"0000:c1:00.0":     "0000:c1:00.0",
		"0000:CA:00.0":     "0000:ca:00.0",
		"00000000:C1:00.0": "0000:c1:00.0",
		"c1:1f.7":          "0000:c1:1f.7",
		"10000:e1:00.0":    "10000:e1:00.0",
		"0001:0a:00.1":     "0001:0a:00.1",
		"0000:c1:00":       "",
		"0000:c1:20.0":     "",
		"0000:c1:00.8":     "",
		"0000:c1:00.00":    "",
		"1:2:3:4.0":        "",
		"0000:+1:00.0":     "",
		"":                 "",
	} {
		if got := pciAddress(given); got != want {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
}

func TestReadsNamesOfMIGDevices(t *testing.T) {
	none := dra.PlacementUnknown
	for given, want := range map[string]struct {
		profile   string
		placement int
	}{
		"gpu-0-mig-1g10gb-19-4":         {"1g.10gb", 4},
		"gpu-12-mig-7g80gb-0-0":         {"7g.80gb", 0},
		"gpu-1-mig-1c2g20gb-14-2":       {"1c.2g.20gb", 2},
		"gpu-1-mig-1g10gb-me-20-6":      {"1g.10gb+me", 6},
		"gpu-1-mig-1g24gb-me-all-20-6":  {"1g.24gb+me+all", 6},
		"gpu-0":                         {"", none},
		"gpu-vfio-1":                    {"", none},
		"gpu-x-mig-1g10gb-19-4":         {"", none},
		"gpu-0-mig-19-4":                {"", none},
		"gpu-0-mig-1g10gb-19":           {"", none},
		"gpu-0-mig-1g10gb-19-99999999":  {"", none},
		"gpu-0-mig-1g10gb-nineteen-4":   {"", none},
		"gpu-0-partition-3":             {"", none},
		"other-gpu-0-mig-1g10gb-19-4":   {"", none},
		"gpu-0-mig-1g10gb-19-4-trailer": {"", none},
	} {
		if profile, placement := migName(given); profile != want.profile || placement != want.placement {
			t.Errorf("%q says %q at %d, want %q at %d", given, profile, placement, want.profile, want.placement)
		}
	}
}

func text(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{StringValue: &value}
}

func version(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{VersionValue: &value}
}

type attributeSet = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute

func TestDecodesWhatDriversPublish(t *testing.T) {
	yes, node, other := true, "node-a", "node-b"
	cases := map[string]struct {
		driver string
		slice  func(*resourcev1.ResourceSliceSpec)
		device resourcev1.Device
		want   dra.PublishedDevice
	}{
		"a GPU of NVIDIA": {
			driver: "gpu.nvidia.com",
			device: resourcev1.Device{
				Name: "gpu-3",
				Attributes: attributeSet{
					"uuid": text("GPU-1"), "productName": text("H100"), "driverVersion": version("580.65.6"),
					"resource.kubernetes.io/pciBusID": text("0000:4B:00.0"), "pcieBusID": text("0000:00:00.0"),
				},
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}, "absurd": {Value: resource.MustParse("1e9999")}},
				Taints:   []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: "NoExecute"}},
			},
			want: dra.PublishedDevice{
				Node: node, UUID: "GPU-1", PCIAddress: "0000:4b:00.0", Model: "H100", Version: "580.65.6",
				Placement: dra.PlacementUnknown, Capacity: map[string]float64{"memory": 80 << 30},
				Taints: []dra.Taint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: "NoExecute"}},
			},
		},
		"an on-demand MIG device": {
			driver: "gpu.nvidia.com",
			device: resourcev1.Device{
				Name:       "gpu-0-mig-1g10gb-19-4",
				Attributes: attributeSet{"parentUUID": text("GPU-1"), "profile": text("1g.10gb")},
			},
			want: dra.PublishedDevice{Node: node, ParentUUID: "GPU-1", Profile: "1g.10gb", Placement: 4},
		},
		"a partition of AMD before 1.0": {
			driver: "gpu.amd.com",
			device: resourcev1.Device{
				Name:       "gpu-17-144",
				Attributes: attributeSet{"parentPciAddr": text("0000:65:00.0"), "partitionProfile": text("cpx_nps4")},
			},
			want: dra.PublishedDevice{Node: node, ParentPCIAddress: "0000:65:00.0", Profile: "cpx_nps4", Placement: dra.PlacementUnknown},
		},
		"a whole card of AMD": {
			driver: "gpu.amd.com",
			device: resourcev1.Device{
				Name: "gpu-1-128",
				Attributes: attributeSet{
					"type": text("amdgpu"), "productName": text("AMD_Instinct_MI300X_OAM"), "partitionProfile": text("spx_nps1"),
					"driverVersion": version("6.12.12"), "deviceID": text("0x74a1"), "resource.kubernetes.io/pciBusID": text("0000:c1:00.0"),
				},
			},
			want: dra.PublishedDevice{Node: node, PCIAddress: "0000:c1:00.0", Model: "AMD_Instinct_MI300X_OAM", Version: "6.12.12", Placement: dra.PlacementUnknown},
		},
		"a whole card of AMD before 1.0": {
			driver: "gpu.amd.com",
			device: resourcev1.Device{
				Name:       "gpu-1-128",
				Attributes: attributeSet{"type": text("amdgpu"), "uuid": text("a7b9"), "pciAddr": text("0000:c1:00.0"), "partitionProfile": text("SPX_NPS1")},
			},
			want: dra.PublishedDevice{Node: node, UUID: "a7b9", PCIAddress: "0000:c1:00.0", Placement: dra.PlacementUnknown},
		},
		"a card of AMD that cannot be cut": {
			driver: "gpu.amd.com",
			device: resourcev1.Device{Name: "gpu-0-131", Attributes: attributeSet{"type": text("amdgpu"), "pciAddr": text("0000:03:00.0"), "partitionProfile": text("")}},
			want:   dra.PublishedDevice{Node: node, PCIAddress: "0000:03:00.0", Placement: dra.PlacementUnknown},
		},
		"a card that AMD's driver can cut, as one piece": {
			driver: "gpu.amd.com",
			device: resourcev1.Device{Name: "gpu-0-spx-nps1", Attributes: attributeSet{"type": text("amdgpu"), "pciAddr": text("0000:19:00.0"), "computePartition": text("spx"), "memoryPartition": text("nps1")}},
			want:   dra.PublishedDevice{Node: node, PCIAddress: "0000:19:00.0", Placement: dra.PlacementUnknown},
		},
		"and in pieces": {
			driver: "gpu.amd.com",
			device: resourcev1.Device{Name: "gpu-0-cpx-nps4", Attributes: attributeSet{"pciAddr": text("0000:19:00.0"), "computePartition": text("cpx"), "memoryPartition": text("nps4")}},
			want:   dra.PublishedDevice{Node: node, ParentPCIAddress: "0000:19:00.0", Profile: "cpx", Placement: dra.PlacementUnknown},
		},
		"a partition of AMD with its card's address": {
			driver: "gpu.amd.com",
			device: resourcev1.Device{
				Name:       "gpu-2-129",
				Attributes: attributeSet{"type": text("amdgpu-partition"), "partitionProfile": text("cpx_nps4"), "resource.kubernetes.io/pciBusID": text("0000:e2:00.0")},
			},
			want: dra.PublishedDevice{Node: node, ParentPCIAddress: "0000:e2:00.0", Profile: "cpx_nps4", Placement: dra.PlacementUnknown},
		},
		"a partition of AMD without a profile": {
			driver: "gpu.amd.com",
			device: resourcev1.Device{Name: "gpu-2-129", Attributes: attributeSet{"type": text("amdgpu-partition"), "pciAddr": text("0000:e2:00.0")}},
			want:   dra.PublishedDevice{Node: node, ParentPCIAddress: "0000:e2:00.0", Placement: dra.PlacementUnknown},
		},
		"a partition of NVIDIA keeps its own address": {
			driver: "gpu.nvidia.com",
			device: resourcev1.Device{Name: "gpu-0-mig-0", Attributes: attributeSet{"type": text("mig"), "profile": text("1g.10gb"), "resource.kubernetes.io/pciBusID": text("0000:4b:00.0")}},
			want:   dra.PublishedDevice{Node: node, PCIAddress: "0000:4b:00.0", Profile: "1g.10gb", Placement: dra.PlacementUnknown},
		},
		"attributes with the driver's domain": {
			driver: "dra.net",
			device: resourcev1.Device{
				Name:                     "eth1",
				Attributes:               attributeSet{"dra.net/pciAddress": text("c1:00.1"), "other.com/uuid": text("theirs")},
				AllowMultipleAllocations: &yes,
			},
			want: dra.PublishedDevice{Node: node, PCIAddress: "0000:c1:00.1", Placement: dra.PlacementUnknown, MultipleAllocations: true},
		},
		"an address that is none": {
			driver: "gpu.amd.com",
			device: resourcev1.Device{Name: "gpu-1", Attributes: attributeSet{"pciAddr": text("unknown"), "pciBusID": {IntValue: new(int64)}}},
			want:   dra.PublishedDevice{Node: node, Placement: dra.PlacementUnknown},
		},
		"a node for each device": {
			driver: "far.example.com",
			slice:  func(spec *resourcev1.ResourceSliceSpec) { spec.PerDeviceNodeSelection = &yes },
			device: resourcev1.Device{Name: "one", NodeName: &other},
			want:   dra.PublishedDevice{Node: other, Placement: dra.PlacementUnknown},
		},
		"text that is not UTF-8": {
			driver: "a\xffb",
			slice:  func(spec *resourcev1.ResourceSliceSpec) { spec.Pool.Name = "p\xfe"; spec.NodeName = nil },
			device: resourcev1.Device{Name: "n\xfd", Attributes: attributeSet{"model": text("m\xfc")}},
			want: dra.PublishedDevice{
				ID:    dra.DeviceID{Driver: "a\uFFFDb", Pool: "p\uFFFD", Name: "n\uFFFD"},
				Model: "m\uFFFD", Placement: dra.PlacementUnknown,
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := resourcev1.ResourceSliceSpec{
				Driver: c.driver, Pool: resourcev1.ResourcePool{Name: "pool"}, NodeName: &node, Devices: []resourcev1.Device{c.device},
			}
			if c.slice != nil {
				c.slice(&spec)
			}
			if c.want.ID == (dra.DeviceID{}) {
				c.want.ID = dra.DeviceID{Driver: c.driver, Pool: "pool", Name: c.device.Name}
			}
			got := decodeSlice(&resourcev1.ResourceSlice{Spec: spec})
			if !reflect.DeepEqual(got, []dra.PublishedDevice{c.want}) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func opaque(source resourcev1.AllocationConfigSource, parameters string) resourcev1.DeviceAllocationConfiguration {
	return resourcev1.DeviceAllocationConfiguration{
		Source: source,
		DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{
			Driver: "gpu.nvidia.com", Parameters: runtime.RawExtension{Raw: []byte(parameters)},
		}},
	}
}

func TestFindsHowDevicesAreShared(t *testing.T) {
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
		"a claim that says nothing":  {[]resourcev1.DeviceAllocationConfiguration{opaque(class, slicing), opaque(claim, `{}`)}, "time_slicing"},
		"another shape":              {[]resourcev1.DeviceAllocationConfiguration{opaque(claim, `{"sharing":"MPS"}`)}, ""},
		"another strategy":           {[]resourcev1.DeviceAllocationConfiguration{opaque(claim, `{"sharing":{"strategy":"Magic"}}`)}, ""},
		"no JSON":                    {[]resourcev1.DeviceAllocationConfiguration{opaque(claim, `{"sharing":`), {Source: claim}}, ""},
	}
	for name, c := range cases {
		if got := sharingOf(c.configurations); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestFindsIdentityInTheDataOfADevice(t *testing.T) {
	for data, want := range map[string][2]string{
		`{"uuid":"GPU-1","pciAddress":"C1:00.0"}`:                       {"GPU-1", "0000:c1:00.0"},
		`{"uuid":{"string":"gpu-2"},"pciBusID":{"string":"0:c2:00.0"}}`: {"gpu-2", "0000:c2:00.0"},
		`{"resource.kubernetes.io/pciBusID":"0000:c3:00.0"}`:            {"", "0000:c3:00.0"},
		`{"uuid":7,"pciAddr":"nowhere","pciAddress":"0000:c4:00.0"}`:    {"", "0000:c4:00.0"},
		`{"uuid":{"version":"1.0.0"}}`:                                  {"", ""},
		`["uuid"]`:                                                      {"", ""},
		`{"uuid":`:                                                      {"", ""},
	} {
		if uuid, address := identityIn([]byte(data)); uuid != want[0] || address != want[1] {
			t.Errorf("%s: got %q and %q, want %q", data, uuid, address, want)
		}
	}
}

func TestDecodesAClaimWithEverything(t *testing.T) {
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
	if got := decodeClaim(claim); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDecodesAPodOfEveryKindOfContainerAndClaim(t *testing.T) {
	yes, named, template, made := true, "shared", "one-gpu", "p-gpu-x7"
	uses := func(references ...corev1.ResourceClaim) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Claims: references}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "p", UID: "pod-1", OwnerReferences: []metav1.OwnerReference{
			{Kind: "Other", Name: "no"}, {Kind: "Job", Name: "train", Controller: &yes},
		}},
		Spec: corev1.PodSpec{
			NodeName: "node-a",
			ResourceClaims: []corev1.PodResourceClaim{
				{Name: "direct", ResourceClaimName: &named},
				{Name: "made", ResourceClaimTemplateName: &template},
				{Name: "coming", ResourceClaimTemplateName: &template},
				{Name: "unneeded", ResourceClaimTemplateName: &template},
			},
			InitContainers: []corev1.Container{{Name: "init", Resources: uses(corev1.ResourceClaim{Name: "direct"})}},
			Containers: []corev1.Container{
				{Name: "main", Resources: uses(corev1.ResourceClaim{Name: "made", Request: "r"}, corev1.ResourceClaim{Name: "coming"})},
				{Name: "idle"},
			},
		},
		Status: corev1.PodStatus{
			Phase:                 corev1.PodFailed,
			ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "made", ResourceClaimName: &made}, {Name: "unneeded"}},
			ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{
				ResourceClaimName: "p-ext", RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: "nvidia.com/gpu", RequestName: "r0"}},
			},
		},
	}
	want := dra.Pod{
		Ref: dra.PodRef{Namespace: "lab", Name: "p"}, UID: "pod-1", Node: "node-a", Terminal: true, OwnerKind: "Job", OwnerName: "train",
		Claims: []dra.PodClaim{
			{Name: "direct", Claim: "shared"},
			{Name: "made", Template: "one-gpu", Claim: "p-gpu-x7"},
			{Name: "coming", Template: "one-gpu"},
			{Name: "unneeded", Template: "one-gpu"},
			{Claim: "p-ext"},
		},
		Containers: []dra.Container{
			{Name: "init", Uses: []dra.Use{{Claim: "shared"}}},
			{Name: "main", Uses: []dra.Use{{Claim: "p-gpu-x7", Request: "r"}, {Claim: "p-ext", Request: "r0"}}},
			{Name: "idle"},
		},
	}
	if got := decodePod(pod); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestKnowsWhichPodsMayHoldDevices(t *testing.T) {
	for resourceName, want := range map[string]bool{
		"nvidia.com/gpu": true,
		"deviceclass.resource.kubernetes.io/gpu.nvidia.com": true,
		"cpu": false, "hugepages-2Mi": false, "attachable.kubernetes.io/disk": false,
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse("1")}},
		}}}}
		if _, got := recordPod(pod); got != want {
			t.Errorf("a pod with %s: %v, want %v", resourceName, got, want)
		}
	}
}
