package node

import (
	"fmt"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

func recoveryActions() []string { return []string{"none", "gpu_reset", "node_reboot"} }
func fabricStates() []string    { return []string{"success", "in_progress", "failure"} }
func results() []string         { return []string{"pass", "warn", "fail"} }
func portStates() []string      { return []string{"active", "down"} }

// healthyGPU is a scene of one GPU, held by a claim, of which everything that
// reports health can be read and is healthy.
func healthyGPU(t testing.TB) *scene {
	s := newScene(t, gpu(0))
	s.setHealthy("GPU-0")
	s.allocate("ml/train", "gpu-0")
	s.run(3)
	return s
}

func (s *scene) setHealthy(uuid string) {
	for _, q := range []device.Quantity{device.Lost, device.RowRemapFailed, device.RowRemapPending} {
		s.set(uuid, q, 0)
	}
	s.setDetail(uuid, device.ECCErrors, 7, "uncorrected")
	s.setDetail(uuid, device.ECCErrors, 100, "corrected")
	s.setDetail(uuid, device.NVLinks, 16, "active")
	s.setDetail(uuid, device.NVLinks, 2, "inactive")
	for _, reason := range []string{"hw_thermal", "thermal", "hw_power_brake", "power_cap"} {
		s.setDetail(uuid, device.Throttled, 50, reason)
	}
	s.setState(uuid, device.RecoveryAction, "none", recoveryActions())
	s.setState(uuid, device.FabricState, "success", fabricStates())
	for _, system := range []string{"memory", "nvlink", "pcie", "thermal", "power", "sm"} {
		s.setState(uuid, device.HealthCheck, "pass", results(), system)
	}
	s.setState(uuid, device.DriverHealth, "healthy", driverStates(), "link")
	s.setState(uuid, device.NetworkLinks, "active", portStates(), "1")
	s.setState(uuid, device.NetworkLinks, "down", portStates(), "2")
	s.setXIDs(uuid)
}

// healthProblem is one row of the table of signals: how it shows and how it ends.
type healthProblem struct {
	signal, severity, constraint string
	begin                        func(*scene)
	onset                        int          // seconds until the signal shows
	end                          func(*scene) // nil: by itself
	lasts                        int          // seconds that the sign goes on after its end
}

func healthProblems() []healthProblem {
	set := func(q device.Quantity, value float64) func(*scene) {
		return func(s *scene) { s.set("GPU-0", q, value) }
	}
	setWith := func(q device.Quantity, value float64, details ...string) func(*scene) {
		return func(s *scene) { s.setDetail("GPU-0", q, value, details...) }
	}
	choose := func(q device.Quantity, present string, states []string, first ...string) func(*scene) {
		return func(s *scene) { s.setState("GPU-0", q, present, states, first...) }
	}
	throttle := func(reason string) func(*scene) {
		return func(s *scene) {
			for range 31 {
				s.details["GPU-0"][device.Reading{Quantity: device.Throttled, Details: [2]string{reason}}]++
				s.run(1)
			}
		}
	}
	nothing := func(*scene) {}
	list := []healthProblem{
		{"lost", "critical", "recovery", set(device.Lost, 1), 1, set(device.Lost, 0), 0},
		{"recovery_action", "critical", "recovery", choose(device.RecoveryAction, "gpu_reset", recoveryActions()), 1, choose(device.RecoveryAction, "none", recoveryActions()), 0},
		{"ecc_uncorrected", "critical", "memory_error", setWith(device.ECCErrors, 8, "uncorrected"), 1, nothing, 0},
		{"ecc_uncorrected", "critical", "memory_error", setWith(device.ECCErrors, 1, "uncorrected"), 1, nothing, 0},
		{"row_remap_failed", "critical", "memory_error", set(device.RowRemapFailed, 1), 1, set(device.RowRemapFailed, 0), 0},
		{"row_remap_pending", "warning", "recovery", set(device.RowRemapPending, 1), 1, set(device.RowRemapPending, 0), 0},
		{"nvlink_down", "critical", "link", setWith(device.NVLinks, 15, "active"), 8, setWith(device.NVLinks, 16, "active"), 0},
		{"network_link_down", "critical", "link", choose(device.NetworkLinks, "down", portStates(), "1"), 61, choose(device.NetworkLinks, "active", portStates(), "1"), 0},
		{"fabric_failure", "critical", "link", choose(device.FabricState, "failure", fabricStates()), 1, choose(device.FabricState, "success", fabricStates()), 0},
		{"thermal_throttling", "critical", "temperature", throttle("hw_thermal"), 0, nothing, 25},
		{"power_brake", "critical", "power", throttle("hw_power_brake"), 0, nothing, 25},
		{"xid_79", "critical", "recovery", func(s *scene) { s.setXIDs("GPU-0", 79, 1) }, 1, nothing, 0},
		{"xid_94", "warning", "memory_error", func(s *scene) { s.setXIDs("GPU-0", 94, 1) }, 1, nothing, 0},
	}
	for _, dcgm := range []struct{ system, signal, constraint string }{
		{"memory", "dcgm_memory", "memory_error"}, {"nvlink", "dcgm_link", "link"}, {"pcie", "dcgm_link", "link"},
		{"thermal", "dcgm_thermal", "temperature"}, {"power", "dcgm_power", "power"}, {"sm", "dcgm_other", "recovery"},
	} {
		pass := choose(device.HealthCheck, "pass", results(), dcgm.system)
		list = append(list,
			healthProblem{dcgm.signal, "critical", dcgm.constraint, choose(device.HealthCheck, "fail", results(), dcgm.system), 1, pass, 0},
			healthProblem{dcgm.signal, "warning", dcgm.constraint, choose(device.HealthCheck, "warn", results(), dcgm.system), 1, pass, 0})
	}
	well := choose(device.DriverHealth, "healthy", driverStates(), "link")
	list = append(list,
		healthProblem{"driver", "critical", "recovery", choose(device.DriverHealth, "unhealthy", driverStates(), "link"), 1, well, 0},
		healthProblem{"driver", "warning", "recovery", choose(device.DriverHealth, "degraded", driverStates(), "link"), 1, well, 0})
	return list
}

// TestHealthSignals proves every row of the table of signals: the onset, what it
// means for the diagnosis and for the claim's class, and the end.
func TestHealthSignals(t *testing.T) {
	proven := map[string]bool{"parent": true} // by TestHealthOfPartitions
	for _, a := range healthProblems() {
		proven[a.signal] = true
		t.Run(a.signal+" "+a.severity, func(t *testing.T) {
			s := healthyGPU(t)
			s.expect("before", "1", "", "")
			a.begin(s)
			if a.onset > 1 {
				s.run(a.onset - 1)
				s.expect("one sample too early", "1", "", "")
			}
			if a.onset > 0 {
				s.run(1)
			}
			s.expect("at the onset", map[string]string{"critical": "0", "warning": "1"}[a.severity], a.signal, a.severity)
			a.end(s)
			s.run(a.lasts + 4)
			s.expect("within the hold", map[string]string{"critical": "0", "warning": "1"}[a.severity], a.signal, a.severity)
			s.run(1 + a.lasts)
			s.expect("after the hold", "1", "", "")
			for c := range constraints {
				want := 0.0
				if c.String() == a.constraint {
					want = 1
				}
				if got, _ := s.value("dra_constraint_violations_total", "deviceclass", "gpu.nvidia.com", "constraint", c.String()); got != want {
					t.Errorf("%v violations of %s, want %v", got, c, want)
				}
			}
		})
	}
	for _, row := range signalTable(nil) {
		if !proven[row.name] {
			t.Errorf("no test raises %s", row.name)
		}
	}
}

// expect compares the hardware's report on GPU-0 and its only signal with
// what is expected; no signal where it is empty.
func (s *scene) expect(when, healthy, signal, severity string) {
	s.t.Helper()
	word := "absent"
	if value, there := s.value("dra_device_healthy", "uuid", "GPU-0", "by", "hardware"); there {
		word = fmt.Sprint(value)
	}
	if word != healthy {
		s.t.Errorf("%s: healthy is %s, want %s", when, word, healthy)
	}
	if _, there := s.value("dra_device_health_signal_info", "uuid", "GPU-0"); there != (signal != "") {
		s.t.Errorf("%s: signals are\n%s", when, s.page("dra_device_health_signal_info"))
	}
	if _, there := s.value("dra_device_health_signal_info", "signal", signal, "severity", severity); there != (signal != "") {
		s.t.Errorf("%s: no signal %s of severity %s:\n%s", when, signal, severity, s.page("dra_device_health_signal_info"))
	}
}

// What is how a device works, or was so before anybody looked, is no signal.
func TestNoHealthSignal(t *testing.T) {
	for name, begin := range map[string]func(*scene){
		"corrected errors":           func(s *scene) { s.setDetail("GPU-0", device.ECCErrors, 5000, "corrected") },
		"the fabric is being set up": func(s *scene) { s.setState("GPU-0", device.FabricState, "in_progress", fabricStates()) },
		"an error counter cleared":   func(s *scene) { s.setDetail("GPU-0", device.ECCErrors, 0, "uncorrected") },
		"an application's Xid":       func(s *scene) { s.setXIDs("GPU-0", 13, 1) },
		"an Xid that is not in the table": func(s *scene) {
			s.setXIDs("GPU-0", 9999, 1)
		},
		"another source counts otherwise": func(s *scene) {
			s.facts.Samples[0].Source = "dcgm"
			s.setDetail("GPU-0", device.ECCErrors, 9, "uncorrected")
			s.setDetail("GPU-0", device.NVLinks, 12, "active")
		},
		"the power limit": func(s *scene) {
			for range 90 {
				s.details["GPU-0"][device.Reading{Quantity: device.Throttled, Details: [2]string{"power_cap"}}]++
				s.run(1)
			}
		},
		"half of the time too hot": func(s *scene) {
			for range 90 {
				s.details["GPU-0"][device.Reading{Quantity: device.Throttled, Details: [2]string{"hw_thermal"}}] += 0.5
				s.details["GPU-0"][device.Reading{Quantity: device.Throttled, Details: [2]string{"thermal"}}] += 0.4
				s.run(1)
			}
		},
		"throttled in a gap": func(s *scene) {
			s.unreadable["GPU-0"] = true
			s.run(100)
			s.unreadable["GPU-0"] = false
			s.setDetail("GPU-0", device.Throttled, 150, "hw_thermal")
		},
		"no ratio is set": func(s *scene) {
			s.state.health.throttleRatio = 0
			s.setDetail("GPU-0", device.Throttled, 53, "hw_thermal")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyGPU(t)
			begin(s)
			s.run(3)
			s.expect("all the time", "1", "", "")
		})
	}
}

func driverStates() []string { return []string{"healthy", "degraded", "unhealthy"} }
