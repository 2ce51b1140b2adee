//go:build cgo

package nvml

import (
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// waitTime is how long one call waits for events. An event ends it at once; it
// is short so that a listener that shall end does so soon.
const waitTime = 100 * time.Millisecond

// endPatience is how long a listener that shall end is waited for. It lies
// within what a sampler grants to Close.
const endPatience = 3 * waitTime

// listener waits for the events of one event set, in a goroutine of its own:
// a wait that never returns parks that one alone.
type listener struct {
	set   nvml.EventSet
	hear  func(r *reader, event nvml.EventData)
	stop  chan struct{}
	ended chan struct{} // closed when the goroutine has ended; nil: it was not begun

	mu   sync.Mutex
	gpus map[nvml.Device]*reader // whose events are in the set
}

func newListener(set nvml.EventSet, hear func(*reader, nvml.EventData)) *listener {
	return &listener{set: set, hear: hear, stop: make(chan struct{}), gpus: make(map[nvml.Device]*reader)}
}

// add makes known that the events of a GPU come from now on, and begins to
// wait for them.
func (l *listener) add(gpu nvml.Device, r *reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gpus[gpu] = r
	if l.ended == nil {
		l.ended = make(chan struct{})
		go l.run()
	}
}

// of is the reader of the GPU behind a handle, nil where there is none.
func (l *listener) of(gpu nvml.Device) *reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gpus[gpu]
}

func (l *listener) run() {
	defer close(l.ended)
	for {
		event, ret := l.set.Wait(uint32(waitTime.Milliseconds()))
		pause := time.Duration(0)
		switch ret {
		case nvml.SUCCESS:
			if r := l.of(event.Device); r != nil && event.EventType == nvml.EventTypeXidCriticalError {
				l.hear(r, event)
			}
		case nvml.ERROR_TIMEOUT:
		default:
			pause = waitTime // a set that fails at once is not asked without end
		}
		if l.stopped(pause) {
			return
		}
	}
}

// stopped waits for the pause, and reports whether the listener shall end.
func (l *listener) stopped(pause time.Duration) bool {
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

// end ends the listener and frees its set. It reports whether that was
// possible: a wait that does not return keeps both.
func (l *listener) end() bool {
	close(l.stop)
	if l.ended != nil {
		over := time.NewTimer(endPatience)
		defer over.Stop()
		select {
		case <-l.ended:
		case <-over.C:
			return false
		}
	}
	_ = l.set.Free() // nothing can be done about a set that stays
	return true
}

// hung reports whether the goroutine has not ended.
func (l *listener) hung() bool {
	select {
	case <-l.ended:
		return false
	default:
		return true
	}
}
