package demo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// faultsOf returns the faults of a device, by its UUID: XIDs, links that are
// down, taints.
func (a *agent) faultsOf(uuid string) string {
	var b strings.Builder
	for _, s := range a.sampler.Latest() {
		if s.Device.UUID != uuid {
			continue
		}
		for _, xid := range s.XIDs {
			fmt.Fprintf(&b, " xid %d", xid.Code)
		}
		for _, r := range s.Readings {
			if r.Quantity == device.NVLinks && r.Details[0] == "inactive" && r.Value > 0 {
				b.WriteString(" link down")
			}
		}
	}
	for _, p := range a.cluster.Latest().Published {
		for _, taint := range p.Taints {
			if p.UUID == uuid {
				fmt.Fprintf(&b, " %s=%s:%s", taint.Key, taint.Value, taint.Effect)
			}
		}
	}
	return b.String()
}

// A GPU becomes unhealthy, its driver reports it, and both recover, except for
// counters; meanwhile an application fails on a partition of another GPU.
func TestDeviceFaults(t *testing.T) {
	a := observe(t, playing(t, 15))
	const gpu1 = "GPU-5e7d9a41-0c3f-4d88-b6a2-90e4c7f21b37"
	for _, want := range []string{"", " xid 74 link down gpu.nvidia.com/xid=74:NoSchedule", " xid 74"} {
		eventually(t, func() string {
			if got := a.faultsOf(gpu1); got != want {
				return fmt.Sprintf("%q; gpu-1 is %q", want, got)
			}
			return ""
		})
	}
	for uuid, want := range map[string]string{
		"MIG-6f28d1a0-95c7-5b43-8d6e-07b3e9f45c21": " xid 13",
		"GPU-a92c4e68-35d1-4f7b-8e09-6c1b7d5a0f43": " xid 31",
		"GPU-e61d7b92-4c08-4f5e-93ab-18f0c2d7a564": "", // the partition's errors are not counted here
		"GPU-1c0a5f3e-7b52-4b0e-9c0d-2f6b1a3c8e10": "",
	} {
		eventually(t, func() string {
			if got := a.faultsOf(uuid); got != want {
				return fmt.Sprintf("%q; %s is %q", want, uuid, got)
			}
			return ""
		})
	}
}

// The adapter that a claim holds carries traffic.
func TestAdapterTraffic(t *testing.T) {
	a := observe(t, playing(t, 1))
	received := func() float64 {
		for _, s := range a.sampler.Latest() {
			for _, r := range s.Readings {
				if s.Device.PCIBusID == "0000:1c:00.0" && r.Quantity == device.NetworkReceive {
					return r.Value
				}
			}
		}
		return 0
	}
	eventually(t, func() string {
		if received() <= 8.1e13 {
			return "traffic"
		}
		return ""
	})
}
