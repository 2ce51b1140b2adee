package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Claims turn over while the driver is down: whose device has just been
// released must not hide that another has no hardware yet.
func TestTurnoverWhileSlicesAreGone(t *testing.T) {
	for _, mode := range []string{"with the API server", "without"} {
		t.Run(mode, func(t *testing.T) {
			s := newScene(t, gpu(0), gpu(1), gpu(2))
			for i := range 3 {
				s.set(fmt.Sprintf("GPU-%d", i), device.Utilization, 0.5)
			}
			s.allocate("ml/aaaaa", "gpu-0")
			s.allocate("ml/ccccc", "gpu-2")
			s.list("ml/aaaaa", "gpu-0")
			s.list("ml/ccccc", "gpu-2")
			if mode == "without" {
				s.facts.Cluster = APIFacts{}
			}
			s.listed(1)
			s.facts.Cluster.Published = nil
			s.listed(1)
			s.release("ml/aaaaa")
			s.allocate("ml/bbbbb", "gpu-1")
			if mode == "without" {
				s.facts.Cluster = APIFacts{}
			}
			s.facts.Listing = dra.PodResources{}
			s.list("ml/ccccc", "gpu-2")
			s.list("ml/bbbbb", "gpu-1")
			for range 61 {
				s.listed(1)
			}
			if got, shown := s.value("dra_claim_busy_seconds_total", "resourceclaim", "bbbbb", "uuid", "GPU-1"); !shown || got != 30 {
				t.Errorf("busy seconds of the new claim: %v (%v), want 30\n%s", got, shown, s.page("dra_claim_device_info"))
			}
			if got, _ := s.value("dra_exporter_unmatched_devices", "side", "published"); got != 0 {
				t.Errorf("%v devices are unmatched", got)
			}
		})
	}
}

// A claim that comes to the node while its driver is down has the hardware that
// the driver published for its device, though no rule leads from its name to it.
func TestNewClaimWhileSlicesAreGone(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	for i := range s.facts.Cluster.Published {
		s.facts.Cluster.Published[i].ID.Name = fmt.Sprint("card-", i)
		s.set(fmt.Sprintf("GPU-%d", i), device.Utilization, 0.5)
	}
	s.allocate("ml/first", "card-0")
	s.run(3)
	slices := s.facts.Cluster.Published
	s.facts.Cluster.Published = nil
	s.run(3)
	s.allocate("ml/train", "card-1")
	s.run(3)
	s.expectUse("dra_claim_utilization_ratio", "train", "GPU-1", "exclusive", 0.5)
	s.release("ml/train")
	s.run(3)
	// The pool publishes again, and the device is not there any more.
	s.facts.Cluster.Published = slices[:1]
	s.run(3)
	s.facts.Cluster.Published = nil
	s.allocate("ml/train", "card-1")
	s.run(3)
	if _, shown := s.value("dra_claim_utilization_ratio", "resourceclaim", "train"); shown {
		t.Error("a device that its driver does not publish any more has hardware")
	}
}

// A driver that publishes under another pool each time leaves nothing behind.
func TestEarlierPublicationsAreRemoved(t *testing.T) {
	s := newScene(t, gpu(0))
	for i := range 50 {
		s.facts.Cluster.Published[0].ID.Pool = fmt.Sprint("pool-", i)
		s.run(1)
	}
	if n := len(s.state.matcher.before); n != 1 {
		t.Errorf("%d publications are kept, want 1", n)
	}
}

// A device that is released in the step in which another one, of the same
// hardware, is taken gives its hardware up at once.
func TestHardwareIsReleasedWithItsClaim(t *testing.T) {
	s := newScene(t, gpu(0))
	s.facts.Cluster = APIFacts{}
	s.set("GPU-0", device.Utilization, 0.5)
	s.facts.CDI = []dra.CDIDevice{{Name: "vendor.example/gpu=one", Nodes: []string{"/dev/nvidia0"}}}
	for _, name := range []string{"one", "two"} {
		s.facts.Listing = dra.PodResources{}
		s.list("ml/claim-"+name, name)
		s.facts.Listing.Assignments[0].CDIDevices = []string{"vendor.example/gpu=one"}
		s.listed(1)
		s.listed(1)
		if got, shown := s.value("dra_claim_busy_seconds_total", "resourceclaim", "claim-"+name, "uuid", "GPU-0"); !shown || got != 0.5 {
			t.Errorf("busy seconds of %s after a second: %v (%v), want 0.5", name, got, shown)
		}
		if len(s.state.matcher.known) != 1 {
			t.Errorf("hardware is known of %v", s.state.matcher.known)
		}
	}
}

