package node

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// A list whose processes were not all looked up leaves the one before in
// force, and so does a device that cannot list them, while that one is fresh.
func TestSplitIsKeptWithoutAList(t *testing.T) {
	s := sharedGPU(t)
	s.addProcess("GPU-0", 1, ofPod("first"), 0.3, 10)
	s.step(time.Second)
	before := s.split("GPU-0")
	s.addProcess("GPU-0", 2, ofPod("second"), 0.2, 10)
	s.removeProcess(2)
	for range 10 {
		s.step(time.Second)
		s.expectSplit("GPU-0", before)
	}
	s.step(time.Second)
	unsplit := map[string]float64{"first shared time": 0.8, "second shared time": 0.8, "first shared memory": 40, "second shared memory": 40}
	s.expectSplit("GPU-0", unsplit)
	s.setOwner(2, ofPod("second"))
	s.step(time.Second)
	before["second process time"], before["pod second time"] = 0.2, 0.2
	before["second process memory"], before["pod second memory"] = 10, 10
	s.expectSplit("GPU-0", before)
	s.processLists = map[string][]device.Process{}
	for range 10 {
		s.step(time.Second)
		s.expectSplit("GPU-0", before)
	}
	s.step(time.Second)
	s.expectSplit("GPU-0", unsplit)
}

// A pid that was reused does not change its owner in a list that
// was read before.
func TestSplitOfAReusedPID(t *testing.T) {
	s := sharedGPU(t)
	s.addProcess("GPU-0", 1, ofPod("first"), 0.3, 10)
	s.step(time.Second)
	before := s.split("GPU-0")
	clear(s.processLists)
	s.setOwner(1, ofPod("second"))
	s.step(time.Second)
	s.expectSplit("GPU-0", before)
}

func TestLedgerOfASplit(t *testing.T) {
	s := sharedGPU(t)
	s.set("GPU-0", device.Energy, 1e6)
	pages := s.script("dra_claim_util", "dra_claim_mem", "dra_claim_busy", "dra_claim_energy", "dra_claim_idle", "dra_claim_device_seconds", "dra_namespace_", "dra_device_unattributed", "dra_device_busy", "dra_pod_")
	s.addProcess("GPU-0", 1, ofPod("first"), 0.3, 10)
	s.addProcess("GPU-0", 2, host(), 0.2, 4)
	s.run(11)
	pages.show("split for ten seconds: the second claim idles")
	s.processLists["GPU-0"][0].Utilization = device.Unknown
	s.run(10)
	pages.show("utilization is not reported any more: shared, the process account does not change")
	s.processLists["GPU-0"][0].Utilization = 0.5
	s.run(11)
	pages.show("reported again for ten seconds: the account continues")
	s.release("ml/second")
	s.run(11)
	pages.show("alone for ten seconds: exclusive, the host's process with it")
	metrictest.CompareGolden(t, "testdata/ledger_split.txt", pages.String())
}

// Busy time under process is credited only from a read at which the claim
// held the device and its use was split to the next, over no gap.
func TestBusyTimeOfASplit(t *testing.T) {
	busy := func(s *scene) float64 {
		value, _ := s.value("dra_claim_busy_seconds_total", "resourceclaim", "first", "attribution", "process")
		return value
	}
	s := sharedGPU(t)
	s.addProcess("GPU-0", 1, ofPod("first"), 0.5, 10)
	s.step(time.Second)
	s.step(4 * time.Second)
	if got := busy(s); got != 2 {
		t.Errorf("busy for %v s, want 2", got)
	}
	s.step(11 * time.Second)
	if got := busy(s); got != 2 {
		t.Errorf("busy for %v s after a gap, want 2", got)
	}
	s.processLists["GPU-0"][0].Utilization = device.Unknown
	s.step(time.Second)
	s.processLists["GPU-0"][0].Utilization = 0.5
	s.step(time.Second)
	if got := busy(s); got != 2 {
		t.Errorf("busy for %v s though it was not split at both ends, want 2", got)
	}
	s.step(time.Second)
	if got := busy(s); got != 2.5 {
		t.Errorf("busy for %v s, want 2.5", got)
	}
}

// A device whose work cannot be split while there is some is not split while
// it rests: all that would be known of it is that it idles.
func TestIdleDevicesAreNotSplit(t *testing.T) {
	for _, test := range []struct {
		name string
		turn func(s *scene, busy bool)
	}{
		{"an MPS server that is reported to do its clients' work", func(s *scene, busy bool) {
			s.processLists["GPU-0"] = []device.Process{{PID: 1, Memory: 10, Proxied: true}, {PID: 2, Memory: 1, Utilization: 0.8 * flag(busy)}}
		}},
		{"an MPS server whose clients come and go", func(s *scene, busy bool) {
			s.processLists["GPU-0"] = []device.Process{{PID: 2, Memory: 1, Utilization: 0.8 * flag(busy)}}
			if busy {
				s.processLists["GPU-0"] = append(s.processLists["GPU-0"], device.Process{PID: 1, Memory: 10, Proxied: true})
			}
		}},
		{"processes that do not report, and come and go", func(s *scene, busy bool) {
			s.processLists["GPU-0"] = []device.Process{}
			if busy {
				s.processLists["GPU-0"] = []device.Process{{PID: 1, Memory: 10, Utilization: device.Unknown}}
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sharedGPU(t)
			s.t = t
			s.setOwner(1, ofPod("first"))
			s.setOwner(2, host())
			for i := range 101 { // busy first, and last
				s.set("GPU-0", device.Utilization, 0.8*flag(i%2 == 0))
				test.turn(s, i%2 == 0)
				s.step(time.Second)
			}
			own, _ := s.value("dra_device_busy_seconds_total")
			busy, _ := s.value("dra_claim_busy_seconds_total", "resourceclaim", "first", "attribution", "shared")
			if own < 39 || busy != own {
				t.Errorf("the claim was busy for %v s, the device for %v s", busy, own)
			}
			held, _ := s.value("dra_namespace_device_seconds_total")
			unsplit, _ := s.value("dra_namespace_shared_device_seconds_total")
			if unsplit != held {
				t.Errorf("of %v device-seconds %v were not split, want all", held, unsplit)
			}
		})
	}
}

// A server at rest while its clients are reported to work does not do their
// work; nor does anybody after the server has ended.
func TestMPSServerEnds(t *testing.T) {
	split := map[string]float64{"first process time": 0.5, "second process time": 0, "unattributed time": 0, "pod first time": 0.5, "pod second time": 0}
	for name, list := range map[string][]device.Process{
		"clients are reported to work": {{PID: 1, Utilization: 0.5, Proxied: true}, {PID: 2}},
		"the server has ended":         {{PID: 1, Utilization: 0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sharedGPU(t)
			s.t = t
			s.unset("GPU-0", device.MemoryUsed)
			s.setOwner(1, ofPod("first"))
			s.setOwner(2, host())
			s.processLists["GPU-0"] = []device.Process{{PID: 1, Proxied: true}, {PID: 2, Utilization: 0.8}}
			s.step(time.Second)
			s.processLists["GPU-0"] = []device.Process{{PID: 1, Proxied: true}, {PID: 2}}
			s.step(time.Second)
			s.expectSplit("GPU-0", map[string]float64{"first shared time": 0.8, "second shared time": 0.8})
			s.processLists["GPU-0"] = list
			s.step(time.Second)
			s.expectSplit("GPU-0", split)
		})
	}
}
