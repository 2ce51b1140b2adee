package node

import (
	"math"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// A counter that is measured now and then, or late, grows for those who held
// the device between two measurements, as long as each did.
func TestLaggingCounters(t *testing.T) {
	t.Run("a second source that stands still for 8 s", func(t *testing.T) {
		s := busyGPU(t)
		s.measure("GPU-0", device.NVLinkTransmit, 0, 0, 0)
		s.allocate("ml/aa", "gpu-0")
		s.step(time.Second)
		s.measure("GPU-0", device.NVLinkTransmit, 0, time.Second, time.Second)
		s.steps(6)
		s.release("ml/aa")
		s.allocate("ml/bb", "gpu-0")
		s.steps(2)
		s.measure("GPU-0", device.NVLinkTransmit, 800, 9*time.Second, 9*time.Second)
		s.steps(5)
		// a held from the first second to the seventh, b from the eighth.
		s.expectGrowth("dra_claim_nvlink_transmit_bytes_total", map[string]float64{"aa": 600, "bb": 100})
	})
	t.Run("a field that is sampled every 10 s", func(t *testing.T) {
		s := busyGPU(t)
		s.allocate("ml/aa", "gpu-0")
		s.measure("GPU-0", device.Energy, 1000, time.Second, time.Second)
		s.steps(6)
		s.release("ml/aa")
		s.allocate("ml/bb", "gpu-0")
		s.steps(5)
		s.measure("GPU-0", device.Energy, 2000, 11*time.Second, 11*time.Second)
		s.steps(5)
		s.expectGrowth("dra_claim_energy_joules_total", map[string]float64{"aa": 500, "bb": 400})
	})
	t.Run("a read that came late, in the step in which a claim began", func(t *testing.T) {
		s := busyGPU(t)
		s.measure("GPU-0", device.Energy, 0, 0, 0)
		s.steps(1)
		s.measure("GPU-0", device.Energy, 100, time.Second, 10*time.Second) // the read began 9 s ago
		s.allocate("ml/aa", "gpu-0")
		s.step(9 * time.Second)
		s.measure("GPU-0", device.Energy, 1100, 11*time.Second, 11*time.Second)
		s.steps(1)
		s.expectGrowth("dra_claim_energy_joules_total", map[string]float64{"aa": 100})
	})
	t.Run("a hold under two attributions", func(t *testing.T) {
		s := busyGPU(t)
		s.allocate("ml/aa", "gpu-0")
		s.measure("GPU-0", device.Energy, 0, time.Second, time.Second)
		s.steps(6)
		s.allocate("ml/bb", "gpu-0")
		s.steps(5)
		s.measure("GPU-0", device.Energy, 1000, 11*time.Second, 11*time.Second)
		s.steps(1)
		for attribution, want := range map[string]float64{"exclusive": 500, "shared": 400} {
			if got, _ := s.value("dra_claim_energy_joules_total", "resourceclaim", "aa", "attribution", attribution); math.Abs(got-want) > 1e-6 {
				t.Errorf("%v J as %s, want %v", got, attribution, want)
			}
		}
		if got, _ := s.value("dra_namespace_energy_joules_total"); math.Abs(got-500) > 1e-6 {
			t.Errorf("the namespace has %v J, want 500", got)
		}
	})
	t.Run("a counter that began again while the device changed hands", func(t *testing.T) {
		s := busyGPU(t)
		s.allocate("ml/aa", "gpu-0")
		s.measure("GPU-0", device.Energy, 1e6, time.Second, time.Second)
		s.steps(6)
		s.release("ml/aa")
		s.allocate("ml/bb", "gpu-0")
		s.steps(5)
		s.measure("GPU-0", device.Energy, 300, 11*time.Second, 11*time.Second)
		s.steps(5)
		s.expectGrowth("dra_claim_energy_joules_total", map[string]float64{"aa": 0, "bb": 0})
	})
}

// A hold takes limited space while a counter is not measured.
func TestStretchesAreBounded(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/aa", "gpu-0")
	s.measure("GPU-0", device.NVLinkTransmit, 0, 0, 0)
	for range 3 * maxStretches {
		s.allocate("ml/bb", "gpu-0")
		s.steps(1)
		s.release("ml/bb")
		s.steps(1)
	}
	for key, hold := range s.state.ledger.holds {
		if len(hold.stretches) > maxStretches+1 {
			t.Errorf("%v has %d stretches", key, len(hold.stretches))
		}
	}
}

// A counter that falls by half a joule was not reset.
func TestCounterThatFallsSlightly(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/aa", "gpu-0")
	for _, joules := range []float64{1e6, 1e6 + 100, 1e6 + 99.5, 1e6 + 99.7, 1e6 + 200} {
		s.set("GPU-0", device.Energy, joules)
		s.step(time.Second)
	}
	s.expectGrowth("dra_claim_energy_joules_total", map[string]float64{"aa": 200})
	if got, _ := s.value("dra_exporter_hardware_resets_total"); got != 0 {
		t.Errorf("%v resets", got)
	}
	s.set("GPU-0", device.Energy, 50)
	s.step(time.Second)
	s.expectGrowth("dra_claim_energy_joules_total", map[string]float64{"aa": 250})
	if got, _ := s.value("dra_exporter_hardware_resets_total"); got != 1 {
		t.Errorf("%v resets, want 1", got)
	}
}

// Gauges describe the time since the claim began, and not that of the claims
// before it.
func TestBusyTimeOfALateRead(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/aa", "gpu-0")
	s.step(time.Second)
	s.unreadable["GPU-0"] = true
	s.steps(3)
	s.release("ml/aa")
	s.allocate("ml/bb", "gpu-0")
	s.steps(2)
	s.unreadable["GPU-0"] = false
	s.steps(1)
	s.expectGrowth("dra_claim_busy_seconds_total", map[string]float64{"aa": 0, "bb": 1})
}

// measure sets a reading that was measured between two times after the
// scene's beginning, whenever the sample is taken.
func (s *scene) measure(uuid string, q device.Quantity, value float64, from, to time.Duration) {
	s.set(uuid, q, value)
	if s.measured == nil {
		s.measured = map[string]map[device.Quantity]device.Window{}
	}
	if s.measured[uuid] == nil {
		s.measured[uuid] = map[device.Quantity]device.Window{}
	}
	s.measured[uuid][q] = device.Window{From: origin().Elapsed + from, To: origin().Elapsed + to}
}

// steps steps once a second; counters stand still.
func (s *scene) steps(seconds int) {
	for range seconds {
		s.step(time.Second)
	}
}

func (s *scene) expectGrowth(family string, want map[string]float64) {
	s.t.Helper()
	for claim, want := range want {
		if got, _ := s.value(family, "resourceclaim", claim); math.Abs(got-want) > 1e-6 {
			s.t.Errorf("%s of %s is %v, want %v", family, claim, got, want)
		}
	}
}

// What a counter of another origin has counted, or one that grew faster than hardware
// can, is credited to no claim. What it counts from there on is credited as ever.
func TestGrowthThatCannotBe(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []device.Reading // of the energy, one a second
		want   float64          // joules that the claim gets
	}{
		{"a counter", []device.Reading{{Value: 1000}, {Value: 1100}, {Value: 1200}}, 200},
		{"a leap", []device.Reading{{Value: 1000}, {Value: 1e9}, {Value: 1e9 + 100}}, 100},
		{"a leap that was wrong", []device.Reading{{Value: 1e6}, {Value: 1e9}, {Value: 1e6 + 200}, {Value: 1e6 + 300}}, 100},
		{"another origin", []device.Reading{{Value: 1000}, {Value: 1900, Origin: 1}, {Value: 2000, Origin: 1}, {Value: 1100}, {Value: 1200}}, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t, gpu(0))
			s.allocate("ml/train", "gpu-0")
			s.step(time.Second)
			for _, r := range test.values {
				s.now = s.now.Add(time.Second)
				r.Quantity, r.Measured = device.Energy, device.Window{From: s.now.Elapsed, To: s.now.Elapsed}
				s.facts.ListedAt = s.now
				s.facts.Samples = []device.Sample{{Device: s.facts.Samples[0].Device, Source: s.facts.Samples[0].Source, At: s.now, Readings: []device.Reading{r}}}
				s.reduce()
			}
			if got, _ := s.value("dra_claim_energy_joules_total", "resourceclaim", "train"); got != test.want {
				t.Errorf("%v J, want %v", got, test.want)
			}
		})
	}
}
