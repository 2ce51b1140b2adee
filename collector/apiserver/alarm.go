package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// start takes note of what ends the cycle that begins.
func (w *watched) start(giveUp context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.giveUp, w.beyond = giveUp, nil
}

// exceed gives the cycle up, because of a limit.
func (w *watched) exceed(beyond error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.beyond == nil {
		w.beyond = fmt.Errorf("watch %s: %w", w.resource, beyond)
		w.conclude(w.beyond)
		w.giveUp()
	}
}

func (w *watched) beyondLimit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.beyond
}

// uncount begins to count the objects of another list.
func (w *watched) uncount() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.received = 0
}

// count takes note of objects of a list or stream, and returns an error where
// those are more than there may be.
func (w *watched) count(more int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.received += more; w.limits.Objects > 0 && w.received > w.limits.Objects {
		return moreThan(w.limits.Objects)
	}
	return nil
}

// stop is called when the cycle has ended.
func (w *watched) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disarm()
}

// beginList sets no alarm: a list has a timeout of its own.
func (w *watched) beginList() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disarm()
	w.streaming, w.closes = false, clock.Instant{}
	w.measure()
}

// beginWatch begins to wait for an answer, and where the list is streamed
// for all of it. What a watch tells at first may have happened before it, if
// it does not follow one that ended at its time: a list takes a while, and a
// connection can be dead for long before anybody notices.
func (w *watched) beginWatch(streaming bool, timeoutSeconds *int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	w.streaming, w.caughtUp = streaming, now
	if orderly := !w.closes.IsZero() && now.Since(w.closes) > -time.Second; !streaming && !orderly {
		w.caughtUp = now.Add(watchPatience + catchUp) // at most, see answered
	}
	w.closes = clock.Instant{}
	if timeoutSeconds != nil {
		w.closes = now.Add(time.Duration(*timeoutSeconds) * time.Second)
	}
	if streaming {
		w.received = 0
		w.measure()
	}
	w.arm(watchPatience, w.silence())
}

func (w *watched) silence() error {
	return fmt.Errorf("watch %s: no answer: %w", w.resource, context.DeadlineExceeded)
}

// measure begins an attempt, unless one is going on.
func (w *watched) measure() {
	if w.end == nil {
		w.end = w.tracker.Begin()
	}
}

// answered is called when a watch has been opened. A stream has then told
// nothing yet.
func (w *watched) answered(streaming bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = w.now()
	w.caughtUp = earlier(w.caughtUp, w.opened.Add(catchUp))
	if w.unfinished = streaming; !streaming {
		w.conclude(nil)
	}
}

// abandonStream reports whether the last stream did not bring its list to
// an end; the one after the next may try again.
func (w *watched) abandonStream() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	unfinished := w.unfinished
	w.unfinished = false
	return unfinished
}

func (w *watched) untilNextWatch() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened.IsZero() {
		return 0
	}
	return watchSpacing - w.now().Since(w.opened)
}

// replaced is called once a list has been taken over. Only a streamed one
// is sure to be followed by a watch. What has happened while a long one came
// has waited behind it.
func (w *watched) replaced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listed = true
	if w.streaming {
		w.unfinished = false
		if now := w.now(); now.Since(w.opened) > catchUp {
			w.caughtUp = now.Add(catchUp)
		}
		w.conclude(nil)
	}
}

// progress is called at each object of a stream that has not brought its list
// to an end: as long as some come, it is waited for.
func (w *watched) progress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unfinished && w.alarm != nil {
		w.arm(watchPatience, w.silence())
	}
}

// prompt reports whether what the watch tells now has happened just now.
func (w *watched) prompt() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now().Since(w.caughtUp) >= 0
}

func earlier(a, b clock.Instant) clock.Instant {
	if a.Elapsed < b.Elapsed {
		return a
	}
	return b
}

// heard is called at each event and bookmark of an open watch.
func (w *watched) heard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alive {
		w.arm(watchSilence, nil)
	}
}

func (w *watched) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conclude(err)
}

// conclude notes, under the lock, how an attempt ended.
func (w *watched) conclude(err error) {
	end := w.end
	if end == nil {
		end = w.tracker.Report
	}
	if w.absent = w.optional && errors.Is(err, errNotServed); !w.absent {
		end(failure(cause(err)))
	}
	w.end, w.alive, w.lagging = nil, err == nil, false
	if w.alive {
		w.arm(watchSilence, nil)
	} else {
		w.disarm()
	}
	w.turned(w.alive)
}

// arm makes, under the lock, the alarm give the cycle up after a time, in
// place of what it was set to. Without a failure the source stays as it is:
// the API server promises no bookmarks where nothing changes at all, so a
// silent watch may be a good one, and the list of the next cycle will tell.
func (w *watched) arm(wait time.Duration, failure error) {
	w.disarm()
	giveUp := w.giveUp
	var alarm *time.Timer
	alarm = time.AfterFunc(wait, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.alarm != alarm {
			return // it was set anew while it rang
		}
		w.alarm = nil
		if failure != nil {
			w.conclude(failure)
		}
		giveUp()
	})
	w.alarm = alarm
}

func (w *watched) disarm() {
	if w.alarm != nil {
		w.alarm.Stop()
		w.alarm = nil
	}
}
