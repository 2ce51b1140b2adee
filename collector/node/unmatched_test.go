package node

import (
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A card of which only the parts are published is not hardware that nobody
// publishes; its neighbour, of which nothing is said, is.
func TestACardThatIsCutIsNotUnmatched(t *testing.T) {
	s := newScene(t)
	for _, address := range []string{"0000:c1:00.0", "0000:e2:00.0"} {
		s.facts.Samples = append(s.facts.Samples, device.Sample{Source: "amdgpu", Device: device.Device{
			Vendor: "amd", PCIBusID: address, Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown,
			GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		}})
	}
	s.facts.Cluster.Published = []dra.PublishedDevice{{
		ID: dra.DeviceID{Driver: "gpu.amd.com", Pool: sceneNode, Name: "gpu-2-129"}, Node: sceneNode,
		ParentPCIAddress: "0000:e2:00.0", Profile: "cpx_nps1", Placement: dra.PlacementUnknown,
	}}
	s.step(time.Second)
	if page := s.page("dra_exporter_unmatched"); !strings.Contains(page, `dra_exporter_unmatched_devices{side="hardware"} 1`) {
		t.Errorf("not one card is unmatched:\n%s", page)
	}
}
