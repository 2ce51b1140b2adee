package node

import (
	"fmt"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// A class counts an onset once, however many of its claims hold the device,
// and a device that is not held has no class.
func TestViolationsByClass(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	s.setXIDs("GPU-0")
	s.setXIDs("GPU-1")
	for i, class := range []string{"gold", "gold", "silver"} {
		s.allocate(fmt.Sprintf("ml/claim-%d", i), "gpu-0").Requests[0].DeviceClass = class
	}
	admin := s.allocate("ml/monitor", "gpu-0")
	admin.Requests[0].DeviceClass, admin.Results[0].AdminAccess = "monitoring", true
	s.run(2)
	s.setXIDs("GPU-0", 48, 1, 95, 1)
	s.setXIDs("GPU-1", 79, 1)
	s.run(1)
	metrictest.CompareGolden(t, "testdata/health_violations.txt", s.page("dra_constraint"))
	s.allocate("ml/late", "gpu-1").Requests[0].DeviceClass = "late"
	s.run(2)
	if got, there := s.value("dra_constraint_violations_total", "deviceclass", "late", "constraint", "recovery"); got != 0 || !there {
		t.Errorf("%v violations of a claim that got an unhealthy device", got)
	}
}

// What a device suffered from before anybody looked, at the start of the
// agent or since long before a quantity could be read, is no onset. What comes
// after is, and so is an Xid that was reported before the first sample.
func TestViolationsBeforeTheFirstSample(t *testing.T) {
	count := func(s *scene, c constraint) float64 {
		total, _ := s.value("dra_constraint_violations_total", "constraint", c.String())
		return total
	}
	for _, a := range healthProblems() {
		if a.onset != 1 || a.signal == "ecc_uncorrected" || a.signal[:3] == "xid" {
			continue // it has no onset that a single look could miss
		}
		t.Run(a.signal+" "+a.severity, func(t *testing.T) {
			s := healthyGPU(t)
			a.begin(s)
			s.run(10)
			s.state = NewState(s.state.config)
			s.run(3)
			if want := map[string]string{"critical": "unhealthy", "warning": "healthy"}[a.severity]; s.report("GPU-0", byHardware) != want {
				t.Errorf("after the start it is %s, want %s", s.report("GPU-0", byHardware), want)
			}
			for c := range constraints {
				if got := count(s, c); got != 0 {
					t.Errorf("%v onsets of %s at the start", got, c)
				}
			}
			a.end(s)
			s.run(6)
			a.begin(s)
			s.run(1)
			total := 0.0
			for c := range constraints {
				total += count(s, c)
			}
			if total != 1 {
				t.Errorf("%v onsets when it came back, want 1", total)
			}
		})
	}
	t.Run("a quantity that is read later", func(t *testing.T) {
		s := healthyGPU(t)
		s.unset("GPU-0", device.FabricState)
		s.state = NewState(s.state.config)
		s.run(10)
		s.setState("GPU-0", device.FabricState, "failure", fabricStates())
		s.run(1)
		s.expect("the first reported one", "0", "fabric_failure", "critical")
		if got := count(s, constraintLink); got != 0 {
			t.Errorf("%v onsets", got)
		}
	})
	t.Run("Xids", func(t *testing.T) {
		s := healthyGPU(t)
		s.set("GPU-0", device.RowRemapFailed, 1)
		s.state = NewState(s.state.config)
		s.setXIDs("GPU-0", 48, 1, 79, 1)
		s.run(1)
		if memory, recovery := count(s, constraintMemory), count(s, constraintRecovery); memory != 1 || recovery != 1 {
			t.Errorf("%v onsets of memory errors and %v of recovery, want one each", memory, recovery)
		}
	})
}
