//go:build cgo

package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// fallenOffTheBus is the XID of a GPU that the driver cannot reach any more.
const fallenOffTheBus = 79

// eventFunctions are what watching for XIDs takes; the wait there is in
// two versions.
func eventFunctions() (all, wait []string) {
	return []string{
		"nvmlEventSetCreate", "nvmlEventSetFree",
		"nvmlDeviceRegisterEvents", "nvmlDeviceGetSupportedEventTypes",
	}, []string{"nvmlEventSetWait", "nvmlEventSetWait_v2"}
}

// watchedGPU is a GPU whose XIDs are to be watched for.
type watchedGPU struct {
	uuid    string
	gpu     nvml.Device // nil: the GPU is lost
	symbols symbols
	lost    *atomic.Bool // set when an XID reports that the GPU has fallen off the bus
}

// xidWatcher watches for XIDs within one connection to the library. Its
// methods belong to Readers and Close.
type xidWatcher struct {
	library   nvml.Interface
	counts    *xidCounts
	reconnect func() // requests another connection

	loop    *eventLoop // nil: no GPU is watched
	hung    *eventLoop // an earlier one that has not ended; nil: none
	failure error      // why the set of the last one had no events; nil: it had
}

// watch watches the GPUs that support it, and no others.
func (w *xidWatcher) watch(gpus []watchedGPU) {
	if w.hung != nil && w.hung.ended() {
		w.hung = nil
	}
	current, wanted := make(map[string]bool, len(gpus)), make(map[string]watchedGPU, len(gpus))
	for _, g := range gpus {
		current[g.uuid] = true
		if supported, err := w.supports(g); supported {
			wanted[g.uuid] = g
		} else {
			w.counts.setWatched(g.uuid, false, err)
		}
	}
	w.counts.unwatchExcept(current)
	if w.loop == nil && len(wanted) > 0 {
		w.loop = newEventLoop(w.library, w.counts, w.reconnect, w.failure)
	}
	if w.loop != nil {
		w.loop.watch(wanted)
	}
}

// supports reports whether the XIDs of a GPU can be watched for, and the error
// if that cannot be found out. A lost GPU has none.
func (w *xidWatcher) supports(g watchedGPU) (bool, error) {
	all, wait := eventFunctions()
	switch {
	case g.gpu == nil || !g.symbols.has(all...) || !g.symbols.any(wait...):
		return false, nil
	case w.hung != nil:
		return false, errors.New("an earlier wait for events has not returned")
	case w.loop != nil && w.loop.find(g.gpu).uuid == g.uuid:
		return true, nil
	}
	types, ret := g.gpu.GetSupportedEventTypes()
	return ret == nvml.SUCCESS && types&nvml.EventTypeXidCriticalError != 0, watchFailure("get the supported events", ret)
}

// watchFailure is why the XIDs of a GPU cannot be watched for; nil if it does
// not report any, or is lost.
func watchFailure(action string, ret nvml.Return) error {
	if ret == nvml.SUCCESS || unsupported(ret) || gpuLost(ret) {
		return nil
	}
	return fmt.Errorf("%s: %w", action, ret)
}

// stop ends the event loop. One whose wait does not return is left behind,
// and no GPU is watched until it has ended.
func (w *xidWatcher) stop() {
	if w.loop != nil {
		w.failure = nil
		if w.loop.end() {
			w.failure = w.loop.failure
		} else {
			w.hung = w.loop
		}
	}
	w.loop = nil
}

// lookInterval is the time between two looks for events, which the library keeps until
// then. A call that waits for them instead would wake the process more often: it would
// have to return soon, because only its return lets a loop that was stopped end.
const lookInterval = time.Second

// stopTimeout is how long the end of an event loop is waited for: a busy machine takes
// its time to return from a call. It lies within what a sampler grants to Close.
const stopTimeout = time.Second

// An event set whose calls fail is replaced at intervals between these two,
// which increase.
const (
	replaceFirst = time.Second
	replaceMost  = 30 * time.Second
)

// reconnectAfter is after how many sets in a row whose calls fail another
// connection is requested.
const reconnectAfter = 3

// eventLoop looks for the events of one event set after another, in a goroutine
// of its own: a call that never returns blocks that goroutine alone. A set whose
// calls fail, as after the driver was loaded again, never has events again. It is
// replaced, and until calls for another one succeed, no GPU is watched.
type eventLoop struct {
	library   nvml.Interface
	counts    *xidCounts
	reconnect func()
	begin     sync.Once // starts the goroutine once GPUs are registered
	stop      chan struct{}
	finished  chan struct{} // closed when the goroutine has ended

	calls sync.Mutex    // held while the set is changed; a call that hangs keeps it
	set   nvml.EventSet // nil: there is none

	mu         sync.Mutex
	wanted     map[string]watchedGPU      // by UUID
	registered map[nvml.Device]watchedGPU // whose events are in the set, or were when it worked
	refused    map[string]error           // by UUID: why they are not; nil: the GPU has none
	failure    error                      // why the set has no events; nil: it has
}

// newEventLoop returns a loop that has not begun. If the set before had no events,
// this one has none until a wait has returned.
func newEventLoop(library nvml.Interface, counts *xidCounts, reconnect func(), failure error) *eventLoop {
	l := &eventLoop{
		library: library, counts: counts, reconnect: reconnect,
		stop: make(chan struct{}), finished: make(chan struct{}),
		registered: make(map[nvml.Device]watchedGPU),
	}
	l.failure = cmp.Or(l.replace(), failure)
	return l
}

