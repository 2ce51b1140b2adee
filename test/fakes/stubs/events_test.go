//go:build cgo

package stubs

import (
	"math"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func waitUntil(t *testing.T, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to that")
		}
	}
}

func listen(t *testing.T, library nvml.Interface, devices ...nvml.Device) nvml.EventSet {
	t.Helper()
	set, ret := library.EventSetCreate()
	must(t, ret)
	t.Cleanup(func() { must(t, set.Free()) })
	for _, device := range devices {
		must(t, device.RegisterEvents(nvml.EventTypeXidCriticalError, set))
	}
	return set
}

// A wait that is under way ends when an Xid happens, and not by its timeout.
func TestXIDEndsWait(t *testing.T) {
	n := NewNode(t, 2)
	n.XID(1, 13) // no event set yet
	library := open(t, n)
	device := gpu(t, library, 1)
	set := listen(t, library, device)
	type answer struct {
		event nvml.EventData
		ret   nvml.Return
	}
	received := make(chan answer)
	go func() {
		event, ret := set.Wait(10 * 60 * 1000)
		received <- answer{event, ret}
	}()
	n.XID(0, 31) // of a GPU without an event set
	n.XID(1, 79)
	select {
	case a := <-received:
		must(t, a.ret)
		if a.event.Device != device || a.event.EventType != nvml.EventTypeXidCriticalError || a.event.EventData != 79 ||
			a.event.GpuInstanceId != math.MaxUint32 || a.event.ComputeInstanceId != math.MaxUint32 {
			t.Errorf("the event is %+v", a.event)
		}
	case <-time.After(time.Minute):
		t.Fatal("the wait goes on")
	}
	_, ret := set.Wait(0)
	expect(t, "waiting for another", ret, nvml.ERROR_TIMEOUT)
}

func TestXIDsInOrder(t *testing.T) {
	n := NewNode(t, 2)
	library := open(t, n)
	one, other := gpu(t, library, 0), gpu(t, library, 1)
	set := listen(t, library, one, other)
	n.XIDOn(0, 7, 0, 94)
	n.XID(1, 48)
	n.XIDOn(0, 9, -1, 95)
	for _, want := range []nvml.EventData{
		{Device: one, EventData: 94, GpuInstanceId: 7, ComputeInstanceId: 0},
		{Device: other, EventData: 48, GpuInstanceId: math.MaxUint32, ComputeInstanceId: math.MaxUint32},
		{Device: one, EventData: 95, GpuInstanceId: 9, ComputeInstanceId: math.MaxUint32},
	} {
		want.EventType = nvml.EventTypeXidCriticalError
		event, ret := set.Wait(60 * 1000)
		must(t, ret)
		if event != want {
			t.Errorf("the event is %+v, not %+v", event, want)
		}
	}
}

func TestEventSets(t *testing.T) {
	n := NewNode(t, 1)
	n.Set(0, "event_types", "0")
	library := open(t, n)
	device := gpu(t, library, 0)
	set, ret := library.EventSetCreate()
	must(t, ret)
	expect(t, "a GPU without events", device.RegisterEvents(nvml.EventTypeXidCriticalError, set), nvml.ERROR_NOT_SUPPORTED)
	expect(t, "no events", device.RegisterEvents(0, set), nvml.ERROR_INVALID_ARGUMENT)
	if live := n.Live(); live.EventSets != 1 {
		t.Errorf("%d event sets are open", live.EventSets)
	}
	n.SetNode("limit.event_sets", "1")
	_, ret = library.EventSetCreate()
	expect(t, "an event set beyond the limit", ret, nvml.ERROR_INSUFFICIENT_RESOURCES)
	must(t, set.Free())
	_, ret = set.Wait(1000)
	expect(t, "a set that has been freed", ret, nvml.ERROR_INVALID_ARGUMENT)
	n.SetNode("return.nvmlEventSetWait_v2", "GPU_IS_LOST")
	_, ret = set.Wait(1000)
	expect(t, "a wait that fails", ret, nvml.ERROR_GPU_IS_LOST)
}

// A set does not survive its driver, nor a mapped library its version.
func TestDriverIsReplaced(t *testing.T) {
	n := NewNode(t, 1)
	library := open(t, n)
	device := gpu(t, library, 0)
	set := listen(t, library, device)
	n.ReloadDriver()
	for range 2 {
		_, ret := set.Wait(10)
		expect(t, "a set from before", ret, nvml.ERROR_UNKNOWN)
	}
	again := listen(t, library, device)
	n.XID(0, 48)
	event, ret := again.Wait(60 * 1000)
	must(t, ret)
	if event.EventData != 48 {
		t.Errorf("the event is %+v", event)
	}
	n.UpgradeDriver("999.1")
	_, ret = device.GetPowerUsage()
	expect(t, "the library of the driver before", ret, nvml.ERROR_LIB_RM_VERSION_MISMATCH)
	_, ret = library.DeviceGetCount()
	expect(t, "the library of the driver before", ret, nvml.ERROR_LIB_RM_VERSION_MISMATCH)
	n.SetNode("driver_version", "580.65.06")
	_, ret = device.GetPowerUsage()
	must(t, ret)
}
