package decode

import (
	"reflect"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func text(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{StringValue: &value}
}

func version(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{VersionValue: &value}
}

type attributeSet = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute

func TestPublishedDevices(t *testing.T) {
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
		"a card that AMD's driver can shortText, as one piece": {
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
			got := publishedDevices(&spec)
			if !reflect.DeepEqual(got, []dra.PublishedDevice{c.want}) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
