package node

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// logged runs for some seconds and returns the events about unmatched devices.
func (s *scene) logged(seconds int) string {
	var got []string
	for range seconds {
		s.run(1)
		for _, e := range s.events {
			if e.Level == slog.LevelDebug {
				continue
			}
			line := []string{e.Level.String(), e.Message}
			for _, attr := range e.Attrs {
				line = append(line, attr.String())
			}
			got = append(got, strings.Join(line, " "))
		}
	}
	return strings.Join(got, "\n")
}

// appear puts hardware on the node.
func (s *scene) addDevice(d device.Device) {
	s.facts.Samples = append(s.facts.Samples, device.Sample{Device: d, Source: "simulated"})
	s.sampled[d.UUID], s.details[d.UUID] = map[device.Quantity]float64{}, map[device.Reading]float64{}
}

// offer publishes a partition of GPU-0 that need not exist yet.
func (s *scene) publishPlacement(placement int) dra.DeviceID {
	id := onDemand(0, "1g.10gb", placement).id
	id.Pool = sceneNode
	s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{
		ID: id, Node: sceneNode, ParentUUID: "GPU-0", Profile: "1g.10gb", Placement: placement,
	})
	return id
}

// A partition that is created for its claim is unmatched for a while, which is
// nothing to warn of.
func TestPartitionsCreatedOnDemandAreMatched(t *testing.T) {
	s := newScene(t, gpu(0))
	s.immutable = true
	id := s.publishPlacement(0)
	s.run(5)
	s.allocate("team/job", id.Name)
	if got := s.logged(29); got != "" {
		t.Errorf("before the partition was made: %s", got)
	}
	s.addDevice(migOf("GPU-0", "MIG-a", "1g.10gb", 0))
	if got := s.logged(60); got != "" {
		t.Errorf("after it was made: %s", got)
	}
	if _, held := s.value("dra_claim_held", "uuid", "MIG-a"); !held {
		t.Error("it is not held")
	}
}

// A device that stays unmatched is logged once, and again when it is matched.
func TestUnmatchedDevicesAreLogged(t *testing.T) {
	const warning, relief = "WARN device of a claim matches no hardware ", "INFO device of a claim matches hardware now "
	s := newScene(t, gpu(0))
	s.immutable = true // so that steps without changes do not join again
	first, second := s.publishPlacement(0), s.publishPlacement(3)
	s.allocate("team/job", first.Name, first.Name).Results[1].Request = "once more"
	if got := s.logged(30); got != "" {
		t.Errorf("at once: %s", got)
	}
	s.allocate("team/other", second.Name)
	if got, want := s.logged(30), warning+"claim=team/job device="+first.String(); got != want {
		t.Errorf("after a while:\n%s\nwant\n%s", got, want)
	}
	if got, want := s.logged(30), warning+"claim=team/other device="+second.String(); got != want {
		t.Errorf("of one that came later:\n%s\nwant\n%s", got, want)
	}
	s.release("team/other")
	if got := s.logged(60); got != "" {
		t.Errorf("again, or of one that is held no more: %s", got)
	}
	s.addDevice(migOf("GPU-0", "MIG-a", "1g.10gb", 0))
	if got, want := s.logged(10), relief+"claim=team/job device="+first.String()+" uuid=MIG-a"; got != want {
		t.Errorf("when it is known:\n%s\nwant\n%s", got, want)
	}

	// Another claim of the same name is another one.
	s.release("team/job")
	s.allocate("team/other", second.Name)
	s.logged(31)
	s.facts.Cluster.Claims = slices.Clone(s.facts.Cluster.Claims)
	s.facts.Cluster.Claims[0].UID = "uid-of-another"
	if got := s.logged(29); got != "" {
		t.Errorf("of a new claim at once: %s", got)
	}
	if got, want := s.logged(5), warning+"claim=team/other device="+second.String(); got != want {
		t.Errorf("of a new claim:\n%s\nwant\n%s", got, want)
	}
}

