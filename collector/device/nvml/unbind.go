//go:build cgo

package nvml

import (
	"runtime"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// systemEventFunctions are what a watch for the unbinding of drivers calls. Older
// drivers do not have them.
func systemEventFunctions() []string {
	return []string{"nvmlSystemEventSetCreate", "nvmlSystemEventSetFree", "nvmlSystemRegisterEvents", "nvmlSystemEventSetWait"}
}

// systemEvents is how many events one call returns at most.
const systemEvents = 16

// unbindEnd is how long the end of the goroutine is waited for. It has been asked to
// end before the watch for XIDs, so that both end within what a sampler grants to Close.
const unbindEnd = 1200 * time.Millisecond

// unbindWatcher looks, within one connection, for the event that the driver is to be
// unbound from a GPU. The kernel then waits until no process has the GPU open, for ever
// if need be. start and stop belong to Readers and Close.
type unbindWatcher struct {
	library  nvml.Interface
	signal   chan struct{} // of capacity one: a driver is to be unbound
	stopped  chan struct{} // closed to end the goroutine; nil: there is none
	finished chan struct{} // closed when the goroutine has ended

	interrupted bool // stopped is closed
}

func newUnbindWatcher(library nvml.Interface) unbindWatcher {
	return unbindWatcher{library: library, signal: make(chan struct{}, 1)}
}

// start begins to look, if the library has the functions and the driver the events.
func (w *unbindWatcher) start(available symbols) {
	if w.stopped != nil || !available.has(systemEventFunctions()...) {
		return
	}
	created := nvml.SystemEventSetCreateRequest{}
	created.Version = nvml.STRUCT_VERSION(created, 1)
	if ret := w.library.SystemEventSetCreate(&created); ret != nvml.SUCCESS {
		return
	}
	registered := nvml.SystemRegisterEventRequest{EventTypes: nvml.SystemEventTypeGpuDriverUnbind, Set: created.Set}
	registered.Version = nvml.STRUCT_VERSION(registered, 1)
	if ret := w.library.SystemRegisterEvents(&registered); ret != nvml.SUCCESS {
		w.free(created.Set)
		return
	}
	w.stopped, w.finished = make(chan struct{}), make(chan struct{})
	go w.run(created.Set, w.stopped, w.finished)
}

// interrupt requests the end of the looks, so that stop need not wait long.
func (w *unbindWatcher) interrupt() {
	if w.stopped != nil && !w.interrupted {
		close(w.stopped)
		w.interrupted = true
	}
}

// stop ends the looks. One that does not return is left behind with its set.
func (w *unbindWatcher) stop() {
	if w.stopped == nil {
		return
	}
	w.interrupt()
	timer := time.NewTimer(unbindEnd)
	defer timer.Stop()
	select {
	case <-w.finished:
	case <-timer.C:
	}
	w.stopped, w.interrupted = nil, false
}

// run looks for events until it is stopped, and frees the set. Looks that fail, as after
// the driver was unloaded, are repeated until the connection ends.
func (w *unbindWatcher) run(set nvml.SystemEventSet, stopped <-chan struct{}, finished chan<- struct{}) {
	defer close(finished)
	defer w.free(set)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if w.look(set) {
			select {
			case w.signal <- struct{}{}:
			default:
			}
		}
		timer.Reset(clock.UntilNext(lookInterval))
		select {
		case <-stopped:
			return
		case <-timer.C:
		}
	}
}

// look reports whether the driver is to be unbound from a GPU. More events than one call
// returns are of that kind too: no other is registered.
func (w *unbindWatcher) look(set nvml.SystemEventSet) bool {
	var events [systemEvents]nvml.SystemEventData_v1
	var pinned runtime.Pinner // the request, which C receives, has a pointer to them
	pinned.Pin(&events[0])
	defer pinned.Unpin()
	request := nvml.SystemEventSetWaitRequest{
		Set: set, Data: &events[0], DataSize: systemEvents,
	}
	request.Version = nvml.STRUCT_VERSION(request, 1)
	switch ret := w.library.SystemEventSetWait(&request); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_INSUFFICIENT_SIZE:
		return true
	default:
		return false
	}
	for _, event := range events[:min(request.NumEvent, systemEvents)] {
		if event.EventType == nvml.SystemEventTypeGpuDriverUnbind {
			return true
		}
	}
	return false
}

func (w *unbindWatcher) free(set nvml.SystemEventSet) {
	request := nvml.SystemEventSetFreeRequest{Set: set}
	request.Version = nvml.STRUCT_VERSION(request, 1)
	_ = w.library.SystemEventSetFree(&request) // nothing can be done about a set that stays
}
