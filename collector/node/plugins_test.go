package node

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// pluginNode is a node with two NVIDIA GPUs, of which the second has two partitions,
// an AMD and an Intel GPU, and a network adapter.
func pluginNode(t testing.TB) *scene {
	first, second := migOf("GPU-1", "MIG-a", "3g.40gb", 0), migOf("GPU-1", "MIG-b", "3g.40gb", 4)
	first.GPUInstance, first.ComputeInstance, second.GPUInstance, second.ComputeInstance = 1, 0, 2, 0
	amd := device.Device{UUID: "AMD-0", Vendor: "amd", PCIBusID: "0000:c1:00.0", Minor: device.Unknown, RenderMinor: 128, Placement: device.Unknown, Nodes: []string{"/dev/dri/card1", "/dev/dri/renderD128"}}
	intel := device.Device{UUID: "INTEL-0", Vendor: "intel", PCIBusID: "0000:c2:00.0", Minor: device.Unknown, RenderMinor: 129, Placement: device.Unknown, Nodes: []string{"/dev/dri/card2", "/dev/dri/renderD129"}}
	nic := device.Device{UUID: "NIC-0", Vendor: "intel", PCIBusID: "0000:c3:00.0", Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown, Nodes: []string{"/dev/infiniband/uverbs0"}}
	return newScene(t, gpu(0), gpu(1), first, second, amd, intel, nic)
}

// plugged lists a pod that got ids of a resource from a device plugin.
func (s *scene) plugged(resource string, ids ...string) {
	pod := dra.PodRef{Namespace: "legacy", Name: "notebook"}
	s.facts.Listing = dra.PodResources{Pods: []dra.PodRef{pod}, Plugins: []dra.PluginAssignment{{Pod: pod, Container: "main", Resource: resource, DeviceIDs: ids}}}
	s.facts.ListedAt = s.now
}

// of returns the uuids of the devices that have holders of a kind.
func (s *scene) heldBy(kind string) string {
	var uuids []string
	for _, row := range s.last.Rows() {
		if row.Family.Name == "dra_device_holders" && row.Labels.Get("kind") == kind && row.Value > 0 {
			uuids = append(uuids, row.Labels.Get("uuid"))
		}
	}
	slices.Sort(uuids)
	return strings.Join(uuids, " ")
}

// An id of a device plugin leads to its hardware, or to all that it may be of.
func TestPluginIDs(t *testing.T) {
	const nvidia = "GPU-0 GPU-1 MIG-a MIG-b"
	for _, test := range []struct{ resource, id, holds, possible, form string }{
		{"nvidia.com/gpu", "GPU-0", "GPU-0", "", ""},
		{"nvidia.com/gpu", "GPU-0::3", "GPU-0", "", ""},
		{"nvidia.com/gpu", "GPU-0-3", "GPU-0", "", ""},
		{"aliyun.com/gpu-mem", "GPU-0-_-3", "GPU-0", "", ""},
		{"nvidia.com/gpu", "GPU-7", "", "", "uuid"},
		{"nvidia.com/gpu", "GPU-7-0", "", "", "uuid"},
		{"nvidia.com/gpu", "nvidia0", "GPU-0", "", ""},
		{"nvidia.com/gpu", "nvidia0/vgpu1", "GPU-0", "", ""},
		{"nvidia.com/gpu", "nvidia7", "", "", "device_node"},
		{"nvidia.com/gpu", "nvidia1/gi2", "MIG-b", "", ""},
		{"nvidia.com/gpu", "nvidia1/gi2/vgpu0", "MIG-b", "", ""},
		{"nvidia.com/gpu", "nvidia1/gi3", "", "GPU-1 MIG-a MIG-b", "partition"},
		{"nvidia.com/gpu", "nvidia0/gi1", "", "GPU-0", "partition"},
		{"nvidia.com/mig-3g.40gb", "MIG-a::0", "MIG-a", "", ""},
		{"nvidia.com/mig-3g.40gb", "MIG-GPU-1/2/0", "MIG-b", "", ""},
		{"nvidia.com/mig-3g.40gb", "MIG-c", "", nvidia, "uuid"},
		{"nvidia.com/gpu", "0000:10:00.0", "GPU-0", "", ""},
		{"nvidia.com/gpu", "0000:99:00.0", "", "", "pci_address"},
		{"nvidia.com/gpu", "0", "", nvidia, "index"},
		{"nvidia.com/gpu", "tegra", "", nvidia, "other"},
		{"acme.com/gpu", "tegra", "", "AMD-0 GPU-0 GPU-1 INTEL-0 MIG-a MIG-b", "other"},
		{"amd.com/gpu", "0000:C1:00.0", "AMD-0", "", ""},
		{"amd.com/gpu", "renderD128", "AMD-0", "", ""},
		{"amd.com/cpx_nps4", "amdgpu_xcp_3", "", "AMD-0", "partition"},
		{"gpu.intel.com/i915", "card2-0", "INTEL-0", "", ""},
		{"gpu.intel.com/i915", "card3-0", "", "", "device_node"},
		{"gpu.intel.com/i915_monitoring", "all", "", "", ""},
		{"gpu.intel.com/i915", "weird", "", "INTEL-0", "other"},
		{"intel.com/sriov", "0000:c3:00.7", "", "", ""},
		{"rdma/hca", "0000:c3:00.0", "NIC-0", "", ""},
		{"smarter-devices/fuse", "fuse-1", "", "", ""},
		{"devices.kubevirt.io/kvm", "7", "", "", ""},
		{"acme.com/anything", "nvidia0", "GPU-0", "", ""},
	} {
		t.Run(test.resource+" "+test.id, func(t *testing.T) {
			s := pluginNode(t)
			s.plugged(test.resource, test.id)
			s.run(2)
			if got := s.heldBy("device_plugin"); got != test.holds {
				t.Errorf("%q are held, want %q", got, test.holds)
			}
			if got := s.heldBy("possible"); got != test.possible {
				t.Errorf("%q may be held, want %q", got, test.possible)
			}
			for _, row := range s.last.Rows() {
				if form := row.Labels.Get("form"); row.Family.Name == "dra_exporter_unresolved_plugin_devices" && (row.Value == 1) != (form == test.form) {
					t.Errorf("%v unresolved ids of the form %q, want %q", row.Value, form, test.form)
				}
			}
		})
	}
}