// Channels and daemons of a ComputeDomain are no hardware, and no source reads the
// devices of other drivers.
func TestUnreadDevicesAreNotUnmatched(t *testing.T) {
	s := newScene(t, gpu(0))
	for _, driver := range []string{"compute-domain.nvidia.com", "other.example.com", "gpu.amd.com", "vfio.gpu.nvidia.com", "dra.net", "dra.cpu", "gpu.nvidia.com"} {
		claim := s.allocate("team/"+driver, "device-7")
		claim.Results[0].Device.Driver = driver
	}
	s.facts.Sources = []source.Status{{Name: "rdma", Up: true}, {Name: "plugin", Up: true}, {Name: "amdgpu"}}
	const warning = "WARN device of a claim matches no hardware claim=team/"
	if got, want := s.logged(35), warning+"gpu.nvidia.com device=gpu.nvidia.com/"+sceneNode+"/device-7"; got != want {
		t.Errorf("logged:\n%s\nwant\n%s", got, want)
	}
	const nvidia = `dra_exporter_unmatched_devices{driver="gpu.nvidia.com",side="hardware"} 0
dra_exporter_unmatched_devices{driver="gpu.nvidia.com",side="published"} 1
`
	if got := s.page("dra_exporter_unmatched_devices"); got != nvidia {
		t.Errorf("without a source of AMD:\n%swant\n%s", got, nvidia)
	}
	s.facts.Sources = []source.Status{{Name: "amdgpu", Up: true}}
	if got, want := s.logged(1), warning+"gpu.amd.com device=gpu.amd.com/"+sceneNode+"/device-7"; got != want {
		t.Errorf("logged:\n%s\nwant\n%s", got, want)
	}
	const amd = `dra_exporter_unmatched_devices{driver="gpu.amd.com",side="hardware"} 0
dra_exporter_unmatched_devices{driver="gpu.amd.com",side="published"} 1
`
	if got := s.page("dra_exporter_unmatched_devices"); got != amd+nvidia {
		t.Errorf("with one:\n%swant\n%s", got, amd+nvidia)
	}
	s.facts.Sources = []source.Status{{Name: "amdgpu"}}
	s.run(1)
	if got := s.page("dra_exporter_unmatched_devices"); got != nvidia {
		t.Errorf("while it is down:\n%swant\n%s", got, nvidia)
	}
}

// The driver of passthrough keeps the name of NVIDIA's.
func TestPassthroughIsNotUnmatched(t *testing.T) {
	s := newScene(t, gpu(0))
	id := sceneID("gpu-vfio-1")
	s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{ID: id, Node: sceneNode, Passthrough: true, Placement: dra.PlacementUnknown})
	s.allocate("team/vm", id.Name)
	if got := s.logged(35); got != "" {
		t.Errorf("logged:\n%s", got)
	}
	if got, _ := s.value("dra_exporter_unmatched_devices", "side", "published"); got != 0 {
		t.Errorf("%v devices are unmatched", got)
	}
}

// Two devices that had the same partition one after the other do not both go
// on having it when their slices vanish: not even by chance.
func TestAPartnerIsKeptForOne(t *testing.T) {
	for range 50 {
		s := newScene(t, gpu(0))
		first, second := s.publishPlacement(0), s.publishPlacement(3)
		s.addDevice(instance(0, "1g.10gb", 7, 0))
		hold := func(claim string, id dra.DeviceID) {
			namespace, name, _ := strings.Cut(claim, "/")
			entry := dra.CDIDevice{Name: "k8s.gpu.nvidia.com/claim=" + id.Name, Nodes: capabilitiesOf(0, 7, 0)}
			s.allocate(claim, id.Name)
			s.facts.CDI = []dra.CDIDevice{entry}
			s.facts.Listing.Assignments = append(s.facts.Listing.Assignments, dra.Assignment{
				Pod: dra.PodRef{Namespace: namespace, Name: name}, Container: "main", Claim: dra.ClaimRef{Namespace: namespace, Name: name},
				Device: id, CDIDevices: []string{entry.Name},
			})
			s.listed(1)
		}
		hold("team/first", first)
		// Its partition is gone, though the claim still is reserved; the
		// second one's got the same instances.
		hold("team/second", second)
		s.run(2)
		for _, published := range [][]dra.PublishedDevice{s.facts.Cluster.Published, nil} { // the driver goes down
			s.facts.Cluster.Published = published
			s.run(1)
			if _, held := s.value("dra_claim_held", "uuid", "MIG-GPU-0/7/0", "resourceclaim", "second"); !held {
				t.Fatalf("with %d published devices the second does not hold the partition:\n%s", len(published), s.page("dra_claim_held"))
			}
			if _, held := s.value("dra_claim_held", "uuid", "MIG-GPU-0/7/0", "resourceclaim", "first"); held {
				t.Fatalf("with %d published devices the first holds the partition:\n%s", len(published), s.page("dra_claim_held"))
			}
			if named, _ := s.label("dra_device_published_info", "device", "uuid", "MIG-GPU-0/7/0"); named != second.Name {
				t.Fatalf("with %d published devices the partition is called %s", len(published), named)
			}
		}
	}
}

// A card of which only the parts are published is not unpublished
// hardware; its neighbour, of which nothing is published, is.
func TestADividedCardIsNotUnmatched(t *testing.T) {
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
	if page := s.page("dra_exporter_unmatched"); !strings.Contains(page, `dra_exporter_unmatched_devices{driver="gpu.amd.com",side="hardware"} 1`) {
		t.Errorf("not one card is unmatched:\n%s", page)
	}
}
