package node

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// capabilitiesOf are the device nodes that NVIDIA's driver gives a container
// for a partition: its GPU's and two for its instances, beside shared ones and
// those of the display driver.
func capabilitiesOf(minor, gpuInstance, computeInstance int) []string {
	instance := 3 + minor*135 + gpuInstance*9
	return []string{
		"/dev/nvidiactl", "/dev/nvidia-uvm", fmt.Sprintf("/dev/nvidia%d", minor),
		fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", instance), fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", instance+1+computeInstance),
		fmt.Sprintf("/dev/dri/card%d", minor+1), fmt.Sprintf("/dev/dri/renderD%d", minor+128),
	}
}

// instance is a partition as DCGM alone sees it: by its instances, without a
// placement or a UUID of its own.
func instance(minor int, profile string, gpuInstance, computeInstance int) device.Device {
	parent := fmt.Sprintf("GPU-%d", minor)
	d := migOf(parent, fmt.Sprintf("MIG-%s/%d/%d", parent, gpuInstance, computeInstance), profile, device.Unknown)
	d.GPUInstance, d.ComputeInstance, d.Minor, d.Nodes = gpuInstance, computeInstance, device.Unknown, nil
	return d
}

// onDemand is a partition that the driver offers without having made it; with
// nodes, one that is held.
func onDemand(minor int, profile string, placement int, nodes ...string) subject {
	name := fmt.Sprintf("gpu-%d-mig-%s-x-%d", minor, plainProfile(profile), placement)
	return subjectOf("gpu.nvidia.com", name, func(s *subject) {
		s.published.ParentUUID, s.published.Profile, s.published.Placement = fmt.Sprintf("GPU-%d", minor), profile, placement
		s.nodes = nodes
	})
}

// static is a partition that was there before the driver, which knows its UUID.
func static(minor int, uuid, profile string, placement int, nodes ...string) subject {
	s := onDemand(minor, profile, placement, nodes...)
	s.published.UUID = uuid
	return s
}

// listed is a partition that only the kubelet lists.
func listed(name string, nodes ...string) subject {
	return subjectOf("gpu.nvidia.com", name, func(s *subject) { s.isPublished, s.nodes = false, nodes })
}

