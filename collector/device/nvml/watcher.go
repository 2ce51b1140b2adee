//go:build cgo

package nvml

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
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
	library nvml.Interface
	counts  *xidCounts

	loop *eventLoop // nil: no GPU is watched
	hung *eventLoop // an earlier one that has not ended; nil: none
}

// watch watches the GPUs that support it, and no others.
func (w *xidWatcher) watch(gpus []watchedGPU) {
	if w.hung != nil && w.hung.ended() {
		w.hung = nil
	}
	current := make(map[string]bool, len(gpus))
	for _, g := range gpus {
		registered := w.loop != nil && g.gpu != nil && w.loop.find(g.gpu).uuid == g.uuid
		w.counts.setWatched(g.uuid, g.gpu != nil && (registered || w.register(g)))
		current[g.uuid] = true
	}
	w.counts.unwatchExcept(current)
}

// register adds the XIDs of a GPU to the events that are waited for, and
// reports whether that was possible.
func (w *xidWatcher) register(g watchedGPU) bool {
	all, wait := eventFunctions()
	if w.hung != nil || !g.symbols.has(all...) || !g.symbols.any(wait...) {
		return false
	}
	types, ret := g.gpu.GetSupportedEventTypes()
	if ret != nvml.SUCCESS || types&nvml.EventTypeXidCriticalError == 0 {
		return false
	}
	if w.loop == nil {
		set, ret := w.library.EventSetCreate()
		if ret != nvml.SUCCESS {
			return false
		}
		w.loop = newEventLoop(set, w.counts)
	}
	if g.gpu.RegisterEvents(nvml.EventTypeXidCriticalError, w.loop.set) != nvml.SUCCESS {
		return false
	}
	w.loop.add(g)
	return true
}

// stop ends the event loop. One whose wait does not return is left behind,
// and no GPU is watched until it has ended.
func (w *xidWatcher) stop() {
	if w.loop != nil && !w.loop.end() {
		w.hung = w.loop
	}
	w.loop = nil
}

// waitTime is how long one call waits for events. An event ends it at once; it
// is short so that an event loop ends soon after it was stopped.
const waitTime = 100 * time.Millisecond

// stopTimeout is how long the end of an event loop is waited for. It lies
// within what a sampler grants to Close.
const stopTimeout = 3 * waitTime

// eventLoop waits for the events of one event set, in a goroutine of its own:
// a wait that never returns blocks that goroutine alone.
type eventLoop struct {
	set      nvml.EventSet
	counts   *xidCounts
	stop     chan struct{}
	finished chan struct{} // closed when the goroutine has ended; nil: it was not started

	mu   sync.Mutex
	gpus map[nvml.Device]watchedGPU // whose events are in the set
}

func newEventLoop(set nvml.EventSet, counts *xidCounts) *eventLoop {
	return &eventLoop{set: set, counts: counts, stop: make(chan struct{}), gpus: make(map[nvml.Device]watchedGPU)}
}

// add adds a GPU whose events are in the set, and starts to wait for them.
func (l *eventLoop) add(g watchedGPU) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gpus[g.gpu] = g
	if l.finished == nil {
		l.finished = make(chan struct{})
		go l.run()
	}
}

// find returns the GPU of a handle, the zero value where there is none.
func (l *eventLoop) find(gpu nvml.Device) watchedGPU {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gpus[gpu]
}

func (l *eventLoop) run() {
	defer close(l.finished)
	for {
		event, ret := l.set.Wait(uint32(waitTime.Milliseconds()))
		pause := time.Duration(0)
		switch ret {
		case nvml.SUCCESS:
			if g := l.find(event.Device); g.gpu != nil && event.EventType == nvml.EventTypeXidCriticalError {
				l.record(g, event)
			}
		case nvml.ERROR_TIMEOUT:
		default:
			pause = waitTime // a set that fails at once is not waited for without a pause
		}
		if l.stopped(pause) {
			return
		}
	}
}

// stopped waits for the pause, and reports whether the loop has been stopped.
func (l *eventLoop) stopped(pause time.Duration) bool {
	over := time.NewTimer(pause)
	defer over.Stop()
	select {
	case <-l.stop:
		return true
	case <-over.C:
	}
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// end stops the loop and frees its set. It reports whether that was
// possible: a wait that does not return keeps both.
func (l *eventLoop) end() bool {
	close(l.stop)
	if l.finished != nil {
		over := time.NewTimer(stopTimeout)
		defer over.Stop()
		select {
		case <-l.finished:
		case <-over.C:
			return false
		}
	}
	_ = l.set.Free() // nothing can be done about a set that stays
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
