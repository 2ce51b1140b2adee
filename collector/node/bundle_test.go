package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// publishCPUs publishes CPUs as dra-driver-cpu does in its individual mode: half of
// them on each of two NUMA nodes.
func (s *scene) publishCPUs(count int) {
	for i := range count {
		s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{
			ID: cpuID(i), Node: sceneNode, NUMANode: fmt.Sprint(2 * i / count), Placement: dra.PlacementUnknown,
		})
	}
}

func cpuID(i int) dra.DeviceID {
	return dra.DeviceID{Driver: "dra.cpu", Pool: sceneNode, Name: fmt.Sprintf("cpudev%03d", i)}
}

// publishVF publishes a virtual function of a network adapter, as the SR-IOV driver
// does: with its own address, and the root complex of the adapter.
func (s *scene) publishVF() dra.DeviceID {
	id := dra.DeviceID{Driver: "sriovnetwork.k8snetworkplumbingwg.io", Pool: sceneNode, Name: "0000-3b-02-1"}
	s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{
		ID: id, Node: sceneNode, PCIAddress: "0000:3b:02.1", PCIeRoot: "pci0000:3a", NUMANode: "0", Placement: dra.PlacementUnknown,
	})
	return id
}

// allocateDevices makes a claim of devices of any driver, through the class of the
// driver's name.
func (s *scene) allocateDevices(claim string, devices ...dra.DeviceID) *dra.Claim {
	made := s.allocate(claim)
	made.Requests = nil
	for _, id := range devices {
		request := dra.Request{Name: id.Driver, DeviceClass: id.Driver}
		if !slices.ContainsFunc(made.Requests, func(r dra.Request) bool { return r.Name == request.Name }) {
			made.Requests = append(made.Requests, request)
		}
		made.Results = append(made.Results, dra.Result{Request: request.Name, Device: id})
	}
	return made
}

func cpuIDs(from, to int) (ids []dra.DeviceID) {
	for i := from; i < to; i++ {
		ids = append(ids, cpuID(i))
	}
	return ids
}

// mixedNode is a node whose claims hold a GPU, a virtual function, and 64 CPUs.
func mixedNode(t *testing.T) *scene {
	s := newScene(t, gpu(0))
	s.facts.Cluster.Published[0].PCIeRoot, s.facts.Cluster.Published[0].NUMANode = "pci0000:10", "0"
	s.publishCPUs(128)
	vf := s.publishVF()
	s.facts.Sources = []source.Status{{Name: "nvml", Up: true}, {Name: "rdma", Up: true}}
	s.allocateDevices("ml/train", append([]dra.DeviceID{sceneID("gpu-0"), vf}, cpuIDs(0, 64)...)...)
	s.allocateDevices("web/serve", cpuIDs(60, 68)...)
	return s
}

func TestBundles(t *testing.T) {
	s := mixedNode(t)
	s.priced(price.Rule{Model: "NVIDIA H100*", PerHour: 3.6}, price.Rule{Driver: "dra.cpu", PerHour: 0.36}, price.Rule{PerHour: 36})
	s.run(10)
	pages := s.script("dra_claim_", "dra_pod_topology", "dra_device_", "dra_namespace_", "dra_exporter_unmatched", "dra_exporter_conflicting")
	pages.show("a GPU, a virtual function and 64 CPUs, and 8 CPUs on two NUMA nodes")
	s.facts.Cluster.Published = s.facts.Cluster.Published[:1]
	s.run(1)
	pages.show("the drivers' slices are gone")
	s.release("ml/train")
	s.run(1)
	pages.show("the first claim has ended")
	metrictest.CompareGolden(t, "testdata/bundles.txt", pages.String())
}

// countSeries counts the series that have the text in a label.
func (s *scene) countSeries(text string) int {
	count := 0
	for _, row := range s.last.Rows() {
		for _, value := range row.Labels.Each {
			if strings.Contains(value, text) {
				count++
				break
			}
		}
	}
	return count
}

// At the level full each of 64 CPUs has its own series; otherwise they have some
// together.
func TestSeriesOfBundles(t *testing.T) {
	for _, each := range []bool{true, false} {
		s := newScene(t)
		s.configure(func(c *Config) { c.EachDevice = each })
		s.publishCPUs(64)
		s.allocateDevices("ml/train", cpuIDs(0, 64)...)
		s.run(2)
		got := s.countSeries("/dra.cpu/")
		if want := map[bool]int{true: 64 * 11, false: 9}[each]; got != want {
			t.Errorf("each device: %v: %d series, want %d:\n%s", each, got, want, s.page(""))
		}
		t.Logf("each device: %v: %d series of 64 CPUs", each, got)
	}
}

