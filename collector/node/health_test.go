package node

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// Nothing is known of a device's health before something reports it, and no
// more when its readings are stale; a signal stays.
func TestHealthIsUnknown(t *testing.T) {
	s := newScene(t, gpu(0))
	s.set("GPU-0", device.Power, 300)
	s.run(3)
	s.expect("nothing is reported", "absent", "", "")
	s.setXIDs("GPU-0")
	s.run(1)
	s.expect("Xids are watched", "1", "", "")
	s.facts.Samples[0].XIDs = nil
	s.run(1)
	s.expect("Xids are not watched any more", "absent", "", "")
	s.set("GPU-0", device.Lost, 0)
	s.run(1)
	s.expect("it is not lost", "1", "", "")
	s.unreadable["GPU-0"] = true
	s.run(11)
	s.expect("stale", "absent", "", "")
	s.setXIDs("GPU-0", 79, 1)
	s.run(1)
	s.expect("an Xid while the reader hangs", "0", "xid_79", "critical")
	s.run(60)
	s.expect("it is not known to be healthy", "0", "xid_79", "critical")
}

// TestHealthOfALostGPU follows a GPU that falls off the bus.
func TestHealthOfALostGPU(t *testing.T) {
	s := healthyGPU(t)
	pages := s.script("dra_device_healthy", "dra_device_health_signal", "dra_constraint",
		`dra_device_xid_errors_total{node="node-a",parent_uuid="",uuid="GPU-0",xid="79"`, "dra_device_xid_last")
	pages.show("healthy, and held by a claim")
	s.setXIDs("GPU-0", 79, 1)
	s.run(1)
	pages.show("Xid 79")
	s.unreadable["GPU-0"] = true
	s.run(30)
	pages.show("it cannot be read: it stays unhealthy")
	s.unreadable["GPU-0"] = false
	s.set("GPU-0", device.Lost, 1)
	s.run(1)
	pages.show("read as lost: the same constraint is violated for one more reason, which is no onset")
	s.set("GPU-0", device.Lost, 0)
	s.setState("GPU-0", device.RecoveryAction, "node_reboot", recoveryActions())
	s.run(10)
	pages.show("it requests a reboot: the hold does not begin")
	s.setState("GPU-0", device.RecoveryAction, "none", recoveryActions())
	s.run(4)
	pages.show("recovered, but not yet for the hold")
	s.run(1)
	pages.show("healthy")
	s.release("ml/train")
	s.run(400)
	pages.show("long after: the class's violations outlive its claims")
	metrictest.CompareGolden(t, "testdata/health_lost.txt", pages.String())
}

// While the hardware requests recovery, its cause is not over.
func TestHealthWaitsForRecovery(t *testing.T) {
	s := healthyGPU(t)
	s.setXIDs("GPU-0", 95, 1)
	s.setState("GPU-0", device.RecoveryAction, "gpu_reset", recoveryActions())
	s.run(20)
	s.setState("GPU-0", device.RecoveryAction, "none", recoveryActions())
	s.run(1)
	if _, there := s.value("dra_device_health_signal_info", "signal", "xid_95"); !there {
		t.Error("the Xid is over before the GPU was reset")
	}
	s.run(4)
	s.expect("the GPU was reset", "1", "", "")
}

// While a remapped row waits for a reset, what caused it is not over, unless
// the hardware itself requests no action: after a contained
// error it goes on, with the row pending.
func TestHealthWaitsForAPendingRemap(t *testing.T) {
	for _, known := range []bool{false, true} {
		s := healthyGPU(t)
		if !known {
			s.unset("GPU-0", device.RecoveryAction)
		}
		s.setXIDs("GPU-0", 63, 1, 94, 1)
		s.setDetail("GPU-0", device.ECCErrors, 8, "uncorrected")
		s.set("GPU-0", device.RowRemapPending, 1)
		s.run(5)
		if got := s.report("GPU-0", byHardware); got != "unhealthy" {
			t.Errorf("within the hold it is %s", got)
		}
		s.run(20)
		if got, want := s.report("GPU-0", byHardware), map[bool]string{false: "unhealthy", true: "healthy"}[known]; got != want {
			t.Errorf("while the row waits it is %s, want %s", got, want)
		}
		if _, there := s.value("dra_device_health_signal_info", "signal", "row_remap_pending", "severity", "warning"); !there {
			t.Error("there is no signal that a row waits")
		}
		s.set("GPU-0", device.RowRemapPending, 0)
		s.run(5)
		s.expect("the GPU was reset", "1", "", "")
	}
}

