package node

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestSplit(t *testing.T) {
	const unknown = device.Unknown
	unsplit := map[string]float64{"first shared time": 0.8, "second shared time": 0.8, "first shared memory": 40, "second shared memory": 40}
	for _, test := range []struct {
		name    string
		prepare func(*scene)
		want    map[string]float64
	}{
		{"two claims and the host", func(s *scene) {
			s.addProcess("GPU-0", 1, ofPod("first"), 0.3, 10)
			s.addProcess("GPU-0", 2, ofPod("second"), 0.1, 5)
			s.addProcess("GPU-0", 3, ofPod("second"), 0.1, 5)
			s.addProcess("GPU-0", 4, host(), 0.2, 4)
		}, map[string]float64{
			"first process time": 0.3, "second process time": 0.2, "unattributed time": 0.2, "pod first time": 0.3, "pod second time": 0.2,
			"first process memory": 10, "second process memory": 10, "unattributed memory": 4, "pod first memory": 10, "pod second memory": 10,
		}},
		{"no process works", func(*scene) {}, map[string]float64{
			"first process time": 0, "second process time": 0, "unattributed time": 0, "pod first time": 0, "pod second time": 0,
			"first process memory": 0, "second process memory": 0, "unattributed memory": 0, "pod first memory": 0, "pod second memory": 0,
		}},
		{"a sum above the device's own is scaled down", func(s *scene) {
			s.addProcess("GPU-0", 1, ofPod("first"), 0.8, 40)
			s.addProcess("GPU-0", 2, ofPod("second"), 0.4, 20)
			s.addProcess("GPU-0", 3, host(), 0.4, 20)
		}, map[string]float64{
			"first process time": 0.4, "second process time": 0.2, "unattributed time": 0.2, "pod first time": 0.4, "pod second time": 0.2,
			"first process memory": 20, "second process memory": 10, "unattributed memory": 10, "pod first memory": 20, "pod second memory": 10,
		}},
		{"a process that has ended counts nowhere", func(s *scene) {
			s.addProcess("GPU-0", 1, ofPod("first"), 0.3, 10)
			s.addProcess("GPU-0", 2, dra.Owner{Gone: true}, 0.9, 40)
			s.addProcess("GPU-0", 3, dra.Owner{Gone: true}, unknown, unknown)
		}, map[string]float64{
			"first process time": 0.3, "second process time": 0, "unattributed time": 0, "pod first time": 0.3, "pod second time": 0,
			"first process memory": 10, "second process memory": 0, "unattributed memory": 0, "pod first memory": 10, "pod second memory": 0,
		}},
		{"memory that is not reported stays shared", func(s *scene) {
			s.addProcess("GPU-0", 1, ofPod("first"), 0.3, unknown)
		}, map[string]float64{
			"first process time": 0.3, "second process time": 0, "unattributed time": 0, "pod first time": 0.3, "pod second time": 0,
			"first shared memory": 40, "second shared memory": 40,
		}},
		{"utilization that is not reported stays shared", func(s *scene) {
			s.addProcess("GPU-0", 1, host(), unknown, 10)
		}, map[string]float64{
			"first process memory": 0, "second process memory": 0, "unattributed memory": 10, "pod first memory": 0, "pod second memory": 0,
			"first shared time": 0.8, "second shared time": 0.8,
		}},
		{"a value that is no number is not reported", func(s *scene) {
			s.addProcess("GPU-0", 1, host(), math.NaN(), math.Inf(1))
		}, unsplit},
		{"an MPS server that is reported to do its clients' work", func(s *scene) {
			s.addProcess("GPU-0", 1, ofPod("first"), 0, 10)
			s.processLists["GPU-0"][0].Proxied = true
			s.addProcess("GPU-0", 2, host(), 0.8, 1)
		}, map[string]float64{
			"first process memory": 10, "second process memory": 0, "unattributed memory": 1, "pod first memory": 10, "pod second memory": 0,
			"first shared time": 0.8, "second shared time": 0.8,
		}},
		{"an MPS server that is reported to do nothing", func(s *scene) {
			s.addProcess("GPU-0", 1, ofPod("first"), 0.5, 10)
			s.processLists["GPU-0"][0].Proxied = true
			s.addProcess("GPU-0", 2, host(), 0, 1)
		}, map[string]float64{
			"first process time": 0.5, "second process time": 0, "unattributed time": 0, "pod first time": 0.5, "pod second time": 0,
			"first process memory": 10, "second process memory": 0, "unattributed memory": 1, "pod first memory": 10, "pod second memory": 0,
		}},
		{"the device's own value is unknown", func(s *scene) {
			s.addProcess("GPU-0", 1, ofPod("first"), 0.5, 10)
			s.unset("GPU-0", device.MemoryUsed)
			s.unset("GPU-0", device.Utilization)
		}, map[string]float64{}},
		{"processes are not looked at", func(s *scene) {
			s.addProcess("GPU-0", 1, ofPod("first"), 0.5, 10)
			s.facts.Processes.State = ProcessesPIDNamespace
		}, unsplit},
		{"processes cannot be listed", func(s *scene) { clear(s.processLists) }, unsplit},
		{"a process that was not looked up yet", func(s *scene) {
			s.addProcess("GPU-0", 1, ofPod("first"), 0.5, 10)
			s.removeProcess(1)
		}, unsplit},
		{"admin access holds nothing", func(s *scene) {
			s.allocate("ml/admin", "gpu-0").Results[0].AdminAccess = true
			s.addProcess("GPU-0", 1, ofPod("admin"), 0.5, 10)
		}, map[string]float64{
			"first process time": 0, "second process time": 0, "unattributed time": 0.5, "pod first time": 0, "pod second time": 0,
			"first process memory": 0, "second process memory": 0, "unattributed memory": 10, "pod first memory": 0, "pod second memory": 0,
		}},
		{"a finished pod holds nothing", func(s *scene) {
			s.facts.Cluster.Pods[1].Terminal = true
			s.addProcess("GPU-0", 1, ofPod("second"), 0.5, 10)
		}, map[string]float64{"first process time": 0, "first process memory": 0, "unattributed time": 0.5, "unattributed memory": 10}},
		{"who is alone has all of it", func(s *scene) {
			s.release("ml/second")
			s.addProcess("GPU-0", 1, ofPod("first"), 0.1, 10)
			s.addProcess("GPU-0", 2, host(), 0.2, 5)
		}, map[string]float64{"first exclusive time": 0.8, "first exclusive memory": 40, "unattributed time": 0.2, "unattributed memory": 5}},
		{"a device that is not held", func(s *scene) {
			s.release("ml/first")
			s.release("ml/second")
			s.addProcess("GPU-0", 1, ofPod("first"), 0.1, 10)
		}, map[string]float64{"unattributed time": 0.1, "unattributed memory": 10}},
		{"a container of this program's own pod", func(s *scene) {
			s.facts.Cluster.Pods[0].Containers[0].ID = "main-of-first"
			s.addProcess("GPU-0", 1, dra.Owner{ContainerID: "main-of-first"}, 0.1, 10)
			s.addProcess("GPU-0", 2, dra.Owner{ContainerID: "another"}, 0.2, 20)
		}, map[string]float64{
			"first process time": 0.1, "second process time": 0, "unattributed time": 0.2, "pod first time": 0.1, "pod second time": 0,
			"first process memory": 10, "second process memory": 0, "unattributed memory": 20, "pod first memory": 10, "pod second memory": 0,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sharedGPU(t)
			s.t = t
			test.prepare(s)
			s.step(time.Second)
			s.expectSplit("GPU-0", test.want)
		})
	}
}