func TestMatchPartitions(t *testing.T) {
	const one, three = "1g.10gb", "3g.40gb"
	both := []device.Device{gpu(0), gpu(1), instance(0, one, 7, 0), instance(0, one, 9, 0), instance(1, one, 7, 0)}
	hidden := gpu(0) // its minor number is not known
	hidden.Minor, hidden.Nodes = device.Unknown, nil
	for _, test := range []matchTest{
		{"the only one of its profile on its GPU",
			[]subject{static(0, "MIG-a", one, 3), static(1, "MIG-b", one, 3)},
			[]device.Device{gpu(0), gpu(1), instance(1, one, 7, 0), instance(0, one, 9, 0)},
			map[string]int{"gpu-0-mig-1g10gb-x-3": 3, "gpu-1-mig-1g10gb-x-3": 2}},
		{"profiles that are spelled otherwise",
			[]subject{static(0, "MIG-a", "1G.10GB", 3)}, []device.Device{gpu(0), instance(0, one, 7, 0)}, map[string]int{"gpu-0-mig-1g10gb-x-3": 1}},
		{"equal profiles on one GPU are ambiguous, unless the kubelet lists them",
			[]subject{static(0, "MIG-a", one, 0), static(0, "MIG-b", one, 1), static(1, "MIG-c", one, 0)}, both,
			map[string]int{"gpu-1-mig-1g10gb-x-0": 4}},
		{"static partitions by their nodes",
			[]subject{static(0, "MIG-a", one, 0, capabilitiesOf(0, 9, 0)...), static(0, "MIG-b", one, 1, capabilitiesOf(0, 7, 0)...)}, both,
			map[string]int{"gpu-0-mig-1g10gb-x-0": 3, "gpu-0-mig-1g10gb-x-1": 2}},
		{"on-demand partitions by their nodes, beside those that are only offered",
			[]subject{onDemand(0, one, 0, capabilitiesOf(0, 9, 0)...), onDemand(0, one, 1), onDemand(0, one, 2, capabilitiesOf(0, 7, 0)...),
				onDemand(1, one, 0), onDemand(1, one, 1, capabilitiesOf(1, 7, 0)...), onDemand(1, one, 2)}, both,
			map[string]int{"gpu-0-mig-1g10gb-x-0": 3, "gpu-0-mig-1g10gb-x-2": 2, "gpu-1-mig-1g10gb-x-1": 4}},
		{"what is offered in several places is none of them",
			[]subject{onDemand(0, three, 0), onDemand(0, three, 4)}, []device.Device{gpu(0), instance(0, three, 1, 0)}, nil},
		{"nor what is left of them",
			[]subject{onDemand(0, three, 0, capabilitiesOf(0, 1, 0)...), onDemand(0, three, 4)},
			[]device.Device{gpu(0), instance(0, three, 1, 0), instance(0, three, 2, 0)}, map[string]int{"gpu-0-mig-3g40gb-x-0": 1}},
		{"a GPU of which no minor number is known",
			[]subject{onDemand(0, one, 0, capabilitiesOf(0, 9, 0)...), onDemand(0, one, 1)},
			[]device.Device{hidden, instance(0, one, 7, 0), instance(0, one, 9, 0)}, map[string]int{"gpu-0-mig-1g10gb-x-0": 2}},
		{"without slices the minor number identifies the GPU",
			[]subject{listed("a", capabilitiesOf(1, 7, 0)...), listed("b", capabilitiesOf(0, 7, 0)...)}, both, map[string]int{"a": 4, "b": 2}},
		{"without slices and a minor number nothing does",
			[]subject{listed("a", capabilitiesOf(0, 7, 0)...)}, []device.Device{hidden, instance(0, one, 7, 0)}, nil},
		{"compute instances of one GPU instance",
			[]subject{listed("a", capabilitiesOf(0, 1, 0)...), listed("b", capabilitiesOf(0, 1, 2)...), listed("c", capabilitiesOf(0, 1, 1)...)},
			[]device.Device{gpu(0), instance(0, "1c.3g.40gb", 1, 2), instance(0, "1c.3g.40gb", 1, 1), instance(0, "1c.3g.40gb", 1, 0)},
			map[string]int{"a": 3, "b": 1, "c": 2}},
		{"another parent is never it",
			[]subject{onDemand(1, one, 0, capabilitiesOf(0, 7, 0)...), static(1, "MIG-a", three, 0, capabilitiesOf(0, 1, 0)...)},
			[]device.Device{gpu(0), instance(0, one, 7, 0), instance(0, three, 1, 0)}, nil},
		{"not even with its UUID",
			[]subject{static(1, "MIG-a", one, 0)}, []device.Device{gpu(0), migOf("GPU-0", "MIG-a", one, 0)}, nil},
		{"nor by its address, for another driver",
			[]subject{subjectOf("mig.acme.com", "a", func(s *subject) {
				s.published.ParentUUID, s.nodes = "GPU-1", capabilitiesOf(0, 7, 0)
			})}, []device.Device{gpu(0), instance(0, one, 7, 0)}, nil},
		{"another driver alone may publish a partition",
			[]subject{subjectOf("mig.acme.com", "a", func(s *subject) { s.nodes = capabilitiesOf(0, 7, 0) })}, both, map[string]int{"a": 2}},
		{"another placement is not it",
			[]subject{static(0, "MIG-a", three, 0)}, []device.Device{gpu(0), migOf("GPU-0", "", three, 4)}, nil},
		{"nodes of another place do not lead to the only one of its profile",
			[]subject{static(0, "MIG-a", one, 0, capabilitiesOf(0, 9, 0)...)}, []device.Device{gpu(0), instance(0, one, 7, 0)}, nil},
		{"nor does another UUID",
			[]subject{static(0, "MIG-a", one, 0)}, []device.Device{gpu(0), migOf("GPU-0", "MIG-b", one, device.Unknown)}, nil},
		{"a UUID decides whatever the place is",
			[]subject{static(0, "MIG-a", one, 0, capabilitiesOf(0, 9, 0)...)}, []device.Device{gpu(0), migOf("GPU-0", "MIG-a", one, 1)},
			map[string]int{"gpu-0-mig-1g10gb-x-0": 1}},
		{"a UUID in the older spelling",
			[]subject{static(0, "MIG-GPU-0/7/0", one, 0), static(0, "MIG-GPU-0/9/0", one, 1)},
			[]device.Device{gpu(0), func() device.Device {
				d := instance(0, one, 9, 0)
				d.UUID = "MIG-a" // NVML knows it
				return d
			}(), instance(0, one, 7, 0)},
			map[string]int{"gpu-0-mig-1g10gb-x-0": 2, "gpu-0-mig-1g10gb-x-1": 1}},
		{"another UUID in the older spelling is another partition",
			[]subject{static(0, "MIG-GPU-0/8/0", one, 0)}, []device.Device{gpu(0), instance(0, one, 7, 0)}, nil},
		{"nodes of two partitions are ambiguous",
			[]subject{listed("a", append(capabilitiesOf(0, 7, 0), capabilitiesOf(0, 9, 0)...)...)}, both, nil},
		{"a node of another GPU instance beside is ambiguous",
			[]subject{listed("a", append(capabilitiesOf(0, 9, 0)[3:4], capabilitiesOf(0, 7, 0)...)...)}, both, nil},
		{"so is one of another GPU's", []subject{listed("a", append(capabilitiesOf(1, 7, 0)[3:4], capabilitiesOf(0, 7, 0)...)...)}, both, nil},
		{"nodes that are not the published parent's match nothing",
			[]subject{onDemand(0, one, 0, capabilitiesOf(1, 7, 0)...)}, []device.Device{gpu(0), instance(0, one, 7, 0)}, nil},
		{"nodes of two compute instances are ambiguous",
			[]subject{listed("a", append(capabilitiesOf(0, 7, 0), "/dev/nvidia-caps/nvidia-cap68")...)}, both, nil},
		{"nodes of another GPU beside are ambiguous",
			[]subject{listed("a", append(capabilitiesOf(0, 7, 0), "/dev/nvidia1")...)}, both, nil},
		{"a GPU instance alone is no partition",
			[]subject{listed("a", capabilitiesOf(0, 7, 0)[:4]...)}, both, nil},
		{"nodes of the management of MIG are no partition's, nor the GPU's",
			[]subject{listed("a", "/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap1"), listed("b", append(capabilitiesOf(0, 7, 0), "/dev/nvidia-caps/nvidia-cap2")...)}, both, nil},
		{"the GPU itself is matched beside its partitions",
			[]subject{listed("a", "/dev/nvidia0", "/dev/nvidiactl"), listed("b", capabilitiesOf(0, 7, 0)...)}, both, map[string]int{"a": 0, "b": 2}},
	} {
		t.Run(test.name, test.run)
	}
}

