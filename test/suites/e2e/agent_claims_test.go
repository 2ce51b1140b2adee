package e2e

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const (
	wholeGPU = "gpu.nvidia.com/gpu-?"
	gpuClass = "gpu.nvidia.com"
)

// wantedExclusive is the expected claim of testdata/claims/exclusive.yaml.
func wantedExclusive() wantedClaim {
	return wantedClaim{claim: "train-gpu-*", class: "gpu.example.com", template: "single-gpu", devices: []wantedDevice{
		{"gpu.example.com/gpu-?", "gpu", "exclusive", []string{"train/main"}},
	}}
}

// wantedMIG are the expected claims of testdata/claims/mig.yaml.
func wantedMIG() []wantedClaim {
	return []wantedClaim{
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
	covers(t)
	deploy(t, "exclusive")
	running(t, "exclusive", "train")
	waitShown(t, "exclusive", wantedExclusive())
}

func TestTwoRequests(t *testing.T) {
	covers(t)
	deploy(t, "two-requests")
	running(t, "two-requests", "pair")
	waitShown(t, "two-requests", wantedClaim{claim: "pair-gpus-*", class: gpuClass, template: "two-gpus", devices: []wantedDevice{
		{wholeGPU, "left", "exclusive", []string{"pair/c-left"}},
		{wholeGPU, "right", "exclusive", []string{"pair/c-right"}},
	}})
}

func TestSharedClaim(t *testing.T) {
	covers(t)
	deploy(t, "shared-claim")
	running(t, "shared-claim", "shared-0")
	running(t, "shared-claim", "shared-1")
	waitShown(t, "shared-claim", wantedClaim{claim: "shared-gpu", class: gpuClass, devices: []wantedDevice{
		{wholeGPU, "gpu", "exclusive", []string{"shared-0/main", "shared-1/main"}},
	}})
}

// TestConsumableCapacity runs two claims on one GPU with known hardware, then
// two on one without.
func TestConsumableCapacity(t *testing.T) {
	covers(t)
	t.Run("known hardware", func(t *testing.T) {
		deploy(t, "capacity")
		running(t, "capacity", "pod-a")
		running(t, "capacity", "pod-b")
		before, after := waitShown(t, "capacity", wantedHalves("gpu.nvidia.com/gpu-4", "shared.nvidia.com")...)
		for claim, want := range map[string]struct{ memory, weight float64 }{"slice-a": {16 << 30, 0.2}, "slice-b": {8 << 30, 0.1}} {
			checkShare(t, before, after, scrape.Labels{"namespace": "capacity", "resourceclaim": claim}, want.memory, want.weight)
		}
	})
	t.Run("unknown hardware", func(t *testing.T) {
		deploy(t, "consumable")
		running(t, "consumable", "pod-a")
		running(t, "consumable", "pod-b")
		_, p := waitShown(t, "consumable", wantedHalves("share.example.com/gpu-0", "share.example.com")...)
		checkUnmatched(t, p) // no source reads devices of this driver
	})
}

func wantedHalves(device, class string) []wantedClaim {
	half := func(claim, pod string) wantedClaim {
		return wantedClaim{claim: claim, class: class, sharing: "capacity", devices: []wantedDevice{
			{device, "gpu", "shared", []string{pod + "/main"}},
		}}
	}
	return []wantedClaim{half("slice-a", "pod-a"), half("slice-b", "pod-b")}
}

// checkShare fails the test unless the claim has the capacity that it consumes
// and is charged for that part.
func checkShare(t *testing.T, before, after *scrape.Page, claim scrape.Labels, memory, weight float64) {
	t.Helper()
	given, err := after.One("dra_claim_memory_allocated_bytes", claim)
	if err != nil || given.Value != memory {
		t.Errorf("%s is given %v bytes, want %v (%v)", claim, given.Value, memory, err)
	}
	held := increase(before, after, "dra_claim_held_seconds_total", claim)
	charged := increase(before, after, "dra_claim_device_seconds_total", claim)
	if part := charged / held; !(math.Abs(part-weight) < 0.001) {
		t.Errorf("%s is charged %v of its time, want %v", claim, part, weight)
	}
}

func checkUnmatched(t *testing.T, p *scrape.Page) {
	t.Helper()
	for _, row := range p.Rows("dra_exporter_unmatched_devices", nil) {
		if row.Value != 0 {
			t.Errorf("%v devices of %s are unmatched on the side %s", row.Value, row.Labels["driver"], row.Labels["side"])
		}
	}
}

func TestAdminAccess(t *testing.T) {
	covers(t)
	deploy(t, "admin")
	running(t, "admin", "monitor")
	running(t, "admin", "worker")
	const gpu = "gpu.example.com/gpu-"
	monitor := wantedClaim{claim: "all-gpus", class: "gpu.example.com", admin: true}
	for i := range 4 {
		monitor.devices = append(monitor.devices, wantedDevice{gpu + fmt.Sprint(i), "all", "", []string{"monitor/main"}})
	}
	waitShown(t, "admin", monitor, wantedClaim{claim: "one-gpu", class: "gpu.example.com", devices: []wantedDevice{
		{gpu + "?", "gpu", "exclusive", []string{"worker/main"}},
	}})
}

func TestPrioritizedList(t *testing.T) {
	covers(t)
	deploy(t, "prioritized")
	running(t, "prioritized", "infer")
	waitShown(t, "prioritized", wantedClaim{claim: "infer-gpu-*", class: gpuClass, template: "prefer-b200", devices: []wantedDevice{
		{wholeGPU, "gpu/h100", "exclusive", []string{"infer/main"}},
	}})
}

func TestExtendedResource(t *testing.T) {
	covers(t)
	deploy(t, "extended")
	running(t, "extended", "explicit")
	waitShown(t, "extended", extendedClaim("explicit"))
}

// TestImplicitExtendedResource is the same for the implicit name of a class
// that has a name for its extended resource. Kubernetes 1.34 does not know the
// name, and starts the pod without a device.
func TestImplicitExtendedResource(t *testing.T) {
	covers(t)
	deploy(t, "implicit")
	running(t, "implicit", "implicit")
	if lacks(t, releases.ImplicitResources) {
		waitShown(t, "implicit")
		waitClusterPage(t, "no claim of the implicit name", func(p *scrape.Page) error {
			return errors.Join(hasNoRow(p, "dra_claims", scrape.Labels{"namespace": "implicit"}),
				hasNoRow(p, "dra_claim_pending_since_timestamp_seconds", scrape.Labels{"namespace": "implicit"}))
		})
		return
	}
	waitShown(t, "implicit", extendedClaim("implicit"))
}

// extendedClaim is the claim that the scheduler creates for a pod's extended
// resource.
func extendedClaim(pod string) wantedClaim {
	return wantedClaim{claim: pod + "-extended-resources-*", class: gpuClass, extended: true, devices: []wantedDevice{
		{wholeGPU, "container-0-request-0", "exclusive", []string{pod + "/main"}},
	}}
}

// TestPartitions: two MIG devices of one profile on one GPU, static and on
// demand, are distinguished. Those of another driver have no known hardware.
func TestPartitions(t *testing.T) {
	covers(t)
	t.Run("known hardware", func(t *testing.T) {
		deploy(t, "twins")
		var want []wantedClaim
		for _, partition := range []struct{ pod, device string }{
			{"static-a", "gpu-2-mig-1g10gb-19-?"}, {"static-b", "gpu-2-mig-1g10gb-19-?"}, {"static-c", "gpu-2-mig-3g40gb-9-4"},
			{"on-demand-a", "gpu-3-mig-1g10gb-19-?"}, {"on-demand-b", "gpu-3-mig-1g10gb-19-?"}, {"on-demand-c", "gpu-3-mig-3g40gb-9-4"},
		} {
			running(t, "twins", partition.pod)
			want = append(want, wantedClaim{claim: partition.pod, class: "mig.nvidia.com", devices: []wantedDevice{
				{"gpu.nvidia.com/" + partition.device, "mig", "partition", []string{partition.pod + "/main"}},
			}})
		}
		_, p := waitShown(t, "twins", want...)
		checkUnmatched(t, p)
	})
	t.Run("unknown hardware", func(t *testing.T) {
		deploy(t, "partitions")
		running(t, "partitions", "parts")
		running(t, "partitions", "full")
		const part = "part.example.com/gpu-?-"
		_, p := waitShown(t, "partitions",
			wantedClaim{claim: "parts-gpu-*", class: "part.example.com", template: "two-partitions", devices: []wantedDevice{
				{part + "partition-?", "part", "exclusive", []string{"parts/main"}},
				{part + "partition-?", "part", "exclusive", []string{"parts/main"}},
			}},
			wantedClaim{claim: "full-gpu-*", class: "part.example.com", template: "full-gpu", devices: []wantedDevice{
				{part + "full", "full", "exclusive", []string{"full/main"}},
			}})
		checkUnmatched(t, p)
	})
}
