package node

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Who asks why is told what the reducer does, each device by the first rule
// that leads to it.
func TestMatchesNameTheirRules(t *testing.T) {
	hardware := func(uuid, address string, minor int) device.Sample {
		d := unidentified()
		d.UUID, d.PCIBusID, d.Minor, d.Vendor = uuid, address, minor, "nvidia"
		return device.Sample{Device: d, Source: "nvml"}
	}
	published := func(name, uuid, address string) dra.PublishedDevice {
		return dra.PublishedDevice{ID: dra.DeviceID{Driver: "gpu.nvidia.com", Pool: "n", Name: name}, UUID: uuid, PCIAddress: address, Placement: dra.PlacementUnknown}
	}
	listed := dra.DeviceID{Driver: "gpu.nvidia.com", Pool: "n", Name: "gpu-2"}
	facts := Facts{
		Samples: []device.Sample{hardware("GPU-0", "0000:10:00.0", 0), hardware("GPU-1", "0000:20:00.0", 1), hardware("GPU-2", "0000:30:00.0", 2)},
		Cluster: Cluster{Enabled: true, Published: []dra.PublishedDevice{
			published("gpu-0", "GPU-0", "0000:10:00.0"), published("gpu-1", "", "0000:20:00.0"), published("gpu-9", "GPU-9", ""),
		}},
		Listing: dra.PodResources{Assignments: []dra.Assignment{{Device: listed}}},
	}
	want := map[string]string{"gpu-0": "uuid GPU-0", "gpu-1": "pci GPU-1", "gpu-2": "name GPU-2"}
	matches := Matches(facts)
	for _, match := range matches {
		if got := match.Rule + " " + match.Hardware.UUID; want[match.Device.Name] != got {
			t.Errorf("%s is matched by %s, want %q", match.Device.Name, got, want[match.Device.Name])
		}
	}
	if len(matches) != len(want) {
		t.Errorf("%d matches, want %d: %v", len(matches), len(want), matches)
	}
}