// Whether devices of a claim are a bundle depends on their driver, their number, and on
// who reads them.
func TestWhatIsBundled(t *testing.T) {
	ids := func(driver string, count int) (all []dra.DeviceID) {
		for i := range count {
			all = append(all, dra.DeviceID{Driver: driver, Pool: sceneNode, Name: fmt.Sprint("device-", i)})
		}
		return all
	}
	for name, test := range map[string]struct {
		devices []dra.DeviceID
		change  func(*scene, *dra.Claim)
		want    float64 // 0: no bundle
	}{
		"CPUs":                     {devices: ids("dra.cpu", 4), want: 4},
		"one CPU":                  {devices: ids("dra.cpu", 1)},
		"adapters":                 {devices: ids("sriovnetwork.k8snetworkplumbingwg.io", 16)},
		"many":                     {devices: ids("other.example.com", 17), want: 17},
		"many that a source reads": {devices: ids("gpu.nvidia.com", 17)},
		"CPUs in two requests": {devices: ids("dra.cpu", 4), change: func(_ *scene, c *dra.Claim) {
			c.Results = append(c.Results, dra.Result{Request: "more", Device: c.Results[0].Device})
		}, want: 4},
		"shares of groups of CPUs":  {devices: ids("dra.cpu", 4), change: func(_ *scene, c *dra.Claim) { shareAll(c) }},
		"with admin access":         {devices: ids("dra.cpu", 4), change: func(_ *scene, c *dra.Claim) { c.Results[3].AdminAccess = true }, want: 3},
		"one of which is described": {devices: ids("dra.cpu", 4), change: func(s *scene, _ *dra.Claim) { s.addDevice(publishedAs("dra.cpu", sceneNode, "device-2")) }, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			claim := s.allocateDevices("ml/train", test.devices...)
			if test.change != nil {
				test.change(s, claim)
			}
			s.run(3)
			got, found := s.value("dra_claim_bundled_devices")
			if found != (test.want > 0) || got != test.want {
				t.Errorf("%v devices are bundled (%v), want %v:\n%s", got, found, test.want, s.page("dra_claim_"))
			}
		})
	}
}

func shareAll(c *dra.Claim) {
	for i := range c.Results {
		c.Results[i].ShareID = fmt.Sprint("share-", i)
	}
}

// Devices that no price names have none, and their claims are not charged.
func TestPricesOfUnreadDevices(t *testing.T) {
	everything := price.Rule{PerHour: 9}
	for name, test := range map[string]struct {
		driver string
		rules  []price.Rule
		want   string
	}{
		"CPUs":             {"dra.cpu", []price.Rule{everything}, ""},
		"CPUs by driver":   {"dra.cpu", []price.Rule{{Driver: "dra.cpu", PerHour: 0.1}, everything}, "0.1"},
		"CPUs by class":    {"dra.cpu", []price.Rule{{DeviceClass: "dra.cpu", PerHour: 0.2}, everything}, "0.2"},
		"channels":         {"compute-domain.nvidia.com", []price.Rule{everything}, ""},
		"adapters":         {"dra.net", []price.Rule{everything}, "9"},
		"functions":        {"sriovnetwork.k8snetworkplumbingwg.io", []price.Rule{everything}, ""},
		"unknown":          {"other.example.com", []price.Rule{everything}, ""},
		"unread by model":  {"other.example.com", []price.Rule{{Model: "Accelerator*", PerHour: 3}, everything}, "3"},
		"passthrough":      {"vfio.gpu.nvidia.com", []price.Rule{everything}, "9"},
		"other vendors":    {"gaudi.intel.com", []price.Rule{everything}, "9"},
		"of a lost source": {"gpu.nvidia.com", []price.Rule{everything}, "9"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.priced(test.rules...)
			id := dra.DeviceID{Driver: test.driver, Pool: sceneNode, Name: "device-0"}
			s.facts.Cluster.Published = []dra.PublishedDevice{{ID: id, Node: sceneNode, Model: "Accelerator X", Placement: dra.PlacementUnknown}}
			s.allocateDevices("ml/train", id)
			s.run(3)
			_, got, _ := strings.Cut(s.prices(), "=")
			cost, charged := s.value("dra_namespace_cost_total")
			if got != test.want || charged != (test.want != "") {
				t.Errorf("the price is %q, want %q; cost %v (%v)", got, test.want, cost, charged)
			}
		})
	}
}

// Network adapters are known by their driver, or by the class of their function.
func TestNetworkAdaptersOfAnyDriver(t *testing.T) {
	for name, test := range map[string]struct {
		driver  string
		network bool // by its class
		want    string
	}{
		"by the driver":             {"sriovnetwork.k8snetworkplumbingwg.io", false, "network"},
		"by the class":              {"other.example.com", true, "network"},
		"of another class":          {"other.example.com", false, "devices"},
		"the driver is of no class": {"gaudi.intel.com", true, "devices"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, gpu(0))
			s.facts.Cluster.Published[0].NUMANode = "0"
			id := dra.DeviceID{Driver: test.driver, Pool: sceneNode, Name: "nic-0"}
			s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{ID: id, Node: sceneNode, PCIAddress: "0000:3b:02.1", Placement: dra.PlacementUnknown})
			s.facts.Locations = device.NewLocations(map[string]device.Location{"0000:3b:02.1": {NUMANode: "0", Network: test.network}})
			s.allocateDevices("ml/train", sceneID("gpu-0"), id)
			s.run(1)
			if got, _ := s.label("dra_claim_topology_info", "between"); got != test.want {
				t.Errorf("between %q, want %q:\n%s", got, test.want, s.page("dra_claim_topology"))
			}
		})
	}
}