// Two drivers publish one GPU, and claims hold both: each holds the GPU, none
// is alone with it, and the contradiction is reported.
func TestTwoDriversPublishOneUUID(t *testing.T) {
	s := busyGPU(t)
	other := s.facts.Cluster.Published[0]
	other.ID = dra.DeviceID{Driver: "gpu.acme.com", Pool: sceneNode, Name: "card0"}
	s.facts.Cluster.Published = append(s.facts.Cluster.Published, other)
	s.allocate("ml/one", "gpu-0")
	s.run(2)
	s.allocate("ml/two", "gpu-0").Results[0].Device = other.ID
	s.run(1)
	if len(s.events) == 0 {
		t.Error("the contradiction is not in the log")
	}
	s.run(10)
	for _, claim := range []string{"one", "two"} {
		if got, shown := s.value("dra_claim_utilization_ratio", "resourceclaim", claim, "uuid", "GPU-0", "attribution", "shared"); !shown || got != 0.5 {
			t.Errorf("%s: %v (%v), want 0.5 as shared\n%s", claim, got, shown, s.page("dra_claim_utilization"))
		}
	}
	if got, _ := s.value("dra_exporter_conflicting_devices"); got != 1 {
		t.Errorf("%v conflicting devices, want 1", got)
	}
	if name, _ := s.label("dra_device_published_info", "driver", "uuid", "GPU-0"); name != "gpu.nvidia.com" {
		t.Errorf("the GPU is published by %q, want its vendor's driver", name)
	}
	s.facts.Cluster.Published = nil
	s.run(3)
	if got, _ := s.value("dra_device_holders", "uuid", "GPU-0", "kind", "claim"); got != 2 {
		t.Errorf("%v holders once the slices are gone, want 2", got)
	}
	s.release("ml/two")
	s.run(3)
	if got, _ := s.value("dra_exporter_conflicting_devices"); got != 0 {
		t.Errorf("%v conflicting devices once one claim is gone", got)
	}
}

// NVIDIA's driver publishes a GPU a second time, for virtual machines. Other
// twins are distinguished by which of them is claimed.
func TestOneDriverPublishesAUUIDTwice(t *testing.T) {
	for _, test := range []struct {
		name  string
		twin  func(*dra.PublishedDevice)
		claim string
	}{
		{"for virtual machines", func(d *dra.PublishedDevice) { d.Passthrough = true }, "gpu-0"},
		{"for whatever reason", func(*dra.PublishedDevice) {}, "gpu-0"},
		{"and the twin is claimed", func(*dra.PublishedDevice) {}, "gpu-0-twin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := busyGPU(t)
			twin := s.facts.Cluster.Published[0]
			twin.ID.Name = "gpu-0-twin"
			test.twin(&twin)
			s.facts.Cluster.Published = append(s.facts.Cluster.Published, twin)
			s.allocate("ml/train", test.claim)
			s.run(3)
			if got, shown := s.value("dra_claim_utilization_ratio", "resourceclaim", "train", "uuid", "GPU-0", "attribution", "exclusive"); !shown || got != 0.5 {
				t.Errorf("utilization %v (%v), want 0.5\n%s", got, shown, s.page("dra_claim_device_info"))
			}
		})
	}
	t.Run("a device for virtual machines has no counters here", func(t *testing.T) {
		s := busyGPU(t)
		s.facts.Cluster.Published[0].Passthrough = true
		s.allocate("ml/vm", "gpu-0")
		s.run(3)
		if _, shown := s.value("dra_claim_utilization_ratio", "resourceclaim", "vm"); shown {
			t.Error("it shows the GPU's utilization")
		}
	})
}

