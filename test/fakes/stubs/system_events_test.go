//go:build cgo

package stubs

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// listenSystem makes a set that is registered for types of system events.
func listenSystem(t *testing.T, library nvml.Interface, types uint64) nvml.SystemEventSet {
	t.Helper()
	create := nvml.SystemEventSetCreateRequest{Version: nvml.STRUCT_VERSION(nvml.SystemEventSetCreateRequest{}, 1)}
	must(t, library.SystemEventSetCreate(&create))
	t.Cleanup(func() { must(t, freeSystem(library, create.Set)) })
	register := nvml.SystemRegisterEventRequest{
		Version: nvml.STRUCT_VERSION(nvml.SystemRegisterEventRequest{}, 1), EventTypes: types, Set: create.Set,
	}
	must(t, library.SystemRegisterEvents(&register))
	return create.Set
}

func freeSystem(library nvml.Interface, set nvml.SystemEventSet) nvml.Return {
	return library.SystemEventSetFree(&nvml.SystemEventSetFreeRequest{
		Version: nvml.STRUCT_VERSION(nvml.SystemEventSetFreeRequest{}, 1), Set: set,
	})
}

// waitSystem waits for events, and writes them down as <GPU id>:<type>.
func waitSystem(library nvml.Interface, set nvml.SystemEventSet, milliseconds uint32) (string, nvml.Return) {
	data := make([]nvml.SystemEventData_v1, 4)
	var pinner runtime.Pinner // the binding passes a pointer to a pointer
	defer pinner.Unpin()
	pinner.Pin(&data[0])
	request := nvml.SystemEventSetWaitRequest{
		Version:   nvml.STRUCT_VERSION(nvml.SystemEventSetWaitRequest{}, 1),
		Timeoutms: milliseconds, Set: set, Data: &data[0], DataSize: uint32(len(data)),
	}
	ret := library.SystemEventSetWait(&request)
	text := ""
	for _, event := range data[:request.NumEvent] {
		text += fmt.Sprintf("%x:%d ", event.GpuId, event.EventType)
	}
	return text, ret
}

const bothBindings = nvml.SystemEventTypeGpuDriverUnbind | nvml.SystemEventTypeGpuDriverBind

// The set gets what happens after it was registered, in order.
func TestSystemEvents(t *testing.T) {
	n := NewNode(t, 2)
	n.Bind(0) // no set yet
	library := load(t, n)
	must(t, library.InitWithFlags(nvml.INIT_FLAG_NO_GPUS|nvml.INIT_FLAG_NO_ATTACH))
	t.Cleanup(func() { must(t, library.Shutdown()) })
	all := listenSystem(t, library, bothBindings)
	bound := listenSystem(t, library, nvml.SystemEventTypeGpuDriverBind)
	if live := n.Live(); live.SystemEventSets != 2 || live.EventSets != 0 {
		t.Errorf("%+v is open", live)
	}
	_, ret := waitSystem(library, all, 0)
	expect(t, "waiting for nothing", ret, nvml.ERROR_TIMEOUT)
	if err := n.Unbind(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	n.Bind(1)
	for _, c := range []struct {
		set  nvml.SystemEventSet
		want string
	}{{all, "4300:1 4300:2 "}, {bound, "4300:2 "}} {
		events, ret := waitSystem(library, c.set, 60_000)
		must(t, ret)
		if events != c.want {
			t.Errorf("the events are %q, not %q", events, c.want)
		}
	}
	n.ReloadDriver()
	_, ret = waitSystem(library, all, 1000)
	expect(t, "a set of the driver before", ret, nvml.ERROR_UNKNOWN)
}

// The announcement ends a wait that is under way, before the unbinding, which
// waits for those who hold the GPU.
func TestUnbindingIsAnnounced(t *testing.T) {
	n := NewNode(t, 1)
	library := load(t, n)
	must(t, library.Init())
	create := nvml.SystemEventSetCreateRequest{Version: nvml.STRUCT_VERSION(nvml.SystemEventSetCreateRequest{}, 1)}
	must(t, library.SystemEventSetCreate(&create))
	must(t, library.SystemRegisterEvents(&nvml.SystemRegisterEventRequest{
		Version: nvml.STRUCT_VERSION(nvml.SystemRegisterEventRequest{}, 1), EventTypes: bothBindings, Set: create.Set,
	}))
	released := make(chan nvml.Return)
	go func() {
		_, ret := waitSystem(library, create.Set, 10*60*1000)
		if ret == nvml.SUCCESS {
			ret = freeSystem(library, create.Set)
		}
		if ret == nvml.SUCCESS {
			ret = library.Shutdown()
		}
		released <- ret
	}()
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	if err := n.Unbind(ctx, 0); err != nil {
		t.Error(err)
	}
	must(t, <-released)
	if live := n.Live(); live != (Live{}) {
		t.Errorf("%+v is open", live)
	}
}

func TestSystemEventArguments(t *testing.T) {
	n := NewNode(t, 1)
	library := open(t, n)
	n.SetNode("limit.system_event_sets", "1")
	set := listenSystem(t, library, bothBindings)
	create := nvml.SystemEventSetCreateRequest{Version: 9}
	expect(t, "a wrong version", library.SystemEventSetCreate(&create), nvml.ERROR_ARGUMENT_VERSION_MISMATCH)
	create.Version = nvml.STRUCT_VERSION(create, 1)
	expect(t, "a set beyond the limit", library.SystemEventSetCreate(&create), nvml.ERROR_INSUFFICIENT_RESOURCES)
	expect(t, "a type that there is not", library.SystemRegisterEvents(&nvml.SystemRegisterEventRequest{
		Version: nvml.STRUCT_VERSION(nvml.SystemRegisterEventRequest{}, 1), EventTypes: 4, Set: set,
	}), nvml.ERROR_NOT_SUPPORTED)
	expect(t, "a foreign set", freeSystem(library, nvml.SystemEventSet{}), nvml.ERROR_INVALID_ARGUMENT)
	expect(t, "a wait without room", library.SystemEventSetWait(&nvml.SystemEventSetWaitRequest{Set: set}), nvml.ERROR_INVALID_ARGUMENT)
	n.SetNode("return.nvmlSystemEventSetWait", "FUNCTION_NOT_FOUND")
	_, ret := waitSystem(library, set, 1000)
	expect(t, "an older driver", ret, nvml.ERROR_FUNCTION_NOT_FOUND)
}
