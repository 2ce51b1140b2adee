package e2e

import (
	"fmt"
	"math"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/e2e/scrape"
)

const (
	wholeGPU = "gpu.nvidia.com/gpu-?"
	gpuClass = "gpu.nvidia.com"
)

// train is what the page says of testdata/claims/exclusive.yaml.
func train() wanted {
	return wanted{claim: "train-gpu-*", class: "gpu.example.com", template: "single-gpu", devices: []wantedDevice{
		{"gpu.example.com/gpu-?", "gpu", "exclusive", []string{"train/main"}},
	}}
}

// shapes is what the page says of testdata/claims/mig.yaml.
func shapes() []wanted {
	return []wanted{
		{claim: "whole-gpu-*", class: gpuClass, template: "whole", devices: []wantedDevice{
			{wholeGPU, "gpu", "exclusive", []string{"whole/main"}},
		}},
		{claim: "static-gpu-*", class: "mig.nvidia.com", template: "static", devices: []wantedDevice{
			{"gpu.nvidia.com/gpu-2-mig-1g10gb-19-?", "mig", "partition", []string{"static/main"}},
		}},
		{claim: "on-demand-gpu-*", class: "mig.nvidia.com", template: "on-demand", devices: []wantedDevice{
			{"gpu.nvidia.com/gpu-3-mig-1g10gb-19-?", "mig", "partition", []string{"on-demand/main"}},
		}},
	}
}

func TestExclusiveClaim(t *testing.T) {
	shows(t)
	deploy(t, "exclusive")
	running(t, "exclusive", "train")
	shownAs(t, "exclusive", train())
}

func TestTwoRequests(t *testing.T) {
	shows(t)
	deploy(t, "two-requests")
	running(t, "two-requests", "pair")
	shownAs(t, "two-requests", wanted{claim: "pair-gpus-*", class: gpuClass, template: "two-gpus", devices: []wantedDevice{
		{wholeGPU, "left", "exclusive", []string{"pair/c-left"}},
		{wholeGPU, "right", "exclusive", []string{"pair/c-right"}},
	}})
}

func TestSharedClaim(t *testing.T) {
	shows(t)
	deploy(t, "shared-claim")
	running(t, "shared-claim", "shared-0")
	running(t, "shared-claim", "shared-1")
	shownAs(t, "shared-claim", wanted{claim: "shared-gpu", class: gpuClass, devices: []wantedDevice{
		{wholeGPU, "gpu", "exclusive", []string{"shared-0/main", "shared-1/main"}},
	}})
}

// TestConsumableCapacity runs two claims on one GPU of which the hardware is
// known, then two on one of which it is not.
func TestConsumableCapacity(t *testing.T) {
	shows(t)
	t.Run("known hardware", func(t *testing.T) {
		deploy(t, "capacity")
		running(t, "capacity", "pod-a")
		running(t, "capacity", "pod-b")
		before, after := shownAs(t, "capacity", halves("gpu.nvidia.com/gpu-4", "shared.nvidia.com")...)
		for claim, want := range map[string]struct{ memory, weight float64 }{"slice-a": {16 << 30, 0.2}, "slice-b": {8 << 30, 0.1}} {
			checkShare(t, before, after, scrape.Labels{"namespace": "capacity", "resourceclaim": claim}, want.memory, want.weight)
		}
	})
	t.Run("unknown hardware", func(t *testing.T) {
		deploy(t, "consumable")
		running(t, "consumable", "pod-a")
		running(t, "consumable", "pod-b")
		_, p := shownAs(t, "consumable", halves("share.example.com/gpu-0", "share.example.com")...)
		checkUnmatched(t, p, 1)
	})
}

func halves(device, class string) []wanted {
	half := func(claim, pod string) wanted {
		return wanted{claim: claim, class: class, sharing: "capacity", devices: []wantedDevice{
			{device, "gpu", "shared", []string{pod + "/main"}},
		}}
	}
	return []wanted{half("slice-a", "pod-a"), half("slice-b", "pod-b")}
}

// checkShare: a claim is given what it consumes, and charged for that part.
func checkShare(t *testing.T, before, after *scrape.Page, claim scrape.Labels, memory, weight float64) {
	t.Helper()
	given, err := after.One("dra_claim_memory_allocated_bytes", claim)
	if err != nil || given.Value != memory {
		t.Errorf("%s is given %v bytes, want %v (%v)", claim, given.Value, memory, err)
	}
	held := risen(before, after, "dra_claim_held_seconds_total", claim)
	charged := risen(before, after, "dra_claim_device_seconds_total", claim)
	if part := charged / held; !(math.Abs(part-weight) < 0.001) {
		t.Errorf("%s is charged %v of its time, want %v", claim, part, weight)
	}
}