// Processes do not report which partition they use.
func TestSplitStopsAtPartitions(t *testing.T) {
	part := gpu(0)
	part.UUID, part.ParentUUID, part.Profile, part.Placement, part.GPUInstance, part.ComputeInstance = "MIG-a", "GPU-0", "1g.10gb", 0, 7, 0
	s := newScene(t, gpu(0), part)
	s.set("GPU-0", device.Utilization, 0.8)
	s.set("MIG-a", device.MemoryUsed, 8)
	s.allocate("ml/first", "gpu-0")
	s.allocate("ml/second", "gpu-0")
	s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{ID: sceneID("mig-a"), UUID: "MIG-a", ParentUUID: "GPU-0", Placement: dra.PlacementUnknown})
	s.allocate("ml/third", "mig-a")
	s.allocate("ml/fourth", "mig-a")
	s.addProcess("GPU-0", 1, ofPod("first"), 0.3, 10)
	s.processLists["MIG-a"] = s.processLists["GPU-0"]
	s.step(time.Second)
	s.expectSplit("GPU-0", map[string]float64{"first shared time": 0.8, "second shared time": 0.8})
	s.expectSplit("MIG-a", map[string]float64{"third shared memory": 8, "fourth shared memory": 8})
}

// Where one source's readings have become stale, another's lists split
// nothing.
func TestSplitOfAnUnreadableDevice(t *testing.T) {
	s := sharedGPU(t)
	s.addProcess("GPU-0", 1, ofPod("first"), 0.3, 10)
	s.step(time.Second)
	for range 11 {
		s.now = s.now.Add(time.Second)
		s.facts.Samples = slices.Clone(s.facts.Samples)
		s.facts.Samples[0].ProcessesAt = s.now
		s.reduce()
	}
	s.expectSplit("GPU-0", map[string]float64{})
}

func TestProcessAttributionStates(t *testing.T) {
	for state := range processStates {
		s := sharedGPU(t)
		s.facts.Processes.State = state
		s.step(time.Second)
		s.expectState(state.String())
	}
	s := sharedGPU(t)
	clear(s.processLists)
	s.step(time.Second)
	s.expectState("unsupported")
	s.processLists["GPU-0"] = []device.Process{}
	s.step(time.Second)
	s.expectState("ok")
	clear(s.processLists)
	s.step(time.Second)
	s.expectState("ok")
}

func (s *scene) expectState(want string) {
	s.t.Helper()
	for state := range processStates {
		value, there := s.value("dra_exporter_process_attribution", "reason", state.String())
		if !there || value != flag(state.String() == want) {
			s.t.Errorf("%s is %v (%v) while the state is %s", state, value, there, want)
		}
	}
}