// A sign that comes back within the hold is the same signal, and no onset.
func TestHealthFlaps(t *testing.T) {
	s := healthyGPU(t)
	for range 6 {
		s.setState("GPU-0", device.FabricState, "failure", fabricStates())
		s.run(1)
		s.setState("GPU-0", device.FabricState, "success", fabricStates())
		s.run(3)
		s.expect("flapping", "0", "fabric_failure", "critical")
	}
	if got, _ := s.value("dra_constraint_violations_total", "constraint", "link"); got != 1 {
		t.Errorf("%v violations, want 1", got)
	}
}

// Zero values of the configuration mean no hysteresis.
func TestHealthWithoutConfiguration(t *testing.T) {
	s := healthyGPU(t)
	s.state.health.hold, s.state.health.throttleRatio = 0, 0
	s.setXIDs("GPU-0", 79, 1)
	s.run(1)
	s.expect("at the onset", "0", "xid_79", "critical")
	s.run(1)
	s.expect("a step later", "1", "", "")
}

func TestHealthEvents(t *testing.T) {
	s := healthyGPU(t)
	s.setXIDs("GPU-0", 79, 1, 94, 1)
	s.run(1)
	got := fmt.Sprint(s.events)
	want := "[{WARN a device has a new health signal [uuid=GPU-0 signal=xid_79 severity=critical claims=ml/train]} " +
		"{INFO a device has a new health signal [uuid=GPU-0 signal=xid_94 severity=warning claims=ml/train]}]"
	if got != want {
		t.Errorf("events at the onset:\n%s\nwant\n%s", got, want)
	}
	for range 4 {
		if s.run(1); len(s.events) > 0 {
			t.Errorf("events while nothing changes: %v", s.events)
		}
	}
	s.run(1)
	if len(s.events) != 2 || s.events[0].Level != slog.LevelInfo || s.events[0].Message != "a health signal of a device has cleared" {
		t.Errorf("events at the end: %v", s.events)
	}
}

// partitionedGPU has two partitions, of which only their Xids are known, each
// held by a claim of a class of its own.
func partitionedGPU(t testing.TB) *scene {
	whole, first, second := gpu(0), gpu(0), gpu(0)
	first.UUID, first.ParentUUID, first.Profile, first.Placement = "MIG-a", "GPU-0", "3g.40gb", 0
	second.UUID, second.ParentUUID, second.Profile, second.Placement = "MIG-b", "GPU-0", "3g.40gb", 4
	s := newScene(t, whole, first, second)
	s.setHealthy("GPU-0")
	for i, partition := range []device.Device{first, second} {
		published := s.facts.Cluster.Published[0]
		published.ID, published.UUID, published.ParentUUID = sceneID(partition.UUID), partition.UUID, "GPU-0"
		s.facts.Cluster.Published = append(s.facts.Cluster.Published, published)
		s.setXIDs(partition.UUID)
		s.allocate(fmt.Sprintf("ml/claim-%d", i), partition.UUID).Requests[0].DeviceClass = "class-of-" + partition.UUID
	}
	s.run(3)
	return s
}

func TestHealthOfPartitions(t *testing.T) {
	s := partitionedGPU(t)
	pages := s.script("dra_device_healthy", "dra_device_health_signal", "dra_constraint")
	pages.show("healthy: the partitions have their parent's report")
	s.setXIDs("MIG-a", 95, 1)
	s.run(1)
	pages.show("an Xid of one partition: the other one and the whole go on")
	s.run(5)
	s.set("GPU-0", device.RowRemapFailed, 1)
	s.run(1)
	pages.show("the whole device is unhealthy, and so are both partitions; both classes have a violation")
	s.set("GPU-0", device.RowRemapFailed, 0)
	s.run(5)
	pages.show("all are healthy again")
	metrictest.CompareGolden(t, "testdata/health_partitions.txt", pages.String())
}

// A device that vanishes keeps its signals, and a partition that was taken
// away reports nothing of its own.
func TestHealthOfAbsentDevices(t *testing.T) {
	s := partitionedGPU(t)
	s.setXIDs("GPU-0", 79, 1)
	s.run(1)
	s.facts.Samples = nil
	s.run(20)
	for _, uuid := range []string{"GPU-0", "MIG-a"} {
		if got, there := s.value("dra_device_healthy", "uuid", uuid, "by", "hardware"); got != 0 || !there {
			t.Errorf("%s is %v, %v", uuid, got, there)
		}
	}
	s = partitionedGPU(t)
	s.facts.Samples = s.facts.Samples[:1]
	s.step(time.Second)
	if _, there := s.value("dra_device_healthy", "uuid", "MIG-a", "by", "hardware"); there {
		t.Error("a partition that is gone is healthy")
	}
}