// watch sets which GPUs are watched. Those that are new are registered at once,
// unless the set is being replaced.
func (l *eventLoop) watch(wanted map[string]watchedGPU) {
	l.mu.Lock()
	l.wanted = wanted
	l.mu.Unlock()
	if l.calls.TryLock() {
		l.register()
		l.calls.Unlock()
	}
	l.begin.Do(func() {
		l.counts.receive()
		go l.run()
	})
	l.report()
}

// register adds the XIDs of the wanted GPUs to the set, as far as they are not.
// calls is locked.
func (l *eventLoop) register() {
	l.mu.Lock()
	missing := make([]watchedGPU, 0, len(l.wanted))
	for _, g := range l.wanted {
		if l.set != nil && l.registered[g.gpu].uuid != g.uuid {
			missing = append(missing, g)
		}
	}
	l.mu.Unlock()
	registered, refused := make(map[nvml.Device]watchedGPU), make(map[string]error)
	for _, g := range missing {
		if ret := g.gpu.RegisterEvents(nvml.EventTypeXidCriticalError, l.set); ret == nvml.SUCCESS {
			registered[g.gpu] = g
		} else {
			refused[g.uuid] = watchFailure("register for events", ret)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.registered, registered)
	l.refused = refused
}

// report sets which GPUs are watched, and why the others are not.
func (l *eventLoop) report() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uuid, g := range l.wanted {
		registered := l.registered[g.gpu].uuid == uuid
		l.counts.setWatched(uuid, registered && l.failure == nil, cmp.Or(l.failure, l.refused[uuid]))
	}
}

// find returns the GPU of a handle, the zero value where there is none.
func (l *eventLoop) find(gpu nvml.Device) watchedGPU {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.registered[gpu]
}

func (l *eventLoop) run() {
	defer close(l.finished)
	failed, pause := 0, time.Duration(0) // failed: calls in a row
	for !l.stopped(pause) {
		recorded, err := l.look()
		pause = clock.UntilNext(lookInterval)
		switch {
		case err == nil:
			failed = 0
			l.counts.receive()
			l.setFailure(nil)
			if recorded {
				pause = 0 // there may be others
			}
			continue
		case failed == 0: // it may have been interrupted
			failed = 1
			continue
		}
		l.setFailure(err)
		if failed > reconnectAfter {
			l.reconnect()
		}
		if l.stopped(min(replaceFirst<<(failed-1), replaceMost)) {
			return
		}
		failed, pause = min(failed+1, 10), 0
		l.calls.Lock()
		if err := l.replace(); err != nil {
			l.setFailure(err)
		}
		l.register()
		l.calls.Unlock()
	}
}

// look takes one event, if there is one, and reports whether it has recorded it. It fails
// if there is no event set. Without a GPU in the set there is nothing to look for.
func (l *eventLoop) look() (recorded bool, err error) {
	if l.set == nil {
		return false, l.failure
	}
	if l.empty() {
		return false, nil
	}
	event, ret := l.set.Wait(0)
	switch ret {
	case nvml.SUCCESS:
		g := l.find(event.Device)
		if g.gpu == nil || event.EventType != nvml.EventTypeXidCriticalError {
			return false, nil
		}
		l.record(g, event)
		return true, nil
	case nvml.ERROR_TIMEOUT:
		return false, nil
	default:
		return false, fmt.Errorf("wait for events: %w", ret)
	}
}

// empty reports whether no GPU's events are in the set.
func (l *eventLoop) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.registered) == 0
}

// setFailure sets why the set has no events, nil if it has, and reports it if it
// is new.
func (l *eventLoop) setFailure(err error) {
	l.mu.Lock()
	previous := l.failure
	l.failure = err
	l.mu.Unlock()
	if previous != nil || err != nil {
		l.report()
	}
}

// replace frees the set, and creates another one without GPUs. calls is locked,
// or the goroutine was not started.
func (l *eventLoop) replace() error {
	if l.set != nil {
		_ = l.set.Free() // nothing can be done about a set that stays
		l.set = nil
	}
	set, ret := l.library.EventSetCreate()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("create an event set: %w", ret)
	}
	l.set = set
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.registered)
	return nil
}

// stopped waits for the pause, and reports whether the loop has been stopped.
func (l *eventLoop) stopped(pause time.Duration) bool {
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-l.stop:
		case <-timer.C:
		}
	}
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// end stops the loop and frees its set. It reports whether that was
// possible: a call that does not return keeps both.
func (l *eventLoop) end() bool {
	close(l.stop)
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-l.finished:
	case <-timer.C:
		return false
	}
	if l.set != nil {
		_ = l.set.Free() // nothing can be done about a set that stays
	}
	return true
}

// record counts the XID of an event.
func (l *eventLoop) record(g watchedGPU, event nvml.EventData) {
	code := int(event.EventData)
	if code == fallenOffTheBus {
		g.lost.Store(true)
	}
	l.counts.record(g.uuid, event.GpuInstanceId, event.ComputeInstanceId, code)
}

// ended reports whether the goroutine has ended.
func (l *eventLoop) ended() bool {
	select {
	case <-l.finished:
		return true
	default:
		return false
	}
}
