package node

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// legacyPod is a pod that got GPU-0 through a device plugin.
func (s *scene) legacyPod() dra.PodResources {
	pod := dra.PodRef{Namespace: "ml", Name: "legacy"}
	return dra.PodResources{Pods: []dra.PodRef{pod}, Plugins: []dra.PluginAssignment{
		{Pod: pod, Container: "main", Resource: "nvidia.com/gpu", DeviceIDs: []string{"GPU-0"}},
	}}
}

// The kubelet's empty answer after its restart does not free what a device
// plugin gave: the claim beside it is not alone with the device.
func TestEmptyListKeepsPlugins(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/train", "gpu-0")
	s.facts.Listing, s.facts.ListedAt = s.legacyPod(), s.now
	s.facts.Cluster.PluginPods = []dra.Pod{{Ref: s.facts.Listing.Pods[0], UID: "uid-of-legacy", Node: sceneNode}}
	s.run(5)
	s.facts.Listing, s.facts.ListedAt = dra.PodResources{}, s.now
	s.run(3)
	if got, shown := s.value("dra_claim_energy_joules_total", "attribution", "exclusive"); shown && got > 0 {
		t.Errorf("%v J were credited as exclusive", got)
	}
	s.facts.Cluster.PluginPods = nil
	s.run(1)
	if got, _ := s.value("dra_device_holders", "kind", "device_plugin"); got != 0 {
		t.Errorf("%v holders by device plugin once the API server does not have the pod either", got)
	}
}

// While the own driver is down, another driver that names the same hardware
// does not get it.
func TestKeptMatchIsExclusive(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/train", "gpu-0")
	other := s.facts.Cluster.Published[0]
	other.ID = dra.DeviceID{Driver: "test.example.com", Pool: sceneNode, Name: "gpu-0"}
	s.facts.Cluster.Published = append(s.facts.Cluster.Published, other)
	s.run(5)
	s.facts.Cluster.Published = s.facts.Cluster.Published[1:]
	s.run(5)
	if _, shown := s.value("dra_claim_utilization_ratio", "resourceclaim", "train", "uuid", "GPU-0"); !shown {
		t.Errorf("the claim lost its hardware:\n%s", s.page("dra_claim_held{"))
	}
}

// Hardware that is found while the API server is away is found all the same.
func TestHardwareFoundWhileTheWatchIsStale(t *testing.T) {
	s := busyGPU(t)
	s.facts.Cluster = APIFacts{Enabled: true}
	s.list("ml/train", "gpu-0")
	samples := s.facts.Samples
	s.facts.Samples = nil
	s.listed(1)
	s.facts.Samples = samples
	s.run(2)
	if _, shown := s.value("dra_claim_utilization_ratio", "resourceclaim", "train", "uuid", "GPU-0"); !shown {
		t.Errorf("the claim never got its hardware:\n%s", s.page("dra_claim_held{"))
	}
	if got, _ := s.label("dra_claim_consumer_info", "uuid", "resourceclaim", "train"); got != "GPU-0" {
		t.Errorf("its consumer uses %s", got)
	}
}

// A claim that was listed during an outage is not released until it has
// been read.
func TestUnreadClaimStaysHeld(t *testing.T) {
	s := busyGPU(t)
	s.facts.Cluster.Fresh = false
	s.list("ml/train", "gpu-0")
	s.listed(1)
	s.allocate("ml/train", "gpu-0")
	claims := s.facts.Cluster.Claims
	s.facts.Cluster.Claims, s.facts.Cluster.Fresh = nil, true
	s.facts.Cluster.Unread = []dra.ClaimRef{{Namespace: "ml", Name: "train"}}
	s.facts.Sources = []source.Status{{Name: SourceClaims, Up: true}}
	s.run(3)
	if !s.held("train") {
		t.Error("released before it was read")
	}
	s.facts.Cluster.Claims, s.facts.Cluster.Unread = claims, nil
	s.run(1)
	if class, _ := s.label("dra_claim_info", "deviceclass"); !s.held("train") || class != "gpu.nvidia.com" {
		t.Errorf("once read: held %v, class %q", s.held("train"), class)
	}
}

// A claim that has not been read yet may have admin access: it holds nothing, but
// its devices are not exclusive.
func TestUnreadClaimIsUncertain(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/train", "gpu-0")
	s.list("ml/monitor", "gpu-0")
	s.facts.ListedAt = s.now
	monitor := s.allocate("ml/monitor", "gpu-0")
	monitor.Results[0].AdminAccess = true
	claims := s.facts.Cluster.Claims
	s.facts.Cluster.Claims = claims[:1]
	s.facts.Cluster.Unread = []dra.ClaimRef{{Namespace: "ml", Name: "monitor"}}
	s.run(3)
	if s.held("monitor") {
		t.Error("it holds a device before it was read")
	}
	if got, shown := s.value("dra_claim_energy_joules_total", "attribution", "exclusive"); shown && got > 0 {
		t.Errorf("%v J were credited to the other claim as exclusive", got)
	}
	s.facts.Cluster.Claims, s.facts.Cluster.Unread = claims, nil
	s.run(3)
	if got, _ := s.value("dra_claim_energy_joules_total", "attribution", "exclusive"); got != 200 {
		t.Errorf("%v J as exclusive once the other is known to hold nothing, want 200", got)
	}
	if text := s.page("dra_namespace_device_seconds"); strings.Contains(text, `deviceclass=""`) {
		t.Errorf("a total without a class:\n%s", text)
	}
}

