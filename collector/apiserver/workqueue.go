package apiserver

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	if item, ok := q.items[key]; ok {
		item.due = due
		return
	}
	q.items[key] = &queuedItem{due: due}
}

// advance makes a key due at the given time at the latest.
func (q *workqueue[K]) advance(key K, due time.Duration) {
	if item, ok := q.items[key]; ok {
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

// worker reads what is due in a workqueue, at its pace.
type worker struct {
	now  clock.Clock
	pace *readPace
	wake chan struct{} // capacity 1: the workqueue or the pace has changed

	// next takes what is due and returns its read, or nil and how long nothing
	// will be due. The read returns its failure.
	next func() (read func(ctx context.Context) error, wait time.Duration)
}

func newWorker(now clock.Clock, pace *readPace, next func() (func(ctx context.Context) error, time.Duration)) *worker {
	return &worker{now: now, pace: pace, wake: make(chan struct{}, 1), next: next}
}

// run returns after ctx has ended and all reads have returned.
func (w *worker) run(ctx context.Context) {
	var reads sync.WaitGroup
	defer reads.Wait()
	for ctx.Err() == nil {
		if wait := w.pace.wait(w.now()); wait > 0 {
			w.wait(ctx, wait)
			continue
		}
		read, wait := w.next()
		if read == nil {
			w.wait(ctx, wait)
			continue
		}
		began := w.now()
		w.pace.begin(began)
		reads.Go(func() {
			err := read(ctx)
			w.pace.end(w.now(), began, err)
			signal(w.wake)
		})
	}
}

// resume ends a pause after failures: the API server can be reached again.
func (w *worker) resume() {
	w.pace.resume()
	signal(w.wake)
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

// readPace limits the reads of a worker, so that many nodes that start together, or
// whose API server comes back, do not overload it:
//
//   - At first two reads run at once. Each quick answer allows one more, up to a
//     limit, and each slow one halves them: while the API server is busy, a node
//     has one read in flight, and a free one answers all of them in milliseconds.
//   - After a failure that may pass by itself the worker pauses, for a random time
//     that doubles with each failure in a row and is at least what the API server
//     asks for. A rejected request is quick, so that the number in flight alone
//     would not limit them. That an object is missing or may not be read is an
//     answer.
//   - gap is the time from one start to the next, whatever the answers are.
//
// It is safe for concurrent use.
type readPace struct {
	most   int
	gap    time.Duration
	jitter func(limit time.Duration) time.Duration // random, in [0, limit)

	mu       sync.Mutex
	limit    int // of reads at once
	running  int
	failures int           // in a row
	next     time.Duration // elapsed time of the clock before which nothing starts
	pause    time.Duration // the same, after failures
}

const (
	firstReads = 2                     // at once
	slowAnswer = time.Second           // an API server that takes this long is busy
	firstPause = 50 * time.Millisecond // after a failure
	lastPause  = 10 * time.Second
)

func newReadPace(most int, gap time.Duration, jitter func(time.Duration) time.Duration) *readPace {
	return &readPace{most: most, gap: gap, jitter: jitter, limit: min(most, firstReads)}
}

// wait is how long no read may start; maxWait: until one ends.
func (p *readPace) wait(now clock.Instant) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running >= p.limit {
		return maxWait
	}
	return max(0, p.next-now.Elapsed, p.pause-now.Elapsed)
}

// begin begins a read.
func (p *readPace) begin(now clock.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running++
	p.next = now.Elapsed + p.gap
}

// end ends a read that began at a time, with its failure.
func (p *readPace) end(now, began clock.Instant, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	switch slow := now.Since(began) >= slowAnswer; {
	case err != nil && !watch.IsPermanent(err):
		pause := lastPause
		if p.failures < 8 { // 50 ms doubled eight times is more than lastPause
			pause = firstPause << p.failures
		}
		p.failures++
		least := pause / 2
		if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
			least = max(least, min(lastPause, time.Duration(seconds)*time.Second))
		}
		p.limit, p.pause = 1, now.Elapsed+least+p.jitter(pause/2)
	case slow:
		p.limit, p.failures = max(1, p.limit/2), 0
	default:
		p.limit, p.failures = min(p.most, p.limit+1), 0
	}
}

// resume ends a pause after failures.
func (p *readPace) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures, p.pause = 0, 0
}
