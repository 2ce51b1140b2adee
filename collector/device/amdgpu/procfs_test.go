//go:build linux

package amdgpu

import (
	"testing"

	"github.com/prometheus/procfs/sysfs"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

// Another library that reads the same files returns the same values.
func TestAgreesWithProcfs(t *testing.T) {
	tree := sysfstest.Plant(t, "amdgpu")
	fs, err := sysfs.NewFS(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := fs.ClassDRMCardAMDGPUStats()
	if err != nil {
		t.Fatal(err)
	}
	if len(stats) != 3 {
		t.Fatalf("procfs sees %d cards, want 3", len(stats))
	}
	theirs := make(map[string]sysfs.ClassDRMCardAMDGPUStats)
	for _, s := range stats {
		theirs[s.DevName] = s
	}
	for _, r := range cards(t, New(tree.Root)) {
		observations, err := r.Read(t.Context(), device.Slow)
		if err != nil {
			t.Fatal(err)
		}
		o, want := observations[0], theirs[r.Key()]
		ours := make(map[device.Quantity]float64)
		for _, reading := range append(o.Readings, o.Slow...) {
			ours[reading.Quantity] = reading.Value
		}
		for quantity, value := range map[device.Quantity]float64{
			device.Utilization: float64(want.GPUBusyPercent) / 100,
			device.MemoryUsed:  float64(want.MemoryVRAMUsed),
			device.MemorySize:  float64(want.MemoryVRAMSize),
		} {
			if ours[quantity] != value {
				t.Errorf("%s of %s is %v, procfs says %v", device.Specs()[quantity].Name, r.Key(), ours[quantity], value)
			}
		}
	}
}
