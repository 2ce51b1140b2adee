package node

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// While devices are released there are no gauges, and all else stays. What counters have
// grown by meanwhile belongs to the claim that held the device throughout.
func TestReleased(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1), gpu(2))
	for _, d := range s.facts.Samples {
		s.set(d.Device.UUID, device.Energy, 5000)
		s.set(d.Device.UUID, device.Power, 100)
		s.set(d.Device.UUID, device.Utilization, 0.5)
	}
	s.allocate("ml/stays", "gpu-0")
	s.allocate("ml/leaves", "gpu-1")
	s.run(10)
	energy := func(claim string) float64 {
		joules, _ := s.value(metric.ClaimEnergyJoules, "resourceclaim", claim)
		return joules
	}
	if got := energy("stays"); got != 900 {
		t.Fatalf("before: %v J", got)
	}
	rows := func() map[string]float64 {
		counts := make(map[string]float64)
		for _, row := range s.last.Rows() {
			counts[row.Family.Name]++
		}
		return counts
	}
	before := rows()
	s.letGo(30)
	s.release("ml/leaves")
	s.letGo(30)
	s.allocate("ml/comes", "gpu-1")
	s.letGo(30)
	during := rows()
	for _, family := range []string{metric.DevicePowerWatts, metric.DeviceUtilizationRatio, metric.ClaimUtilizationRatio, metric.ClaimPowerWatts} {
		if before[family] == 0 || during[family] != 0 {
			t.Errorf("%s has %v rows before and %v while devices are released", family, before[family], during[family])
		}
	}
	for _, family := range []string{metric.DeviceInfo, metric.DeviceEnergyJoules, metric.ClaimHeld} {
		if before[family] == 0 || during[family] < before[family] {
			t.Errorf("%s has %v rows before and %v while devices are released", family, before[family], during[family])
		}
	}
	if value, ok := s.value(metric.ExporterDeviceAccess, "state", "released", "reason", "file"); !ok || value != 1 {
		t.Errorf("access is %v, %t", value, ok)
	}
	s.run(1)
	for claim, want := range map[string]float64{"stays": 900 + 9100, "leaves": 900, "comes": 0} {
		if got := energy(claim); got != want {
			t.Errorf("%s: %v J, want %v", claim, got, want)
		}
	}
	if value, ok := s.value(metric.ExporterDeviceAccess, "state", "open", "reason", ""); !ok || value != 1 {
		t.Errorf("access is %v, %t", value, ok)
	}
	s.run(1)
	if got := energy("comes"); got != 100 {
		t.Errorf("after the next reading comes has %v J", got)
	}
}

// A counter that was reset by a new driver meanwhile has counted from zero, for the claim
// that held the device throughout.
func TestReleasedAndReset(t *testing.T) {
	s := newScene(t, gpu(0))
	s.set("GPU-0", device.Energy, 5000)
	s.allocate("ml/stays", "gpu-0")
	s.run(10)
	s.letGo(60)
	s.set("GPU-0", device.Energy, 700)
	s.step(time.Second)
	if joules, _ := s.value(metric.ClaimEnergyJoules, "resourceclaim", "stays"); joules != 900+700 {
		t.Errorf("%v J, want %v", joules, 900+700)
	}
	if resets, _ := s.value(metric.ExporterHardwareResets); resets != 1 {
		t.Errorf("%v resets", resets)
	}
}
