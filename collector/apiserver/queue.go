package apiserver

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// maxQueue is how many events of a watch are received before they are processed.
// More wait unread in the connection.
const maxQueue = 100

// atOnce is how soon after there is room an event comes that has waited for it.
const atOnce = 100 * time.Millisecond

// queue is a watch whose events are received as soon as they come, so that it is
// known how long they wait to be processed.
type queue struct {
	from  watch.Interface
	to    chan watch.Event
	moved func(waiting int, oldest clock.Instant) // called at each change
	now   clock.Clock

	stop    sync.Once
	stopped chan struct{}
}

// queued is an event that waits.
type queued struct {
	event    watch.Event
	received clock.Instant
}

func newQueue(from watch.Interface, now clock.Clock, moved func(int, clock.Instant)) *queue {
	q := &queue{from: from, to: make(chan watch.Event), moved: moved, now: now, stopped: make(chan struct{})}
	go q.run()
	return q
}

// ResultChan implements watch.Interface.
func (q *queue) ResultChan() <-chan watch.Event { return q.to }

// Stop implements watch.Interface.
func (q *queue) Stop() {
	q.stop.Do(func() { close(q.stopped) })
	q.from.Stop()
}

// run moves events until the watch has ended and all are processed, or until
// nobody wants them.
func (q *queue) run() {
	defer close(q.to)
	defer q.moved(0, clock.Instant{})
	var waiting []queued
	var last, room clock.Instant // when the event before was received, and when there was room again
	full, ended := false, false
	for !ended || len(waiting) > 0 {
		var in <-chan watch.Event
		var out chan<- watch.Event
		var next watch.Event
		if !ended && len(waiting) < maxQueue {
			in = q.from.ResultChan()
		}
		if len(waiting) > 0 {
			out, next = q.to, waiting[0].event
		}
		select {
		case <-q.stopped:
			return
		case event, open := <-in:
			if ended = !open; ended {
				continue
			}
			// What comes as soon as there is room may have come right after the one
			// before it: as long as that goes on, the lag is counted from there.
			if now := q.now(); !full || now.Since(room) > atOnce {
				last = now
			}
			waiting = append(waiting, queued{event, last})
			full = len(waiting) == maxQueue
		case out <- next:
			if len(waiting) == maxQueue {
				room = q.now()
			}
			waiting[0] = queued{}
			waiting = waiting[1:]
		}
		oldest := clock.Instant{}
		if len(waiting) > 0 {
			oldest = waiting[0].received
		}
		q.moved(len(waiting), oldest)
	}
}

// moved takes note of the events that wait.
func (w *watched) moved(waiting int, oldest clock.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting, w.oldest = waiting, oldest
}

// checkLag finds, under the lock, how far behind the watch is. pending is since
// when something of it waits that was processed and is not shown yet; zero:
// nothing does. The source is impaired while that is too much, rather than
// showing what is old as if it were new.
func (w *watched) checkLag(now, pending clock.Instant) source.Queue {
	since := pending
	if !w.oldest.IsZero() && (since.IsZero() || w.oldest.Elapsed < since.Elapsed) {
		since = w.oldest
	}
	found := source.Queue{Watched: true, Events: w.waiting}
	if !since.IsZero() {
		found.Lag = max(0, now.Since(since))
	}
	switch lagging := w.limits.Lag > 0 && found.Lag > w.limits.Lag; {
	case !w.alive || lagging == w.lagging:
	case lagging:
		w.lagging = true
		w.tracker.Impair(&source.Failure{Reason: source.ReasonLagging, Err: fmt.Errorf(
			"watch %s: events have waited for more than %s to be processed: what is shown is older than that", w.resource, w.limits.Lag.Round(time.Second))})
	default:
		w.lagging = false
		w.tracker.Report(nil)
	}
	return found
}
