package node

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// joined are the families that say who holds what.
func (s *scene) joined() *script {
	return s.script("dra_claim_held{", "dra_claim_info", "dra_claim_device_info", "dra_claim_consumer_info", "dra_claim_utilization", "dra_device_holders", "dra_device_plugin", "dra_exporter_unmatched")
}

func (s *scene) held(claim string) bool {
	s.t.Helper()
	_, held := s.value("dra_claim_held", "resourceclaim", claim)
	return held
}

// Two requests of one claim, each for a container of its own; a prioritized
// list; a container that uses all of a claim; an init container.
func TestContainersUseRequests(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1), gpu(2))
	pair := s.allocate("ml/pair", "gpu-0", "gpu-1")
	pair.Results[0].Request, pair.Results[1].Request = "left", "right/second"
	pair.Requests = []dra.Request{{Name: "left", DeviceClass: "big"}, {Name: "right/first", DeviceClass: "bigger"}, {Name: "right/second", DeviceClass: "small"}}
	s.facts.Cluster.Pods[0].Containers = []dra.Container{
		{Name: "init", Uses: []dra.Use{{Claim: "pair", Request: "left"}}},
		{Name: "left", Uses: []dra.Use{{Claim: "pair", Request: "left"}}},
		{Name: "right", Uses: []dra.Use{{Claim: "pair", Request: "right"}}},
		{Name: "both", Uses: []dra.Use{{Claim: "pair"}}},
		{Name: "none"},
		{Name: "rig", Uses: []dra.Use{{Claim: "pair", Request: "rig"}}},
	}
	s.run(1)
	pages := s.joined()
	pages.show("one claim, two requests")
	metrictest.CompareGolden(t, "testdata/join_requests.txt", pages.String())
}

func TestAdminAccessHoldsNothing(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	s.set("GPU-0", device.Utilization, 0.5)
	s.allocate("ml/train", "gpu-0")
	monitor := s.allocate("ops/monitor", "gpu-0", "gpu-1")
	for i := range monitor.Results {
		monitor.Results[i].AdminAccess = true
	}
	s.run(2)
	pages := s.joined()
	pages.show("a monitor with admin access beside a claim")
	metrictest.CompareGolden(t, "testdata/join_admin.txt", pages.String())
}

func TestHoldingNeedsAReservationOfAPodHere(t *testing.T) {
	for name, change := range map[string]func(*scene){
		"not allocated":           func(s *scene) { s.facts.Cluster.Claims[0].Allocated = false },
		"not reserved":            func(s *scene) { s.facts.Cluster.Claims[0].ReservedFor = nil },
		"reserved for another":    func(s *scene) { s.facts.Cluster.Claims[0].ReservedFor[0].UID = "x" },
		"the pod is finished":     func(s *scene) { s.facts.Cluster.Pods[0].Terminal = true },
		"the pod is not bound":    func(s *scene) { s.facts.Cluster.Pods[0].Node = "" },
		"the claim is not named":  func(s *scene) { s.facts.Cluster.Pods[0].Claims[0].Claim = "" },
		"the claim is unreadable": func(s *scene) { s.facts.Cluster.Claims = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, gpu(0))
			s.allocate("ml/train", "gpu-0")
			s.run(1)
			if !s.held("train") {
				t.Fatal("the claim does not hold its device to begin with")
			}
			change(s)
			s.run(1)
			if s.held("train") {
				t.Error("the claim still holds its device")
			}
		})
	}
	t.Run("reserved for a pod group", func(t *testing.T) {
		s := newScene(t, gpu(0))
		s.allocate("ml/train", "gpu-0").ReservedFor = []dra.Consumer{{Resource: "podgroups", Name: "gang", UID: "g"}}
		s.run(1)
		if !s.held("train") {
			t.Error("the claim of a pod group's member does not hold its device")
		}
	})
}

func TestDevicePluginPodsAreHolders(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	s.set("GPU-0", device.Utilization, 0.5)
	s.allocate("ml/train", "gpu-0")
	pod := dra.PodRef{Namespace: "legacy", Name: "notebook"}
	s.facts.Listing.Pods, s.facts.ListedAt = []dra.PodRef{pod}, s.now
	s.facts.Listing.Plugins = []dra.PluginAssignment{
		{Pod: pod, Container: "main", Resource: "nvidia.com/gpu", DeviceIDs: []string{"GPU-0::1", "GPU-0::2"}},
		{Pod: pod, Container: "side", Resource: "nvidia.com/gpu", DeviceIDs: []string{"0000:11:00.0"}},
		{Pod: pod, Container: "main", Resource: "smarter-devices/fuse", DeviceIDs: []string{"fuse-1"}},
	}
	s.run(2)
	pages := s.joined()
	pages.show("a device plugin gave replicas of a claimed GPU, and another by its address")
	metrictest.CompareGolden(t, "testdata/join_plugin.txt", pages.String())
}

