package watch

import (
	"sync"
	"time"
)

// watchdog calls a function after a time, unless it is set again or stopped
// before. Its methods are called under the lock, and so is the function.
type watchdog struct {
	lock  sync.Locker
	timer *time.Timer // nil: it is not set
}

func (w *watchdog) set(wait time.Duration, expired func()) {
	w.stop()
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		w.lock.Lock()
		defer w.lock.Unlock()
		if w.timer != timer {
			return // it was set again or stopped while this call waited for the lock
		}
		w.timer = nil
		expired()
	})
	w.timer = timer
}

func (w *watchdog) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}