// Those that have a partner are counted when the only one is sought, and keep
// their partner.
func TestExclusionCountsMatchedDevices(t *testing.T) {
	const three = "3g.40gb"
	offered, first, second := onDemand(0, three, 4), instance(0, three, 1, 0), instance(0, three, 2, 0)
	unnamed := migOf("GPU-0", "MIG-a", "", device.Unknown) // its profile is not known
	for _, test := range []struct {
		name     string
		subjects []subject // of which the first is the first of the hardware after the GPU
		hardware []device.Device
	}{
		{"two are published and one is left", []subject{onDemand(0, three, 0), offered}, []device.Device{gpu(0), first, second}},
		{"two exist and one is left", []subject{listed("a"), offered}, []device.Device{gpu(0), first, second}},
		{"the only one that exists is taken", []subject{listed("a"), offered}, []device.Device{gpu(0), first}},
		{"the only one that is published has a partner", []subject{offered, listed("a")}, []device.Device{gpu(0), unnamed, first}},
		{"one of those that are published has a partner", []subject{onDemand(0, three, 0), offered}, []device.Device{gpu(0), unnamed, first}},
	} {
		known := map[dra.DeviceID]int{test.subjects[0].id: 1}
		if got := match(test.subjects, test.hardware, maps.Clone(known)).found; !maps.Equal(got, known) {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// The numbers are those of /proc/driver/nvidia-caps/mig-minors.
func TestCapability(t *testing.T) {
	for number, want := range map[string]place{
		"3":   {0, 0, device.Unknown},
		"4":   {0, 0, 0},
		"5":   {0, 0, 1},
		"11":  {0, 0, 7},
		"12":  {0, 1, device.Unknown},
		"137": {0, 14, 7},
		"138": {1, 0, device.Unknown},
		"439": {3, 3, 3},
		"918": {6, 11, 5},
	} {
		if got, known := capability(number); got != want || !known {
			t.Errorf("%s is %v (%t), want %v", number, got, known, want)
		}
	}
	for _, number := range []string{"", "0", "1", "2", "-3", "3x", "99999999"} {
		if got, known := capability(number); known {
			t.Errorf("%q is %v", number, got)
		}
	}
}

func FuzzPlaceOf(f *testing.F) {
	f.Add("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67")
	f.Add("/dev/nvidia-caps/nvidia-cap918", "/dev/nvidia-caps/", "/dev/nvidia")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		at, known := parsePlace([]string{a, b, c})
		if known && (at.minor < 0 || at.gpu < 0 || at.gpu > 14 || at.compute < 0 || at.compute > 7) {
			t.Errorf("%q, %q and %q are of %v", a, b, c, at)
		}
	})
}

// However a partition is known, its identity is its own.
func TestHardwareUUIDsAreUnique(t *testing.T) {
	partition := func(profile string, placement, gpuInstance, computeInstance int) device.Device {
		d := migOf("GPU-0", "", profile, placement)
		d.GPUInstance, d.ComputeInstance = gpuInstance, computeInstance
		return d
	}
	const unknown = device.Unknown
	var all []string
	for _, d := range []device.Device{
		gpu(0), {PCIBusID: "0000:10:00.0"}, {PCIBusID: "0000:81:00.0"}, instance(0, "1g.10gb", 7, 0), instance(0, "1g.10gb", 7, 1),
		partition("1g.10gb", 0, unknown, unknown), partition("1g.10gb", 1, unknown, unknown), partition("2g.20gb", 0, unknown, unknown),
		partition("1c.2g.20gb", 0, 3, 0), partition("1c.2g.20gb", 0, 3, 1), partition("1c.2g.20gb", unknown, 4, 0),
	} {
		all = append(all, hardwareUUID("node-a", d))
	}
	sorted := slices.Sorted(slices.Values(all))
	if unique := slices.Compact(slices.Clone(sorted)); len(unique) != len(all) {
		t.Errorf("%d identities of %d devices: %v", len(unique), len(all), sorted)
	}
	if !slices.Contains(all, "node-a/pci-0000:10:00.0/gi3-ci1") || !slices.Contains(all, "node-a/pci-0000:10:00.0/1g10gb-1") {
		t.Errorf("the identities are %v", all)
	}
}
