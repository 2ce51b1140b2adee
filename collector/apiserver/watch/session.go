package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	answerTimeout  = 10 * time.Second // of the answer to a watch, and between the objects of a streamed list
	silenceTimeout = 3 * time.Minute  // of an open watch; a bookmark comes about every minute
	watchInterval  = time.Second      // from the start of one watch to that of the next
	catchUpTime    = time.Second      // after a gap: events that a watch delivers until then may have happened in it
)

// Options of a Watcher.
type Options struct {
	Clock   clock.Clock
	Tracker *source.Tracker
	Changed func(alive bool) // called at every success and failure; it must not call the Watcher
}

// watchSession is the state of the watch of one collection: whether the collection is
// known and up to date, and the status of its source.
//
// The watch is alive from the moment when a list is complete and a watch
// continues it, until an attempt to list or watch again fails. A watch that
// ends, and can be continued, leaves it alive.
//
// A cycle is a list and the watches that continue from it. A watchdog cancels a
// cycle that makes no progress. A session is safe for concurrent use.
type watchSession struct {
	resource string
	tracker  *source.Tracker
	now      clock.Clock
	limits   Limits
	optional bool             // the API server may not serve it: that is no failure
	changed  func(alive bool) // called at every success and failure, under the lock

	mu         sync.Mutex
	watchdog   watchdog
	cancel     context.CancelFunc // ends the cycle
	exceeded   error              // a limit that the cycle has exceeded
	end        func(error)        // ends the attempt in progress; nil: there is none
	streaming  bool               // the list is streamed by the watch
	incomplete bool               // the last stream was opened, but its list is not complete
	received   int                // objects of the present list or stream
	alive      bool
	listed     bool          // at least once
	absent     bool          // it is optional and not served
	opened     clock.Instant // the last watch
	closes     clock.Instant // when the API server ends that; zero: it has no end, or there is none
	liveFrom   clock.Instant // events that are delivered from then on have just happened
	backlog    backlog       // events that are received and not processed
	lagging    bool          // and the tracker was impaired for it
}

func newWatchSession(options Options, source *CollectionReader) *watchSession {
	s := &watchSession{
		resource: source.Resource, tracker: options.Tracker, now: options.Clock,
		limits: source.Client.limits, optional: source.Optional, changed: options.Changed,
	}
	s.watchdog.lock = &s.mu
	return s
}

// begin begins a cycle, which cancel ends.
func (s *watchSession) begin(cancel context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel, s.exceeded = cancel, nil
}

// stop is called when the cycle has ended.
func (s *watchSession) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchdog.stop()
}

// exceed cancels the cycle because of a limit.
func (s *watchSession) exceed(limit error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exceeded == nil {
		s.exceeded = fmt.Errorf("watch %s: %w", s.resource, limit)
		s.conclude(s.exceeded)
		s.cancel()
	}
}

// exceededLimit returns the limit that the cycle has exceeded; nil: none.
func (s *watchSession) exceededLimit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exceeded
}

// beginList begins a list, or its next page. It sets no watchdog: the request
// has a timeout.
func (s *watchSession) beginList(continued bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchdog.stop()
	s.streaming, s.closes = false, clock.Instant{}
	s.beginAttempt()
	if !continued {
		s.received = 0
	}
}

// count adds objects of the list or stream, and returns an error if there are
// more than the limit.
func (s *watchSession) count(objects int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.received += objects; s.limits.Objects > 0 && s.received > s.limits.Objects {
		return tooManyObjects(s.limits.Objects)
	}
	return nil
}

// beginWatch begins to wait for the answer to a watch, and for its list if that
// is streamed. Events that a watch delivers at first may have happened before,
// unless it follows one that ended at its time: a list takes a while, and a
// connection can be dead for long before that is detected.
func (s *watchSession) beginWatch(streaming bool, timeoutSeconds *int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.streaming, s.liveFrom = streaming, now
	if onTime := !s.closes.IsZero() && now.Since(s.closes) > -time.Second; !streaming && !onTime {
		s.liveFrom = now.Add(answerTimeout + catchUpTime) // at most, see answered
	}
	s.closes = clock.Instant{}
	if timeoutSeconds != nil {
		s.closes = now.Add(time.Duration(*timeoutSeconds) * time.Second)
	}
	if streaming {
		s.received = 0
		s.beginAttempt()
	}
	s.expectAnswer()
}

// beginAttempt begins, under the lock, an attempt, unless one is in progress.
func (s *watchSession) beginAttempt() {
	if s.end == nil {
		s.end = s.tracker.Begin()
	}
}

// answered is called when a watch has been opened. If it is a stream, it has
// not delivered its list yet.
func (s *watchSession) answered(streaming bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = s.now()
	if latest := s.opened.Add(catchUpTime); latest.Elapsed <= s.liveFrom.Elapsed {
		s.liveFrom = latest
	}
	if s.incomplete = streaming; !streaming {
		s.conclude(nil)
	}
}