// Facts to join on live as long as the counters that they are joined with.
func TestInfoRowsAreKeptForTheGrace(t *testing.T) {
	t.Run("of a pod that left a shared claim", func(t *testing.T) {
		s := busyGPU(t)
		claim := s.allocate("ml/train", "gpu-0")
		claim.ReservedFor = append(claim.ReservedFor, dra.Consumer{Resource: "pods", Name: "two", UID: "uid-of-two"})
		two := s.facts.Cluster.Pods[0]
		two.Ref.Name, two.UID = "two", "uid-of-two"
		both := append(s.facts.Cluster.Pods, two)
		s.facts.Cluster.Pods = both
		s.run(2)
		s.facts.Cluster.Pods = both[:1]
		s.keptFor("dra_claim_consumer_info", `pod="two"`)
	})
	t.Run("of a device of the claim before", func(t *testing.T) {
		s := newScene(t, gpu(0), gpu(1))
		s.allocate("ml/train", "gpu-0")
		s.run(2)
		s.release("ml/train")
		s.allocate("ml/train", "gpu-1").UID = "another-uid"
		s.keptFor("dra_claim_device_info", `uuid="GPU-0"`)
	})
	t.Run("of a device plugin's pod", func(t *testing.T) {
		s := busyGPU(t)
		s.facts.Listing, s.facts.ListedAt = s.legacyPod(), s.now
		s.run(2)
		s.facts.Listing = dra.PodResources{Pods: []dra.PodRef{{Namespace: "x", Name: "y"}}}
		s.keptFor("dra_device_plugin_consumer_info", `pod="legacy"`)
	})
}

// keptFor expects a row to live through the grace, and no longer.
func (s *scene) keptFor(family, label string) {
	s.t.Helper()
	s.run(200)
	if !strings.Contains(s.page(family), label) {
		s.t.Errorf("%s with %s is gone within the grace", family, label)
	}
	s.run(200)
	if strings.Contains(s.page(family), label) {
		s.t.Errorf("%s with %s lives beyond the grace", family, label)
	}
}

// A partition whose slice comes after the claim gets its parent.
func TestAPartitionIsPublishedLate(t *testing.T) {
	s := newScene(t, gpu(0))
	s.set("GPU-0", device.Power, 300)
	s.allocate("ml/part", "gpu-0-mig-1g10gb-19-3")
	s.run(2)
	s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{
		ID: sceneID("gpu-0-mig-1g10gb-19-3"), ParentUUID: "GPU-0", Profile: "1g.10gb", Placement: 3,
	})
	s.run(2)
	for _, family := range []string{"dra_device_info", "dra_device_published_info", "dra_device_holders"} {
		if !strings.Contains(s.page(family), `parent_uuid="GPU-0"`) {
			t.Errorf("%s does not name the parent:\n%s", family, s.page(family))
		}
	}
}

// Two claims share a device, and each has other evidence of it.
func TestEvidenceOfSeveralClaims(t *testing.T) {
	s := newScene(t, gpu(0))
	s.facts.Cluster.Published = nil
	id := dra.DeviceID{Driver: "dra.net", Pool: "pool", Name: "nic"}
	for name, status := range map[string]dra.DeviceStatus{"ml/one": {Device: id, UUID: "GPU-0"}, "ml/two": {Device: id, PCIAddress: "0000:ff:00.0"}} {
		claim := s.allocate(name, "gpu-9")
		claim.Results[0].Device, claim.DeviceStatus = id, []dra.DeviceStatus{status}
	}
	s.run(1)
	if got, _ := s.value("dra_device_holders", "uuid", "GPU-0", "kind", "claim"); got != 2 {
		t.Errorf("%v holders, want 2", got)
	}
}

func TestPartitionsWithoutUUIDAreTwo(t *testing.T) {
	first, second := migOf("GPU-0", "", "1g.10gb", 0), migOf("GPU-0", "", "1g.10gb", 1)
	s := newScene(t, gpu(0), first, second)
	s.run(1)
	if got := strings.Count(s.page("dra_device_info"), "\n"); got != 3 {
		t.Errorf("%d devices, want 3:\n%s", got, s.page("dra_device_info"))
	}
}
