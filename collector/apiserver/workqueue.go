package apiserver

import (
	"context"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// workqueue returns which key to read next: each key has a time at which it is due,
// and is never read by two readers at once. It is not safe for concurrent use.
type workqueue[K comparable] struct {
	items  map[K]*queuedItem
	urgent func(K) bool // goes before what has been due longer
}

// queuedItem is the entry of a key. Its address identifies the entry: a key can
// be removed and added again while it is read.
type queuedItem struct {
	due  time.Duration // elapsed time of the clock
	busy bool
}

func newWorkqueue[K comparable](urgent func(K) bool) *workqueue[K] {
	return &workqueue[K]{items: make(map[K]*queuedItem), urgent: urgent}
}

// set sets when a key is due; a key that is being read is not due before done.
func (q *workqueue[K]) set(key K, due time.Duration) {
	if item, found := q.items[key]; found {
		item.due = due
		return
	}
	q.items[key] = &queuedItem{due: due}
}

// advance makes a key due at the given time at the latest.
func (q *workqueue[K]) advance(key K, due time.Duration) {
	if item, found := q.items[key]; found {
		item.due = min(item.due, due)
	}
}

func (q *workqueue[K]) remove(key K) { delete(q.items, key) }

// maxWait is how long a worker waits if nothing is due.
const maxWait = time.Hour

// begin takes the key that has been due longest, urgent ones first. If none is
// due, item is nil and wait is the time until one will be, at most maxWait.
func (q *workqueue[K]) begin(now clock.Instant) (key K, item *queuedItem, wait time.Duration) {
	wait = maxWait
	urgent := false
	for candidate, entry := range q.items {
		left := entry.due - now.Elapsed
		if entry.busy || left >= maxWait {
			continue
		}
		urgentNow := left <= 0 && q.urgent(candidate)
		if urgentNow == urgent && left < wait || urgentNow && !urgent {
			key, item, wait, urgent = candidate, entry, left, urgentNow
		}
	}
	if item == nil || wait > 0 {
		return key, nil, wait
	}
	item.busy = true
	return key, item, 0
}

// done ends a read. It reports whether the key is still wanted.
func (q *workqueue[K]) done(key K, item *queuedItem) bool {
	item.busy = false
	return q.items[key] == item
}

// worker reads what is due in a workqueue: a limited number of reads at a time,
// and a limited number of starts in a time, so that neither a start of the agent
// nor the return of the API server causes a burst of requests.
type worker struct {
	parallel int
	interval time.Duration // between two starts
	wake     chan struct{} // capacity 1: the workqueue has changed

	// next takes what is due and returns its read, or nil and how long nothing
	// will be due.
	next func() (read func(ctx context.Context), wait time.Duration)
}

// run returns after ctx has ended and all reads have returned.
func (w *worker) run(ctx context.Context) {
	var reads sync.WaitGroup
	defer reads.Wait()
	slots := make(chan struct{}, w.parallel)
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		read, wait := w.next()
		if read == nil {
			<-slots
			w.wait(ctx, wait)
			continue
		}
		reads.Go(func() {
			defer signal(w.wake)
			defer func() { <-slots }()
			read(ctx)
		})
		watch.Sleep(ctx, w.interval)
	}
}

// wait returns when the workqueue has changed, or after the duration.
func (w *worker) wait(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.wake:
	case <-ctx.Done():
	}
}

// signal sends to a channel of capacity 1, unless something is in it.
func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
