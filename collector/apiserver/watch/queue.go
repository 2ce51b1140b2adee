package watch

import (
	"sync"
	"sync/atomic"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	// maxQueue is how many events of a watch are received before they are processed.
	// More wait unread in the connection.
	maxQueue = 100

	// maxQueueMemory is how much memory they may take, as fieldMemory estimates it. One
	// event is always received, however large it is.
	maxQueueMemory = 16 << 20

	// fieldMemory is the assumed memory of a field, besides its bytes. A field of two
	// bytes can become a structure of a thousand.
	fieldMemory = 256
)

// immediately is a time after the queue has room again. An event that is
// received within it is assumed to have waited in the connection.
const immediately = 100 * time.Millisecond

// backlog describes the events that wait in a queue to be processed.
type backlog struct {
	events int
	oldest clock.Instant // when the first was received; zero: there is none
}

// lag returns how far behind the watch is. pending is the time since which a
// processed event waits to be exported; zero: none waits.
func (b backlog) lag(now, pending clock.Instant) source.Queue {
	start := pending
	if !b.oldest.IsZero() && (start.IsZero() || b.oldest.Elapsed < start.Elapsed) {
		start = b.oldest
	}
	found := source.Queue{Watched: true, Events: b.events}
	if !start.IsZero() {
		found.Lag = max(0, now.Since(start))
	}
	return found
}

// eventQueue is a watch whose events are received as soon as they arrive, so that it
// is known how long they wait to be processed.
type eventQueue struct {
	from    apiwatch.Interface
	to      chan apiwatch.Event
	read    *atomic.Int64 // memory of all events that the connection has delivered
	observe func(backlog) // called at each change
	now     clock.Clock

	stop    sync.Once
	stopped chan struct{}
}

// queuedEvent is an event that waits.
type queuedEvent struct {
	event    apiwatch.Event
	received clock.Instant
	memory   int64
}

func newEventQueue(events apiwatch.Interface, read *atomic.Int64, now clock.Clock, observe func(backlog)) *eventQueue {
	q := &eventQueue{from: events, to: make(chan apiwatch.Event), read: read, observe: observe, now: now, stopped: make(chan struct{})}
	go q.run()
	return q
}

// ResultChan implements apiwatch.Interface.
func (q *eventQueue) ResultChan() <-chan apiwatch.Event { return q.to }

// Stop implements apiwatch.Interface.
func (q *eventQueue) Stop() {
	q.stop.Do(func() { close(q.stopped) })
	q.from.Stop()
}

// run passes events on until the watch has ended and all are processed, or until
// the queue is stopped.
func (q *eventQueue) run() {
	defer close(q.to)
	defer q.observe(backlog{})
	var waiting []queuedEvent
	var last, room clock.Instant // when the event before was received, and when there was room again
	var memory, counted int64    // of the events that wait, and of all that were received
	full, ended := false, false
	for !ended || len(waiting) > 0 {
		var results <-chan apiwatch.Event
		var out chan<- apiwatch.Event
		var next apiwatch.Event
		if !ended && !full {
			results = q.from.ResultChan()
		}
		if len(waiting) > 0 {
			out, next = q.to, waiting[0].event
		}
		select {
		case <-q.stopped:
			return
		case event, ok := <-results:
			if ended = !ok; ended {
				continue
			}
			// An event that arrives as soon as there is room may have been sent
			// right after the one before: the lag is counted from that one.
			if now := q.now(); room.IsZero() || now.Since(room) > immediately {
				last = now
			}
			read := q.read.Load()
			waiting = append(waiting, queuedEvent{event, last, read - counted})
			memory, counted = memory+read-counted, read
			full = len(waiting) == maxQueue || memory >= maxQueueMemory
		case out <- next:
			memory -= waiting[0].memory
			waiting[0] = queuedEvent{}
			waiting = waiting[1:]
			if full && (len(waiting) == 0 || memory < maxQueueMemory) {
				full, room = false, q.now()
			}
		}
		left := backlog{events: len(waiting)}
		if len(waiting) > 0 {
			left.oldest = waiting[0].received
		}
		q.observe(left)
	}
}