func checkUnmatched(t *testing.T, p *scrape.Page, published float64) {
	t.Helper()
	for side, want := range map[string]float64{"published": published, "hardware": 0} {
		row, err := p.One("dra_exporter_unmatched_devices", scrape.Labels{"side": side})
		if err != nil || row.Value != want {
			t.Errorf("%v devices are unmatched on the side %s, want %v (%v)", row.Value, side, want, err)
		}
	}
}

func TestAdminAccess(t *testing.T) {
	shows(t)
	deploy(t, "admin")
	running(t, "admin", "monitor")
	running(t, "admin", "worker")
	const gpu = "gpu.example.com/gpu-"
	monitor := wanted{claim: "all-gpus", class: "gpu.example.com", admin: true}
	for i := range 4 {
		monitor.devices = append(monitor.devices, wantedDevice{gpu + fmt.Sprint(i), "all", "", []string{"monitor/main"}})
	}
	shownAs(t, "admin", monitor, wanted{claim: "one-gpu", class: "gpu.example.com", devices: []wantedDevice{
		{gpu + "?", "gpu", "exclusive", []string{"worker/main"}},
	}})
}

func TestPrioritizedList(t *testing.T) {
	shows(t)
	deploy(t, "prioritized")
	running(t, "prioritized", "infer")
	shownAs(t, "prioritized", wanted{claim: "infer-gpu-*", class: gpuClass, template: "prefer-b200", devices: []wantedDevice{
		{wholeGPU, "gpu/h100", "exclusive", []string{"infer/main"}},
	}})
}

func TestExtendedResource(t *testing.T) {
	shows(t)
	deploy(t, "extended")
	running(t, "extended", "explicit")
	running(t, "extended", "implicit")
	byPod := func(pod string) wanted {
		return wanted{claim: pod + "-extended-resources-*", class: gpuClass, extended: true, devices: []wantedDevice{
			{wholeGPU, "container-0-request-0", "exclusive", []string{pod + "/main"}},
		}}
	}
	shownAs(t, "extended", byPod("explicit"), byPod("implicit"))
}

// TestPartitions: two MIG devices of one profile on one GPU, static and on
// demand, are told apart; those of another driver have no known hardware.
func TestPartitions(t *testing.T) {
	shows(t)
	t.Run("known hardware", func(t *testing.T) {
		deploy(t, "twins")
		var want []wanted
		for _, twin := range []struct{ pod, device string }{
			{"static-a", "gpu-2-mig-1g10gb-19-?"}, {"static-b", "gpu-2-mig-1g10gb-19-?"}, {"static-c", "gpu-2-mig-3g40gb-9-4"},
			{"on-demand-a", "gpu-3-mig-1g10gb-19-?"}, {"on-demand-b", "gpu-3-mig-1g10gb-19-?"}, {"on-demand-c", "gpu-3-mig-3g40gb-9-4"},
		} {
			running(t, "twins", twin.pod)
			want = append(want, wanted{claim: twin.pod, class: "mig.nvidia.com", devices: []wantedDevice{
				{"gpu.nvidia.com/" + twin.device, "mig", "partition", []string{twin.pod + "/main"}},
			}})
		}
		_, p := shownAs(t, "twins", want...)
		checkUnmatched(t, p, 0)
	})
	t.Run("unknown hardware", func(t *testing.T) {
		deploy(t, "partitions")
		running(t, "partitions", "parts")
		running(t, "partitions", "full")
		const part = "part.example.com/gpu-?-"
		_, p := shownAs(t, "partitions",
			wanted{claim: "parts-gpu-*", class: "part.example.com", template: "two-partitions", devices: []wantedDevice{
				{part + "partition-?", "part", "exclusive", []string{"parts/main"}},
				{part + "partition-?", "part", "exclusive", []string{"parts/main"}},
			}},
			wanted{claim: "full-gpu-*", class: "part.example.com", template: "full-gpu", devices: []wantedDevice{
				{part + "full", "full", "exclusive", []string{"full/main"}},
			}})
		checkUnmatched(t, p, 3)
	})
}