// Partitions and their parent know each other's holders.
func TestPartitionsAndTheirParent(t *testing.T) {
	s := newScene(t, gpu(0), migOf("GPU-0", "MIG-a", "3g.40gb", 0), migOf("GPU-0", "MIG-b", "3g.40gb", 4))
	for i, uuid := range []string{"MIG-a", "MIG-b"} {
		s.set(uuid, device.MemoryUsed, 10e9)
		s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{ID: sceneID(uuid), UUID: uuid, ParentUUID: "GPU-0", Profile: "3g.40gb", Placement: 4 * i})
	}
	s.set("GPU-0", device.Energy, 1000)
	s.set("GPU-0", device.MemoryUsed, 20e9)
	s.allocate("ml/part", "MIG-a")
	s.run(2)
	pages := s.script("dra_claim_memory_used", "dra_claim_energy", "dra_device_holders")
	pages.show("one partition held: it has no energy of its own")
	s.allocate("ml/whole", "gpu-0")
	s.run(2)
	pages.show("and the whole GPU: neither is alone")
	metrictest.CompareGolden(t, "testdata/join_partitions.txt", pages.String())
}

// While the API server is away, what was known stays, the kubelet's empty
// answer after its own restart frees nothing, and a new claim holds.
func TestHoldersWhileThePodWatchIsStale(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	s.allocate("ml/train", "gpu-0")
	s.list("ml/train", "gpu-0")
	s.run(1)
	s.facts.Cluster.Fresh, s.facts.Cluster.Pods = false, nil
	s.run(30)
	if !s.held("train") {
		t.Fatal("a claim was released because the API server is away")
	}
	listing := s.facts.Listing
	s.facts.Listing = dra.PodResources{}
	s.listed(1)
	s.listed(4)
	if !s.held("train") {
		t.Fatal("a claim was released because the kubelet restarted")
	}
	s.facts.Listing = listing
	s.listed(1)
	s.list("ml/fresh", "gpu-1")
	s.listed(1)
	if class, _ := s.label("dra_claim_info", "deviceclass", "resourceclaim", "fresh"); !s.held("fresh") || class != "" {
		t.Errorf("a newly listed claim: held %v, class %q", s.held("fresh"), class)
	}
	if class, _ := s.label("dra_claim_info", "deviceclass", "resourceclaim", "train"); class != "gpu.nvidia.com" {
		t.Errorf("a claim known before has class %q", class)
	}
	s.facts.Listing = dra.PodResources{Pods: []dra.PodRef{{Namespace: "ml", Name: "fresh"}}}
	s.listed(1)
	if !s.held("train") {
		t.Error("a pod missing from one List was released")
	}
	s.listed(6)
	if s.held("train") || !s.held("fresh") {
		t.Errorf("after two Lists six seconds apart without the pod: train held %v, fresh held %v", s.held("train"), s.held("fresh"))
	}
}

// Without the API server the kubelet's List decides, but for an empty answer.
func TestHoldersWithoutTheAPIServer(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	s.facts.Cluster = APIFacts{}
	s.list("ml/train", "gpu-0")
	s.list("ml/other", "gpu-1")
	s.facts.Listing.Assignments[0].CDIDevices = []string{"k8s.gpu.nvidia.com/claim=5873cd9f-c72e-44ad-ab51-44bd266a8c69-gpu-0"}
	s.listed(1)
	pages := s.joined()
	pages.show("listed alone")
	empty, full := dra.PodResources{}, s.facts.Listing
	s.facts.Listing = empty
	s.listed(1)
	if !s.held("train") {
		t.Error("an empty answer freed everything at once")
	}
	s.facts.Listing = dra.PodResources{Pods: full.Pods[1:], Assignments: full.Assignments[1:]}
	s.listed(1)
	if s.held("train") || !s.held("other") {
		t.Errorf("after the pod left the List: train held %v, other held %v", s.held("train"), s.held("other"))
	}
	s.list("ml/second", "gpu-1")
	s.listed(1)
	pages.show("a device listed under two claims is shared")
	metrictest.CompareGolden(t, "testdata/join_listed.txt", pages.String())
}

// A claim that cannot be read, for want of permission, holds what the
// kubelet lists.
func TestClaimsThatCannotBeRead(t *testing.T) {
	s := newScene(t, gpu(0))
	s.allocate("ml/train", "gpu-0")
	s.list("ml/train", "gpu-0")
	s.facts.Cluster.Claims = nil
	s.facts.Cluster.Unread = []dra.ClaimRef{{Namespace: "ml", Name: "train"}}
	s.facts.Sources = []source.Status{{Name: SourceClaims, Reason: source.ReasonPermission, Errors: 1}}
	s.run(1)
	if !s.held("train") {
		t.Error("a claim that cannot be read does not hold what the kubelet lists")
	}
}

