package node

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func subjectOf(driver, name string, fill func(*subject)) subject {
	s := subject{id: dra.DeviceID{Driver: driver, Pool: "node-a", Name: name}, isPublished: true, published: &dra.PublishedDevice{Placement: dra.PlacementUnknown}}
	if fill != nil {
		fill(&s)
	}
	return s
}

func migOf(parent, uuid, profile string, placement int) device.Device {
	d := gpu(0)
	d.UUID, d.ParentUUID, d.Profile, d.Placement = uuid, parent, profile, placement
	d.GPUInstance, d.ComputeInstance = device.Unknown, device.Unknown
	return d
}

// gpuNodes are the device nodes that a CDI entry has for a whole GPU of
// NVIDIA's on a node with its display driver.
func gpuNodes(minor int) []string {
	return []string{
		fmt.Sprintf("/dev/dri/card%d", minor+1), fmt.Sprintf("/dev/dri/renderD%d", minor+128),
		"/dev/nvidiactl", "/dev/nvidia-uvm", fmt.Sprintf("/dev/nvidia%d", minor),
	}
}

func TestMatch(t *testing.T) {
	amd := device.Device{Vendor: "amd", PCIBusID: "0000:c1:00.0", Minor: device.Unknown, RenderMinor: 128, Placement: device.Unknown, Nodes: []string{"/dev/dri/renderD128"}}
	example := device.Device{UUID: "gpu-7244", Vendor: "example", Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown}
	uuid := func(uuid string) func(*subject) { return func(s *subject) { s.published.UUID = uuid } }
	unpublished := func(s *subject) { s.isPublished = false }
	for _, test := range []matchTest{
		{"by uuid, whatever the name", []subject{subjectOf("gpu.nvidia.com", "gpu-9", uuid("GPU-1"))},
			[]device.Device{gpu(0), gpu(1)}, map[string]int{"gpu-9": 1}},
		{"two published devices of one driver with one uuid are ambiguous",
			[]subject{subjectOf("gpu.nvidia.com", "gpu-0", uuid("GPU-0")), subjectOf("gpu.nvidia.com", "gpu-1", uuid("GPU-0"))},
			[]device.Device{gpu(0)}, nil},
		{"two pieces of hardware with one uuid are ambiguous", []subject{subjectOf("gpu.nvidia.com", "gpu-0", uuid("GPU-0"))},
			[]device.Device{gpu(0), gpu(0)}, nil},
		{"the vendor's own driver goes before others that made the uuid up",
			[]subject{subjectOf("part.example.com", "gpu-0-partition-0", uuid("gpu-7244")), subjectOf("part.example.com", "gpu-0-partition-1", uuid("gpu-7244")),
				subjectOf("gpu.example.com", "gpu-0", uuid("gpu-7244")), subjectOf("bind.example.com", "gpu-0", uuid("gpu-7244"))},
			[]device.Device{example}, map[string]int{"gpu-0": 0}},
		{"another driver alone may publish the hardware", []subject{subjectOf("gpu.acme.com", "a", uuid("GPU-0"))},
			[]device.Device{gpu(0)}, map[string]int{"a": 0}},
		{"on-demand partitions by placement",
			[]subject{
				subjectOf("gpu.nvidia.com", "gpu-0-mig-1g10gb-19-0", func(s *subject) {
					s.published.ParentUUID, s.published.Profile, s.published.Placement = "GPU-0", "1g.10gb", 0
				}),
				subjectOf("gpu.nvidia.com", "gpu-0-mig-1g10gb-19-1", func(s *subject) {
					s.published.ParentUUID, s.published.Profile, s.published.Placement = "GPU-0", "1g.10gb", 1
				}),
			},
			[]device.Device{gpu(0), migOf("GPU-0", "MIG-b", "1g.10gb", 1), migOf("GPU-0", "MIG-a", "1g.10gb", 0)},
			map[string]int{"gpu-0-mig-1g10gb-19-0": 2, "gpu-0-mig-1g10gb-19-1": 1}},
		{"by PCI address", []subject{subjectOf("gpu.amd.com", "gpu-1-128", func(s *subject) { s.published.PCIAddress = "0000:c1:00.0" })},
			[]device.Device{gpu(0), amd}, map[string]int{"gpu-1-128": 1}},
		{"a partition never matches by its parent's address",
			[]subject{subjectOf("gpu.amd.com", "p", func(s *subject) {
				s.published.PCIAddress, s.published.ParentUUID = "0000:c1:00.0", "x"
			})},
			[]device.Device{amd}, nil},
		{"an address does not overrule the vendor's uuid",
			[]subject{subjectOf("gpu.nvidia.com", "gpu-0", func(s *subject) { s.published.UUID, s.published.PCIAddress = "GPU-old", "0000:10:00.0" })},
			[]device.Device{gpu(0)}, nil},
		{"an address overrules a uuid that another driver made up",
			[]subject{subjectOf("tpu.google.com", "accel0", func(s *subject) { s.published.UUID, s.published.PCIAddress = "made-up", "0000:10:00.0" })},
			[]device.Device{gpu(0)}, map[string]int{"accel0": 0}},
		{"by what the driver wrote into the claim", []subject{subjectOf("dra.net", "nic", func(s *subject) { s.status.PCIAddress = "0000:c1:00.0" })},
			[]device.Device{amd}, map[string]int{"nic": 0}},
		{"by the device node of its CDI entry", []subject{subjectOf("gpu.acme.com", "a", func(s *subject) { s.nodes = []string{"/dev/kfd", "/dev/dri/renderD128"} })},
			[]device.Device{gpu(0), amd}, map[string]int{"a": 1}},
		{"by NVIDIA's node, with those of its display driver beside",
			[]subject{subjectOf("gpu.acme.com", "a", func(s *subject) { s.nodes = gpuNodes(1) }), subjectOf("gpu.acme.com", "b", func(s *subject) { s.nodes = gpuNodes(0) })},
			[]device.Device{gpu(0), gpu(1), amd}, map[string]int{"a": 1, "b": 0}},
		{"a node that all GPUs of NVIDIA's share hides none of others", []subject{subjectOf("gpu.acme.com", "a", func(s *subject) { s.nodes = []string{"/dev/nvidiactl", "/dev/dri/renderD128"} })},
			[]device.Device{gpu(0), amd}, map[string]int{"a": 1}},
		{"nodes of the display driver do not make one of two", []subject{subjectOf("gpu.acme.com", "a", func(s *subject) { s.nodes = append(gpuNodes(0), gpuNodes(1)...) })},
			[]device.Device{gpu(0), gpu(1)}, nil},
		{"two of them alone are ambiguous", []subject{subjectOf("gpu.acme.com", "a", func(s *subject) { s.nodes = []string{"/dev/nvidiactl", "/dev/dri/renderD128", "/dev/dri/renderD129"} })},
			[]device.Device{amd}, nil},
		{"an adapter's node beside a GPU's is ambiguous", []subject{subjectOf("gpu.acme.com", "a", func(s *subject) { s.nodes = append(gpuNodes(0), "/dev/infiniband/uverbs0") })},
			[]device.Device{gpu(0)}, nil},
		{"a node of the parent does not make a partition the parent",
			[]subject{subjectOf("gpu.acme.com", "a", func(s *subject) { s.nodes = []string{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap12"} })},
			[]device.Device{gpu(0)}, nil},
		{"by the device node of an adapter", []subject{subjectOf("ib.acme.com", "a", func(s *subject) { s.nodes = []string{"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs3"} })},
			[]device.Device{gpu(0), {Vendor: "mellanox", PCIBusID: "0000:a1:00.0", Minor: device.Unknown, RenderMinor: device.Unknown, Nodes: []string{"/dev/infiniband/uverbs3"}}}, map[string]int{"a": 1}},
		{"an adapter by the address that dra.net publishes", []subject{subjectOf("dra.net", "mlx5-1", func(s *subject) { s.published.PCIAddress = "0000:a1:00.2" })},
			[]device.Device{{Vendor: "mellanox", PCIBusID: "0000:a1:00.0"}, {Vendor: "mellanox", PCIBusID: "0000:a1:00.2"}}, map[string]int{"mlx5-1": 1}},
		{"what the driver wrote of a partition into the claim is its parent's address",
			[]subject{subjectOf("gpu.amd.com", "p", func(s *subject) { s.published.ParentPCIAddress, s.status.PCIAddress = "0000:c1:00.0", "0000:c1:00.0" })},
			[]device.Device{amd}, nil},
		{"two device nodes are ambiguous", []subject{subjectOf("gpu.acme.com", "a", func(s *subject) { s.nodes = []string{"/dev/nvidia0", "/dev/nvidia1"} })},
			[]device.Device{gpu(0), gpu(1)}, nil},
		{"by the driver's naming rule, without slices", []subject{
			subjectOf("gpu.nvidia.com", "gpu-1", unpublished), subjectOf("gpu.nvidia.com", "gpu-0-mig-1g10gb-19-4", unpublished), subjectOf("gpu.amd.com", "gpu-1-128", unpublished)},
			[]device.Device{gpu(0), gpu(1), migOf("GPU-0", "MIG-a", "1g.10gb", 4), amd},
			map[string]int{"gpu-1": 1, "gpu-0-mig-1g10gb-19-4": 2, "gpu-1-128": 3}},
		{"names that follow no rule", []subject{
			subjectOf("gpu.nvidia.com", "gpu", unpublished), subjectOf("gpu.nvidia.com", "gpu-x", unpublished), subjectOf("gpu.nvidia.com", "gpu-vfio-0", unpublished),
			subjectOf("gpu.nvidia.com", "gpu-0-mig-1g10gb-19-x", unpublished), subjectOf("gpu.acme.com", "gpu-0", unpublished), subjectOf("gpu.nvidia.com", "", unpublished)},
			[]device.Device{gpu(0)}, nil},
		{"a slice overrules the naming rule", []subject{subjectOf("gpu.nvidia.com", "gpu-0", nil)}, []device.Device{gpu(0)}, nil},
	} {
		t.Run(test.name, test.run)
	}
}

// A matchTest is the expected matches, in any order of the slices.
type matchTest struct {
	name     string
	subjects []subject
	hardware []device.Device
	want     map[string]int // name of the subject → index of the hardware
}

func (test matchTest) run(t *testing.T) {
	got := match(test.subjects, test.hardware, nil).found
	if len(got) != len(test.want) {
		t.Errorf("%d matches, want %d: %v", len(got), len(test.want), got)
	}
	for id, i := range got {
		if want, ok := test.want[id.Name]; !ok || want != i {
			t.Errorf("%s is hardware %d, want %d (%v)", id, i, want, ok)
		}
	}
	backwards := slices.Clone(test.subjects)
	slices.Reverse(backwards)
	if again := match(backwards, test.hardware, nil).found; !maps.Equal(again, got) {
		t.Errorf("the order of the slices changes the matches: %v, then %v", got, again)
	}
}

// Known matches of devices that are not named any more do not end the
// search.
func TestMatchWithKnownMatches(t *testing.T) {
	named := []subject{subjectOf("gpu.nvidia.com", "gpu-1", func(s *subject) { s.isPublished = false })}
	known := map[dra.DeviceID]int{{Driver: "gpu.nvidia.com", Pool: "node-a", Name: "gpu-0"}: 0}
	if got, matched := match(named, []device.Device{gpu(0), gpu(1)}, known).found[named[0].id]; !matched || got != 1 {
		t.Errorf("it is hardware %d (%v), want 1", got, matched)
	}
}

// Matches are those of Step, each device by the first rule
// that leads to it.
func TestMatchesHaveRules(t *testing.T) {
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
		Cluster: APIFacts{Enabled: true, Published: []dra.PublishedDevice{
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

// Without the API server, a device node in the CDI entry of a device is its
// identity: claims that have it under two names hold one device, and none of them is
// alone with it.
func TestDeviceNodesWithoutTheAPIServer(t *testing.T) {
	unlisted := gpu(0)
	unlisted.Nodes = nil // only its minor number is known
	render := device.Device{UUID: "AMD-0", Vendor: "amd", Minor: device.Unknown, RenderMinor: 128, Placement: device.Unknown}
	card := device.Device{UUID: "INTEL-0", Vendor: "intel", Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown, Nodes: []string{"/dev/dri/card1"}}
	accel := device.Device{UUID: "TPU-0", Vendor: "google", Minor: 0, RenderMinor: device.Unknown, Placement: device.Unknown, Nodes: []string{"/dev/accel0"}}
	whole, part := gpu(1), migOf("GPU-1", "MIG-a", "1g.10gb", 0)
	part.GPUInstance, part.ComputeInstance = 1, 0
	for name, test := range map[string]struct {
		hardware []device.Device
		nodes    []string
		uuid     string
	}{
		"an NVIDIA GPU":        {[]device.Device{gpu(0), gpu(1)}, []string{"/dev/nvidiactl", "/dev/nvidia0"}, "GPU-0"},
		"of its minor number":  {[]device.Device{unlisted, gpu(1)}, []string{"/dev/nvidia0"}, "GPU-0"},
		"a render node":        {[]device.Device{render}, []string{"/dev/kfd", "/dev/dri/card1", "/dev/dri/renderD128"}, "AMD-0"},
		"a card":               {[]device.Device{card}, []string{"/dev/dri/card1"}, "INTEL-0"},
		"an accelerator":       {[]device.Device{accel}, []string{"/dev/accel0"}, "TPU-0"},
		"a partition":          {[]device.Device{whole, part}, []string{"/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap147", "/dev/nvidia-caps/nvidia-cap148"}, "MIG-a"},
		"a node of no device":  {[]device.Device{gpu(0)}, []string{"/dev/nvidia7"}, ""},
		"two nodes":            {[]device.Device{gpu(0), gpu(1)}, []string{"/dev/nvidia0", "/dev/nvidia1"}, ""},
		"a node that all have": {[]device.Device{gpu(0)}, []string{"/dev/nvidiactl", "/dev/kfd"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, test.hardware...)
			s.facts.Cluster = APIFacts{}
			for i, claim := range []string{"one", "two"} {
				s.list("ml/claim-"+claim, claim)
				s.facts.Listing.Assignments[i].Device.Driver = claim + ".example.com"
				s.facts.Listing.Assignments[i].CDIDevices = []string{"vendor.example/gpu=" + claim}
				s.facts.CDI = append(s.facts.CDI, dra.CDIDevice{Name: "vendor.example/gpu=" + claim, Nodes: test.nodes})
			}
			s.listed(1)
			s.listed(1)
			want := "2"
			if test.uuid == "" {
				want = "0"
			}
			got := 0
			for _, row := range s.last.Rows() {
				if row.Family.Name == "dra_claim_held" && row.Labels.Get("uuid") == test.uuid {
					got++
				}
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%d claims hold %q, want %s:\n%s", got, test.uuid, want, s.page("dra_claim_held{"))
			}
		})
	}
}
