package vendors

import (
	"fmt"
	"testing"
)

// Each row is an id, and what it is decoded to: form, vendor, address, device file,
// minor number and GPU instance.
func TestDecodePluginID(t *testing.T) {
	const uuid = "5d3a9c1e-7f42-4b8e-9b1a-000000000012"
	for id, want := range map[string]string{
		"GPU-" + uuid:            "uuid nvidia",
		"GPU-" + uuid + "::3":    "uuid nvidia",
		"GPU-" + uuid + "-3":     "uuid nvidia",
		"MIG-" + uuid:            "uuid nvidia",
		uuid:                     "uuid",
		"0000:C1:00.0":           "pci_address 0000:c1:00.0",
		"c1:00.0":                "pci_address 0000:c1:00.0",
		"0000:c1:00.0::2":        "pci_address 0000:c1:00.0",
		"nvidia0":                "device_node nvidia /dev/nvidia0 0",
		"/dev/nvidia12":          "device_node nvidia /dev/nvidia12 12",
		"nvidia0/vgpu1":          "device_node nvidia /dev/nvidia0 0",
		"nvidia3/gi12":           "partition nvidia 3 gi 12",
		"nvidia3/gi12/vgpu0":     "partition nvidia 3 gi 12",
		"card1":                  "device_node /dev/dri/card1",
		"card1-0":                "device_node /dev/dri/card1",
		"renderD128":             "device_node /dev/dri/renderD128",
		"/dev/dri/renderD128":    "device_node /dev/dri/renderD128",
		"amdgpu_xcp_3":           "partition amd",
		"7":                      "index",
		"nvidia":                 "other",
		"nvidia01":               "other",
		"nvidia-1":               "other",
		"nvidia0/gi":             "other",
		"nvidia0/gi1/ci0":        "other",
		"nvidia99999999999":      "other",
		"nvidiactl":              "other",
		"nvidia-caps/nvidia-cap": "other",
		"tegra":                  "other",
		"":                       "other",
		"::":                     "other",
		"-1":                     "other",
		"fuse-1":                 "other",
	} {
		decoded := DecodePluginID(id)
		got := decoded.Form.String()
		for _, text := range []string{decoded.Vendor, decoded.Address, decoded.Node} {
			if text != "" {
				got += " " + text
			}
		}
		if decoded.Minor >= 0 {
			got += fmt.Sprint(" ", decoded.Minor)
		}
		if decoded.GPUInstance >= 0 {
			got += fmt.Sprint(" gi ", decoded.GPUInstance)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}

// FuzzDecodePluginID: any id has a form of the closed set, and the id itself is
// among the UUIDs that it may be.
func FuzzDecodePluginID(f *testing.F) {
	for _, id := range []string{"nvidia0/gi1/vgpu0", "GPU-1::2", "card0-0", "0000:c1:00.0", "amdgpu_xcp_1", "\xff-1"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		decoded := DecodePluginID(id)
		if decoded.Form >= PluginForms || decoded.Form.String() == "" || decoded.UUIDs[0] != id || len(decoded.UUIDs) > 2 {
			t.Errorf("%q: %+v", id, decoded)
		}
		if placed := decoded.Address != "" || decoded.Node != "" || decoded.Minor >= 0; placed != (decoded.Form == PluginAddress || decoded.Form == PluginNode || decoded.Form == PluginPartition && decoded.Vendor == NVIDIA) {
			t.Errorf("%q: a form without its place: %+v", id, decoded)
		}
	})
}

func TestByResource(t *testing.T) {
	for resource, want := range map[string]string{
		"nvidia.com/gpu": "nvidia true", "nvidia.com/gpu.shared": "nvidia true", "nvidia.com/mig-1g.10gb": "nvidia true",
		"nvidia.com/hostdev": " false", "amd.com/gpu": "amd true", "amd.com/cpx_nps4": "amd true",
		"gpu.intel.com/i915": "intel true", "gpu.intel.com/xe_monitoring": " false", "google.com/tpu": "google true",
		"volcano.sh/vgpu-number": " true", "acme.com/GPU": " true", "smarter-devices/fuse": " false", "devices.kubevirt.io/kvm": " false",
	} {
		vendor, accelerators := ByResource(resource)
		if got := fmt.Sprint(vendor, " ", accelerators); got != want {
			t.Errorf("%s: %q, want %q", resource, got, want)
		}
	}
}