func TestUnmatchedDevices(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	s.facts.Cluster.Published = s.facts.Cluster.Published[:1]
	s.allocate("ml/train", "gpu-7")
	s.run(1)
	pages := s.script("dra_device_info", "dra_device_published", "dra_claim_", "dra_exporter_unmatched")
	pages.show("a claim holds a device that no hardware is, and a GPU is not published")
	metrictest.CompareGolden(t, "testdata/join_unmatched.txt", pages.String())
}

// list adds a claim with its pod to what the kubelet lists.
func (s *scene) list(claim, published string) {
	ref := dra.ClaimRef{Namespace: claim[:2], Name: claim[3:]}
	s.facts.Listing.Pods = append(s.facts.Listing.Pods, dra.PodRef(ref))
	s.facts.Listing.Assignments = append(s.facts.Listing.Assignments, dra.Assignment{Pod: dra.PodRef(ref), Container: "main", Claim: ref, Device: sceneID(published)})
}

// listed steps with a List that was answered now.
func (s *scene) listed(seconds int) {
	s.now = s.now.Add(time.Duration(seconds) * time.Second)
	s.facts.ListedAt = s.now
	s.step(0)
}

// label is the value of a label of the one row that includes the others.
func (s *scene) label(family, name string, labels ...string) (string, bool) {
	for _, row := range s.last.Rows() {
		if row.Family.Name == family && includes(row.Labels, labels) {
			return row.Labels.Get(name), true
		}
	}
	return "", false
}

// A claim whose drivers need no preparation is held with all its devices, although
// the kubelet lists it without them, or only with those of another driver. It is
// held as long as its pod is there, also while the pod watch is stale.
func TestClaimsThatAreNotPrepared(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1), gpu(2))
	s.allocate("ml/skipped", "gpu-0")
	s.allocate("ml/partly", "gpu-1", "gpu-2")
	skipped, partly := dra.ClaimRef{Namespace: "ml", Name: "skipped"}, dra.ClaimRef{Namespace: "ml", Name: "partly"}
	s.list("ml/partly", "gpu-2")
	s.facts.Listing.Pods = append(s.facts.Listing.Pods, dra.PodRef(skipped))
	s.facts.Listing.WithoutDevices = []dra.ClaimRef{skipped}
	expect := func(when string, devices ...string) {
		t.Helper()
		var got []string
		for _, of := range []struct{ claim, uuid string }{{"skipped", "GPU-0"}, {"partly", "GPU-1"}, {"partly", "GPU-2"}} {
			_, held := s.value("dra_claim_held", "resourceclaim", of.claim, "uuid", of.uuid)
			container, _ := s.label("dra_claim_consumer_info", "container", "resourceclaim", of.claim, "uuid", of.uuid)
			if held && container == "main" {
				got = append(got, of.uuid)
			}
		}
		if !slices.Equal(got, devices) {
			t.Errorf("%s: %q are held, want %q", when, got, devices)
		}
		for _, event := range s.events {
			if event.Level > slog.LevelInfo {
				t.Errorf("%s: %s %v", when, event.Message, event.Attrs)
			}
		}
	}
	s.listed(1)
	expect("by the API server", "GPU-0", "GPU-1", "GPU-2")
	s.facts.Cluster.Fresh = false
	s.listed(10)
	s.listed(10)
	expect("while the watch is stale", "GPU-0", "GPU-1", "GPU-2")
	s.facts.Listing.Pods = []dra.PodRef{dra.PodRef(partly)}
	s.listed(10)
	s.listed(10)
	expect("without its pod", "GPU-1", "GPU-2")
}

// Without the API server, the UID of a claim is that of the CDI ids that drivers
// give: their own, or those of Kubernetes' library for device metadata.
func TestClaimUIDOfCDINames(t *testing.T) {
	const uid = "6e3c2f6e-4b0e-4d3a-9a53-0d8b1c8d7a11"
	for name, test := range map[string]struct {
		cdi  []string
		want string
	}{
		"the driver's":             {[]string{"k8s.gpu.nvidia.com/claim=" + uid + "-gpu-0"}, uid},
		"metadata":                 {[]string{"gpu.nvidia.com/gpu=0", "gpu.nvidia.com/metadata=" + uid + "_main"}, uid},
		"metadata of other":        {[]string{"gpu.example.com/metadata=" + uid + "_main"}, ""},
		"metadata without request": {[]string{"gpu.nvidia.com/metadata=" + uid}, ""},
		"metadata of no UID":       {[]string{"gpu.nvidia.com/metadata=claim_main"}, ""},
		"neither":                  {[]string{"gpu.nvidia.com/gpu=0"}, ""},
	} {
		if got := claimUID(dra.Assignment{Device: sceneID("gpu-0"), CDIDevices: test.cdi}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