// A kubelet that has just restarted lists the pods of its manifests first.
func TestListOfStaticPodsOnly(t *testing.T) {
	static := dra.PodResources{Pods: []dra.PodRef{{Namespace: "kube-system", Name: "kube-proxy-" + sceneNode}}}
	for _, partial := range []dra.PodResources{{}, static} {
		t.Run(fmt.Sprint(len(partial.Pods), " pods, without the API server"), func(t *testing.T) {
			s := busyGPU(t)
			s.facts.Cluster = APIFacts{}
			s.list("ml/train", "gpu-0")
			full := s.facts.Listing
			s.listEach(full, 5)
			s.listEach(partial, 2)
			if !s.held("train") {
				t.Error("the claim was released")
			}
			s.listEach(full, 4)
			s.expectHeld("train", 10, 1000)
		})
		t.Run(fmt.Sprint(len(partial.Pods), " pods, while the pod watch is stale"), func(t *testing.T) {
			s := busyGPU(t)
			s.allocate("ml/train", "gpu-0")
			s.list("ml/train", "gpu-0")
			full := s.facts.Listing
			s.listEach(full, 5)
			s.facts.Cluster.Fresh = false
			s.listEach(partial, 2)
			s.listEach(full, 4)
			s.expectHeld("train", 10, 1000)
		})
		t.Run(fmt.Sprint(len(partial.Pods), " pods, beside a device plugin"), func(t *testing.T) {
			s := busyGPU(t)
			s.allocate("ml/train", "gpu-0")
			full := s.legacyPod()
			s.facts.Cluster.PluginPods = []dra.Pod{{Ref: full.Pods[0], UID: "uid-of-legacy", Node: sceneNode}}
			s.listEach(full, 5)
			s.listEach(partial, 2)
			s.listEach(full, 4)
			if got, shown := s.value("dra_claim_energy_joules_total", "attribution", "exclusive"); shown && got > 0 {
				t.Errorf("%v J were credited as exclusive", got)
			}
			if got, _ := s.value("dra_claim_energy_joules_total", "attribution", "shared"); got != 1000 {
				t.Errorf("%v J as shared, want 1000", got)
			}
		})
	}
	// The last pod of a node ends just as quietly: what its device did since is
	// not its own.
	t.Run("the pod has ended", func(t *testing.T) {
		s := busyGPU(t)
		s.facts.Cluster = APIFacts{}
		s.list("ml/train", "gpu-0")
		s.listEach(s.facts.Listing, 5)
		s.listEach(static, 10)
		if s.held("train") {
			t.Error("it holds still")
		}
		s.expectHeld("train", 4, 400)
	})
	// A List that names another claim is complete.
	t.Run("another claim has its device", func(t *testing.T) {
		s := busyGPU(t)
		s.facts.Cluster = APIFacts{}
		s.list("ml/train", "gpu-0")
		s.listEach(s.facts.Listing, 5)
		s.facts.Listing = dra.PodResources{}
		s.list("ml/other", "gpu-0")
		s.listEach(s.facts.Listing, 5)
		s.expectHeld("train", 4, 400)
		s.expectHeld("other", 4, 400)
	})
}

// What counters grew by while a hold was uncertain is credited in the step in
// which a List decides, whether or not that step brings readings.
func TestCountersDeferredUntilAList(t *testing.T) {
	s := busyGPU(t)
	s.facts.Cluster = APIFacts{}
	s.list("ml/train", "gpu-0")
	full := s.facts.Listing
	s.listEach(full, 5)
	s.listEach(dra.PodResources{}, 3)
	s.unreadable["GPU-0"] = true
	s.facts.Listing, s.facts.ListedAt = full, s.now
	s.reduce()
	if got, _ := s.value("dra_claim_energy_joules_total", "resourceclaim", "train"); got != 700 {
		t.Errorf("%v J, want 700", got)
	}
}

// listEach steps once a second with a List of its own, while every counter
// grows.
func (s *scene) listEach(listing dra.PodResources, seconds int) {
	for range seconds {
		s.facts.Listing, s.facts.ListedAt = listing, s.now.Add(time.Second)
		s.run(1)
	}
}

func (s *scene) expectHeld(claim string, seconds, joules float64) {
	s.t.Helper()
	for family, want := range map[string]float64{
		"dra_claim_held_seconds_total": seconds, "dra_claim_device_seconds_total": seconds,
		"dra_claim_busy_seconds_total": seconds / 2, "dra_claim_energy_joules_total": joules,
	} {
		if got, _ := s.value(family, "resourceclaim", claim, "uuid", "GPU-0"); got < want-1e-9 || got > want+1e-9 {
			s.t.Errorf("%s of %s is %v, want %v", family, claim, got, want)
		}
	}
}

// A pod that is recreated under its name, while that is not observed, has the
// claims that the kubelet lists for it and no others.
func TestRecreatedPodWhileTheWatchIsStale(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	s.allocate("ml/old", "gpu-0")
	s.list("ml/old", "gpu-0")
	s.listed(1)
	s.facts.Cluster.Fresh = false
	s.listed(1)
	s.facts.Listing.Assignments[0].Claim = dra.ClaimRef{Namespace: "ml", Name: "new"}
	s.facts.Listing.Assignments[0].Device = sceneID("gpu-1")
	s.listed(1)
	if s.held("old") || !s.held("new") {
		t.Errorf("old held %v, new held %v", s.held("old"), s.held("new"))
	}
}

