package node

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestSharing(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(s *scene, first, second *dra.Claim)
		want    string
	}{
		{"two claims on a device that is not for several", func(*scene, *dra.Claim, *dra.Claim) {}, "none"},
		{"time-slicing by the allocation", func(_ *scene, first, _ *dra.Claim) { first.Sharing = "time_slicing" }, "time_slicing"},
		{"MPS by the allocation, of a device with shares", func(s *scene, first, _ *dra.Claim) {
			first.Sharing, first.Results[0].ShareID = "mps", "share-1"
			s.facts.Cluster.Published[0].MultipleAllocations = true
		}, "mps"},
		{"a share", func(_ *scene, first, _ *dra.Claim) { first.Results[0].ShareID = "share-1" }, "capacity"},
		{"two claims on a device for several", func(s *scene, _, _ *dra.Claim) { s.facts.Cluster.Published[0].MultipleAllocations = true }, "capacity"},
		{"alone on a device for several", func(s *scene, _, _ *dra.Claim) {
			s.facts.Cluster.Published[0].MultipleAllocations = true
			s.release("ml/second")
		}, "none"},
		{"with an administrator on a device for several", func(s *scene, _, second *dra.Claim) {
			s.facts.Cluster.Published[0].MultipleAllocations = true
			second.Results[0].AdminAccess = true
		}, "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t, gpu(0))
			s.allocate("ml/first", "gpu-0")
			s.allocate("ml/second", "gpu-0")
			test.prepare(s, &s.facts.Cluster.Claims[0], &s.facts.Cluster.Claims[1])
			s.step(time.Second)
			if _, there := s.value("dra_claim_info", "resourceclaim", "first", "sharing", test.want); !there {
				t.Errorf("sharing is not %s:\n%s", test.want, s.page("dra_claim_info"))
			}
		})
	}
}

// mig is a partition of GPU 0 in the given place.
func mig(uuid, profile string, placement, instance int) device.Device {
	part := gpu(0)
	part.UUID, part.ParentUUID, part.Profile, part.Placement = uuid, "GPU-0", profile, placement
	part.GPUInstance, part.ComputeInstance = instance, 0
	return part
}

// Two partitions of one profile are distinguished by placement, and each claim
// gets its own, through a reconfiguration while a claim runs.
func TestPartitionsWhileClaimsRun(t *testing.T) {
	s := newScene(t, gpu(0), mig("MIG-a", "3g.40gb", 0, 1), mig("MIG-b", "3g.40gb", 4, 2))
	s.set("MIG-a", device.MemoryUsed, 1)
	s.set("MIG-b", device.MemoryUsed, 2)
	publish := func(name, profile string, placement int) {
		s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{
			ID: sceneID(name), ParentUUID: "GPU-0", Profile: profile, Placement: placement, Capacity: map[string]float64{"memory": 40e9}})
	}
	publish("gpu-0-mig-3g40gb-9-0", "3g.40gb", 0)
	publish("gpu-0-mig-3g40gb-9-4", "3g.40gb", 4)
	publish("gpu-0-mig-2g20gb-14-4", "2g.20gb", 4)
	s.allocate("ml/low", "gpu-0-mig-3g40gb-9-0")
	s.allocate("ml/high", "gpu-0-mig-3g40gb-9-4")
	s.run(3)
	s.expectUse("dra_claim_memory_used_bytes", "low", "MIG-a", "partition", 1)
	s.expectUse("dra_claim_memory_used_bytes", "high", "MIG-b", "partition", 2)
	if _, there := s.value("dra_device_partition_info", "uuid", "MIG-b", "parent_uuid", "GPU-0", "gpu_instance_id", "2", "compute_instance_id", "0"); !there {
		t.Errorf("the place of MIG-b is missing:\n%s", s.page("dra_device_partition_info"))
	}

	// The driver makes another partition in the place of the upper one.
	s.release("ml/high")
	s.allocate("ml/next", "gpu-0-mig-2g20gb-14-4")
	s.facts.Samples = without(s.facts.Samples, func(sample device.Sample) bool { return sample.Device.UUID == "MIG-b" })
	s.run(1)
	unknown := sceneNode + "/" + sceneID("gpu-0-mig-2g20gb-14-4").String()
	if _, there := s.value("dra_claim_held", "resourceclaim", "next", "uuid", unknown); !there {
		t.Errorf("the partition that is being made is not held:\n%s", s.page("dra_claim_held"))
	}
	s.facts.Samples = append(s.facts.Samples, device.Sample{Device: mig("MIG-c", "2g.20gb", 4, 2), Source: "simulated"})
	s.sampled["MIG-c"] = map[device.Quantity]float64{device.MemoryUsed: 3}
	s.run(2)
	s.expectUse("dra_claim_memory_used_bytes", "low", "MIG-a", "partition", 1)
	s.expectUse("dra_claim_memory_used_bytes", "next", "MIG-c", "partition", 3)
	if got, _ := s.value("dra_claim_held_seconds_total", "resourceclaim", "low", "uuid", "MIG-a"); got != 5 {
		t.Errorf("the lower partition was held for %v s, want 5", got)
	}

	// A partition that two claims hold is shared.
	s.allocate("ml/guest", "gpu-0-mig-3g40gb-9-0")
	s.run(1)
	s.expectUse("dra_claim_memory_used_bytes", "low", "MIG-a", "shared", 1)
	s.expectUse("dra_claim_memory_used_bytes", "guest", "MIG-a", "shared", 1)
}

func (s *scene) expectUse(family, claim, uuid, attribution string, want float64) {
	s.t.Helper()
	if got, there := s.value(family, "resourceclaim", claim, "uuid", uuid, "attribution", attribution); !there || got != want {
		s.t.Errorf("%s of %s on %s as %s is %v (%v), want %v:\n%s", family, claim, uuid, attribution, got, there, want, s.page(family))
	}
}

// Info rows of what has ended are past, and of what goes on are not.
func TestPastFacts(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	s.allocate("ml/stays", "gpu-0")
	s.allocate("ml/goes", "gpu-1")
	s.share("ml/stays", "guest")
	s.addPlugin("notebook", "GPU-1")
	s.run(1)
	for _, row := range s.last.Rows() {
		if row.Past {
			t.Errorf("%v is past while everything goes on", seriesName(row))
		}
	}
	s.release("ml/goes")
	s.facts.Cluster.Pods = without(s.facts.Cluster.Pods, func(p dra.Pod) bool { return p.Ref.Name == "guest" })
	s.facts.Listing = dra.PodResources{Pods: []dra.PodRef{{Namespace: "kube-system", Name: "other"}}}
	s.facts.ListedAt = s.now
	s.run(1)
	past := map[string]int{}
	for _, row := range s.last.Rows() {
		if row.Past {
			past[row.Family.Name+" "+row.Labels.Get("resourceclaim")]++
		}
	}
	want := map[string]int{
		"dra_claim_info goes": 1, "dra_claim_device_info goes": 1, "dra_claim_consumer_info goes": 1,
		"dra_claim_consumer_info stays": 1, "dra_device_plugin_consumer_info ": 1,
	}
	for name, n := range want {
		if past[name] != n {
			t.Errorf("%d rows of %s are past, want %d", past[name], name, n)
		}
	}
	if len(past) != len(want) {
		t.Errorf("past are %v, want %v", past, want)
	}
}