// abandonStream reports whether the last stream did not complete its list; the
// one after the next may try again.
func (s *watchSession) abandonStream() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	incomplete := s.incomplete
	s.incomplete = false
	return incomplete
}

func (s *watchSession) untilNextWatch() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened.IsZero() {
		return 0
	}
	return watchInterval - s.now().Since(s.opened)
}

// completed is called once all of a list has been applied. Only a streamed list
// is certain to be continued by a watch. If sending it takes long, the events
// of that time wait behind it.
func (s *watchSession) completed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = true
	if s.streaming {
		s.incomplete = false
		if now := s.now(); now.Since(s.opened) > catchUpTime {
			s.liveFrom = now.Add(catchUpTime)
		}
		s.conclude(nil)
	}
}

// observeObject is called at each object of a streamed list: the next has its
// own timeout.
func (s *watchSession) observeObject() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.incomplete && s.watchdog.timer != nil {
		s.expectAnswer()
	}
}

// observeEvent is called at each event and bookmark of an open watch.
func (s *watchSession) observeEvent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive {
		s.expectEvent()
	}
}

// observeQueue is called when events were received or processed.
func (s *watchSession) observeQueue(waiting backlog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backlog = waiting
}

// live reports whether an event that the watch delivers now has just happened.
func (s *watchSession) live() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now().Since(s.liveFrom) >= 0
}

// Fail ends the attempt in progress with a failure.
func (s *watchSession) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conclude(err)
}

// conclude ends, under the lock, the attempt with its outcome.
func (s *watchSession) conclude(err error) {
	end := s.end
	if end == nil {
		end = s.tracker.Report
	}
	if s.absent = s.optional && errors.Is(err, errNotServed); !s.absent {
		end(Failure(unwrapError(err)))
	}
	s.end, s.alive, s.lagging = nil, err == nil, false
	if s.alive {
		s.expectEvent()
	} else {
		s.watchdog.stop()
	}
	s.changed(s.alive)
}

// expectAnswer sets, under the lock, the watchdog to fail and cancel the cycle.
func (s *watchSession) expectAnswer() {
	cancel := s.cancel
	s.watchdog.set(answerTimeout, func() {
		s.conclude(fmt.Errorf("watch %s: no answer: %w", s.resource, context.DeadlineExceeded))
		cancel()
	})
}

// expectEvent sets, under the lock, the watchdog to cancel the cycle. The source
// stays as it is: the API server guarantees no bookmarks while nothing changes,
// so a silent watch may be intact, and the list of the next cycle shows it.
func (s *watchSession) expectEvent() {
	cancel := s.cancel
	s.watchdog.set(silenceTimeout, func() { cancel() })
}

// Aside reports the outcome of a request that was sent beside the watch. It
// impairs the source; it does not end the watch.
func (s *watchSession) Aside(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.alive:
	case err != nil:
		s.tracker.Impair(Failure(err))
	case s.tracker.Status().Reason != source.ReasonNone:
		s.tracker.Report(nil)
	}
}

// checkLag returns, under the lock, the state of the queue, and impairs the
// source while its lag is beyond the limit. pending is as in Status.
func (s *watchSession) checkLag(now, pending clock.Instant) source.Queue {
	found := s.backlog.lag(now, pending)
	switch lagging := s.limits.Lag > 0 && found.Lag > s.limits.Lag; {
	case !s.alive || lagging == s.lagging:
	case lagging:
		s.lagging = true
		s.tracker.Impair(&source.Failure{Reason: source.ReasonLagging, Err: fmt.Errorf(
			"watch %s: events have been queued for more than %s: the exported data is older than that", s.resource, s.limits.Lag.Round(time.Second))})
	default:
		s.lagging = false
		s.tracker.Report(nil)
	}
	return found
}

// Status is the status of the source. While a watch is open, its last success
// is now: if there are no events, nothing has changed. pending is the time
// since which a processed event waits to be exported; zero: none waits. served
// is false while the collection is optional and not known to be served.
func (s *watchSession) Status(now, pending clock.Instant) (status source.Status, served bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.checkLag(now, pending)
	status = s.tracker.Status()
	status.Queue = queue
	if s.alive {
		status.LastSuccess = now
	}
	if s.alive && s.lagging {
		status.LastSuccess = now.Add(-queue.Lag)
	}
	return status, !s.absent && (!s.optional || status.Up || status.Errors > 0)
}

// Listed reports whether the collection was known as a whole.
func (s *watchSession) Listed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// Settled reports whether the collection was known as a whole, cannot be read,
// or is not served.
func (s *watchSession) Settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed || s.absent || s.tracker.Status().Errors > 0
}