// Processes that were listed of the pod before are not those of the pod that was
// recreated under its name, whose UID is not known.
func TestProcessesOfARecreatedPod(t *testing.T) {
	s := newScene(t, gpu(0))
	s.set("GPU-0", device.Utilization, 0.8)
	s.allocate("ml/old", "gpu-0")
	s.allocate("ml/other", "gpu-0")
	s.list("ml/old", "gpu-0")
	s.list("ml/other", "gpu-0")
	s.addProcess("GPU-0", 1, ofPod("old"), 0.3, 0)
	s.addProcess("GPU-0", 2, ofPod("other"), 0.1, 0)
	s.listed(1)
	s.expectUse("dra_claim_utilization_ratio", "old", "GPU-0", "process", 0.3)
	s.facts.Cluster.Fresh = false
	s.facts.Listing.Assignments[0].Claim = dra.ClaimRef{Namespace: "ml", Name: "new"}
	s.listed(1)
	s.expectUse("dra_claim_utilization_ratio", "new", "GPU-0", "shared", 0.8)
	s.expectUse("dra_claim_utilization_ratio", "other", "GPU-0", "process", 0.1)
}

// A claim that is recreated under its name on the same device is another one by
// its CDI entry.
func TestRecreatedClaimWhileTheWatchIsStale(t *testing.T) {
	s := newScene(t, gpu(0))
	s.allocate("ml/train", "gpu-0").UID = "11111111-1111-4111-8111-111111111111"
	s.list("ml/train", "gpu-0")
	s.listed(1)
	s.facts.Cluster.Fresh = false
	s.facts.Listing.Assignments[0].CDIDevices = []string{"k8s.gpu.nvidia.com/claim=22222222-2222-4222-8222-222222222222-gpu-0"}
	s.listed(1)
	if uid, _ := s.label("dra_claim_info", "claim_uid", "resourceclaim", "train"); uid != "22222222-2222-4222-8222-222222222222" {
		t.Errorf("the claim's UID is %q", uid)
	}
}

// Without the API server a monitor's claim looks like any other, so it is
// not known how much of a device each of several claims has.
func TestDeviceSecondsWithoutTheAPIServer(t *testing.T) {
	s := busyGPU(t)
	s.facts.Cluster = APIFacts{}
	s.list("ml/train", "gpu-0")
	s.listEach(s.facts.Listing, 5)
	s.list("ml/watch", "gpu-0")
	s.listEach(s.facts.Listing, 5)
	for _, claim := range []string{"train", "watch"} {
		if got, shown := s.value("dra_claim_device_seconds_total", "resourceclaim", claim); shown {
			t.Errorf("%s has %v device-seconds while it is not known whether it is a monitor", claim, got)
		}
		if got, shown := s.value("dra_claim_utilization_ratio", "resourceclaim", claim, "attribution", "shared"); !shown || got != 0.5 {
			t.Errorf("%s is not shown as shared", claim)
		}
	}
	if got, _ := s.value("dra_namespace_device_seconds_total"); got != 4 {
		t.Errorf("the namespace has %v device-seconds, want the 4 in which train was alone", got)
	}
	if got, _ := s.value("dra_exporter_uncounted_devices", "reason", "no_api_server"); got != 1 {
		t.Errorf("%v uncounted devices, want 1", got)
	}
	s.facts.Listing.Pods, s.facts.Listing.Assignments = s.facts.Listing.Pods[:1], s.facts.Listing.Assignments[:1]
	s.listEach(s.facts.Listing, 5)
	if got, _ := s.value("dra_claim_device_seconds_total", "resourceclaim", "train"); got != 9 {
		t.Errorf("train has %v device-seconds, want 4 before and 5 after the monitor", got)
	}
}

