package node

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// takenGPU is a GPU that was taken from a pod by force: its processes still work at
// 60 % and have 30 GB, and the claim ml/next, which works at 20 %, holds the GPU now.
func takenGPU(t testing.TB) *scene {
	s := newScene(t, gpu(0))
	s.set("GPU-0", device.Utilization, 0.8)
	s.set("GPU-0", device.MemoryUsed, 40e9)
	s.set("GPU-0", device.Energy, 1000)
	s.set("GPU-0", device.Power, 500)
	s.allocate("ml/gone", "gpu-0")
	s.addProcess("GPU-0", 1, ofPod("gone"), 0.6, 30e9)
	s.run(3)
	s.release("ml/gone")
	s.allocate("ml/next", "gpu-0")
	s.addProcess("GPU-0", 2, ofPod("next"), 0.2, 8e9)
	return s
}

// The only claim on a GPU is not charged with what processes of another pod do.
func TestForeignProcesses(t *testing.T) {
	s := takenGPU(t)
	s.run(11)
	s.expectSplit("GPU-0", map[string]float64{"next process time": 0.2, "unattributed time": 0.6, "next process memory": 8e9, "unattributed memory": 30e9})
	for _, want := range []struct {
		family, attribution string
		value               float64
	}{
		{"dra_claim_busy_seconds_total", "process", 2},
		{"dra_claim_busy_seconds_total", "exclusive", 0},
		{"dra_claim_energy_joules_total", "shared", 1000},
		{"dra_claim_energy_joules_total", "exclusive", 0},
		{"dra_claim_power_watts", "shared", 500},
	} {
		got, _ := s.value(want.family, "resourceclaim", "next", "attribution", want.attribution)
		if diff := got - want.value; diff > 1e-6 || diff < -1e-6 {
			t.Errorf("%s as %s: %v, want %v", want.family, want.attribution, got, want.value)
		}
	}
	if got, _ := s.value("dra_claim_device_seconds_total", "resourceclaim", "next"); got != 10 {
		t.Errorf("%v device-seconds, want 10: the device was allocated", got)
	}
	s.processLists["GPU-0"] = s.processLists["GPU-0"][1:]
	s.run(11)
	s.expectSplit("GPU-0", map[string]float64{"next exclusive time": 0.8, "unattributed time": 0, "next exclusive memory": 40e9, "unattributed memory": 0})
	if got, _ := s.value("dra_claim_energy_joules_total", "resourceclaim", "next", "attribution", "exclusive"); got != 1000 {
		t.Errorf("%v J as exclusive once the process has ended, want 1000", got)
	}
}

func TestForeignProcessesAreCounted(t *testing.T) {
	const absent = -1
	for name, test := range map[string]struct {
		prepare   func(*scene)
		count     float64
		exclusive bool // the claim is alone with its GPU
	}{
		"a pod that holds nothing": {func(*scene) {}, 1, false},
		"two of its processes":     {func(s *scene) { s.addProcess("GPU-0", 3, ofPod("gone"), 0, 1) }, 2, false},
		"none":                     {func(s *scene) { s.setOwner(1, ofPod("next")) }, 0, true},
		"a process of no pod":      {func(s *scene) { s.setOwner(1, host()) }, 0, true},
		"it has ended":             {func(s *scene) { s.setOwner(1, dra.Owner{Gone: true}) }, 0, true},
		"no claim holds the GPU":   {func(s *scene) { s.release("ml/next") }, 2, false},
		"the pod is finished": {func(s *scene) {
			s.allocate("ml/gone", "gpu-0")
			s.facts.Cluster.Pods[1].Terminal = true
		}, 1, false},
		"a pod of a device plugin holds it": {func(s *scene) {
			s.addPlugin("gone", "GPU-0")
			s.facts.Cluster.PluginPods = []dra.Pod{{Ref: dra.PodRef{Namespace: "legacy", Name: "gone"}, UID: "pod-uid-of-gone"}}
		}, 0, false},
		"a device plugin may have given it to the pod": {func(s *scene) {
			s.plugged("nvidia.com/gpu", "unheard-of")
		}, 0, true},
		"a claim that has not been read": {func(s *scene) {
			s.allocate("ml/gone", "gpu-0")
			s.list("ml/gone", "gpu-0")
			s.facts.Cluster.Claims = s.facts.Cluster.Claims[:1]
			s.facts.Cluster.Unread = []dra.ClaimRef{{Namespace: "ml", Name: "gone"}}
		}, 0, false},
		"admin access":                  {func(s *scene) { s.allocate("ml/gone", "gpu-0").Results[0].AdminAccess = true }, 0, false},
		"the MPS server of its clients": {func(s *scene) { s.processLists["GPU-0"][1].Proxied = true }, 0, true},
		"a client of MPS":               {func(s *scene) { s.processLists["GPU-0"][0].Proxied = true }, 1, false},
		"processes are not looked at":   {func(s *scene) { s.facts.Processes.State = ProcessesPIDNamespace }, absent, true},
		"processes cannot be listed":    {func(s *scene) { clear(s.processLists); s.run(12) }, absent, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := takenGPU(t)
			test.prepare(s)
			s.run(2)
			got, shown := s.value("dra_device_foreign_processes", "uuid", "GPU-0")
			if !shown {
				got = absent
			}
			if got != test.count {
				t.Errorf("%v foreign processes, want %v", got, test.count)
			}
			if _, exclusive := s.value("dra_claim_power_watts", "attribution", "exclusive", "resourceclaim", "next"); exclusive != test.exclusive {
				t.Errorf("the claim is exclusive: %v, want %v", exclusive, test.exclusive)
			}
		})
	}
}

// The server of MPS stays one when its clients have ended.
func TestMPSServerInAPod(t *testing.T) {
	s := takenGPU(t)
	s.processLists["GPU-0"][1].Proxied = true
	s.run(2)
	s.processLists["GPU-0"] = s.processLists["GPU-0"][:1]
	s.run(2)
	if got, _ := s.value("dra_device_foreign_processes", "uuid", "GPU-0"); got != 0 {
		t.Errorf("%v foreign processes", got)
	}
}

// A list that was read before the claim came shows the processes of the claim
// before it. That proves nothing: the claim is alone, and what it uses is unknown.
func TestOldListOfProcesses(t *testing.T) {
	s := takenGPU(t)
	s.processLists["GPU-0"] = s.processLists["GPU-0"][:1]
	s.now = s.now.Add(time.Second) // the samples are those of the step before
	s.reduce()
	s.expectSplit("GPU-0", map[string]float64{"unattributed time": 0.6, "unattributed memory": 30e9})
	if _, exclusive := s.value("dra_claim_power_watts", "attribution", "exclusive", "resourceclaim", "next"); !exclusive {
		t.Error("the claim is not exclusive")
	}
	s.processLists["GPU-0"] = []device.Process{}
	s.run(2)
	s.expectSplit("GPU-0", map[string]float64{"next exclusive time": 0.8, "unattributed time": 0, "next exclusive memory": 40e9, "unattributed memory": 0})
}