// A GPU whose minor number is not known may be the one that an id names.
func TestPluginIDsOfUnknownHardware(t *testing.T) {
	unknown := gpu(1)
	unknown.Minor, unknown.Nodes = device.Unknown, nil
	s := newScene(t, gpu(0), unknown)
	s.plugged("nvidia.com/gpu", "nvidia1")
	s.run(1)
	if holds, possible := s.heldBy("device_plugin"), s.heldBy("possible"); holds != "" || possible != "GPU-1" {
		t.Errorf("%q are held and %q may be, want GPU-1 to be possible", holds, possible)
	}
}

// What may be held is not free: it has no idle power, and is not execution-idle.
// A restart of the kubelet, which lists nothing for a moment, does not change that.
func TestPossiblyHeldIsNotFree(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	for _, uuid := range []string{"GPU-0", "GPU-1"} {
		s.set(uuid, device.Utilization, 0)
		s.set(uuid, device.Power, 300)
	}
	s.plugged("nvidia.com/gpu", "unheard-of")
	s.facts.Cluster.PluginPods = []dra.Pod{{Ref: s.facts.Listing.Pods[0], UID: "uid", Node: sceneNode}}
	full := s.facts.Listing
	warned := 0
	for step := range 60 {
		s.facts.Listing = full
		if step >= 20 && step < 23 {
			s.facts.Listing = dra.PodResources{}
		}
		s.listed(1)
		if got := s.heldBy("possible"); got != "GPU-0 GPU-1" {
			t.Fatalf("step %d: %q may be held", step, got)
		}
		for _, event := range s.events {
			if event.Level == slog.LevelWarn {
				warned++
			}
		}
	}
	if idle := s.state.devices.get("GPU-0").growth.idle.watts(); !math.IsNaN(idle) {
		t.Errorf("it has an idle power of %v W", idle)
	}
	if warned != 1 {
		t.Errorf("logged %d times, want once", warned)
	}
	s.facts.Cluster.PluginPods = nil
	s.facts.Listing = dra.PodResources{Pods: []dra.PodRef{{Namespace: "x", Name: "y"}}}
	s.listed(1)
	s.listed(10)
	s.run(2)
	if got := s.heldBy("possible"); got != "" {
		t.Errorf("%q may be held after the pod has ended", got)
	}
}

// However many ids a pod lists, it is one entry of each form.
func TestUnresolvedPluginsAreBounded(t *testing.T) {
	s := newScene(t, gpu(0))
	var ids []string
	for i := range 5000 {
		ids = append(ids, fmt.Sprint("shard-", i), fmt.Sprint(i))
	}
	s.plugged("acme.com/gpu-mem", ids...)
	s.run(1)
	if n := len(s.state.plugins.unresolved); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
	if got, _ := s.value("dra_exporter_unresolved_plugin_devices", "form", "index"); got != 5000 {
		t.Errorf("%v ids of the form index, want 5000", got)
	}
}