// One claim on a network-attached device, with pods on two nodes: of two
// agents one counts it, also where one of them has read the claim long ago.
func TestClaimOnSeveralNodesIsChargedOnce(t *testing.T) {
	for _, test := range []struct {
		name  string
		first string // whom the claim is reserved for first
		want  float64
	}{{"the first pod is here", "train", 10}, {"the first pod is elsewhere", "elsewhere", 0}} {
		t.Run(test.name, func(t *testing.T) {
			s := busyGPU(t)
			claim := s.allocate("ml/train", "gpu-0")
			claim.Node = ""
			elsewhere := dra.Consumer{Resource: "pods", Name: "elsewhere", UID: "pod-uid-of-elsewhere"}
			claim.ReservedFor = append(claim.ReservedFor, elsewhere)
			if test.first == "elsewhere" {
				claim.ReservedFor[0], claim.ReservedFor[1] = claim.ReservedFor[1], claim.ReservedFor[0]
			}
			s.run(11)
			for _, family := range []string{"dra_claim_device_seconds_total", "dra_namespace_device_seconds_total"} {
				if got, shown := s.value(family, "namespace", "ml"); !shown || got != test.want {
					t.Errorf("%s is %v (%v), want %v", family, got, shown, test.want)
				}
			}
			if got, _ := s.value("dra_claim_held_seconds_total", "resourceclaim", "train"); got != 10 {
				t.Errorf("held for %v s, want 10", got)
			}
		})
	}
	t.Run("the claim is reserved for a pod group", func(t *testing.T) {
		s := busyGPU(t)
		claim := s.allocate("ml/train", "gpu-0")
		claim.Node, claim.ReservedFor = "", []dra.Consumer{{Resource: "podgroups", Name: "gang", UID: "g"}}
		s.run(11)
		if got, shown := s.value("dra_claim_device_seconds_total", "resourceclaim", "train"); shown {
			t.Errorf("it has %v device-seconds, though every node may count them", got)
		}
		if got, _ := s.value("dra_exporter_uncounted_devices", "reason", "pod_group"); got != 1 {
			t.Errorf("%v uncounted devices, want 1", got)
		}
	})
}

// Compute instances have the memory of their GPU instance together.
func TestComputeInstancesShareTheirMemory(t *testing.T) {
	parts := make([]device.Device, 3)
	for i := range parts {
		parts[i] = migOf("GPU-0", fmt.Sprintf("MIG-%d", i), "1c.3g.40gb", 0)
		parts[i].GPUInstance, parts[i].ComputeInstance = 1+i/2, i%2
	}
	s := newScene(t, append([]device.Device{gpu(0)}, parts...)...)
	for i, part := range parts {
		s.set(part.UUID, device.MemoryUsed, 6e9)
		s.set(part.UUID, device.Utilization, 0.25)
		s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{
			ID: sceneID(part.UUID), UUID: part.UUID, ParentUUID: "GPU-0", Profile: part.Profile, Placement: dra.PlacementUnknown})
		s.allocate(fmt.Sprint("ml/claim-", i), part.UUID)
	}
	s.run(2)
	for i, want := range []string{"shared", "shared", "partition"} {
		s.expectUse("dra_claim_memory_used_bytes", fmt.Sprint("claim-", i), parts[i].UUID, want, 6e9)
		s.expectUse("dra_claim_utilization_ratio", fmt.Sprint("claim-", i), parts[i].UUID, "partition", 0.25)
	}
	s.release("ml/claim-1")
	s.run(2)
	s.expectUse("dra_claim_memory_used_bytes", "claim-0", "MIG-0", "partition", 6e9)
}

// What a container does that has admin access alone is not done for another
// claim of its pod.
func TestWorkOfAnAdminContainer(t *testing.T) {
	s := newScene(t, gpu(0))
	s.set("GPU-0", device.Utilization, 0.8)
	s.allocate("ml/watch", "gpu-0").Results[0].AdminAccess = true
	s.allocate("ml/train", "gpu-0").ReservedFor[0].UID = "pod-uid-of-watch"
	s.allocate("ml/other", "gpu-0")
	s.facts.Cluster.Pods = without(s.facts.Cluster.Pods, func(p dra.Pod) bool { return p.Ref.Name == "train" })
	pod := &s.facts.Cluster.Pods[0]
	pod.Claims = append(pod.Claims, dra.PodClaim{Name: "train", Claim: "train"})
	pod.Containers = []dra.Container{
		{Name: "mon", ID: "mon-of-watch", Uses: []dra.Use{{Claim: "watch"}}},
		{Name: "main", ID: "main-of-watch", Uses: []dra.Use{{Claim: "train"}}},
	}
	s.addProcess("GPU-0", 1, ofPod("watch/mon"), 0.2, 0)
	s.addProcess("GPU-0", 2, ofPod("watch/main"), 0.3, 0)
	s.addProcess("GPU-0", 3, ofPod("other"), 0.1, 0)
	s.step(time.Second)
	s.expectUse("dra_claim_utilization_ratio", "train", "GPU-0", "process", 0.3)
	if got, _ := s.value("dra_device_unattributed_utilization_ratio", "uuid", "GPU-0"); got != 0.2 {
		t.Errorf("unattributed is %v, want 0.2", got)
	}
	// A container that is not known yet may be either.
	s.setOwner(1, ofPod("watch/yet-unknown"))
	s.step(time.Second)
	s.expectUse("dra_claim_utilization_ratio", "train", "GPU-0", "shared", 0.8)
}
