package watch

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// laggingWatch returns a session that is up, and a queue whose events the test
// receives.
func laggingWatch(now clock.Clock, events *apiwatch.FakeWatcher) (*watchSession, *eventQueue) {
	tracker := source.NewTracker("pods", slog.New(slog.DiscardHandler), now, nil)
	s := newWatchSession(Options{Clock: now, Tracker: tracker}, &CollectionReader{Client: &Client{limits: Limits{}.orDefault()}, Resource: "pods"})
	s.alive = true
	tracker.Report(nil)
	return s, newEventQueue(events, new(atomic.Int64), now, s.observeQueue)
}

// The lag counts from the arrival of the oldest event that is not processed,
// including events that do not fit into the queue. A long lag impairs the
// source until the events are processed.
func TestLagOfAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := clock.System()
		events := apiwatch.NewFakeWithChanSize(1000, false)
		w, q := laggingWatch(now, events)
		status := func() source.Status { synctest.Wait(); got, _ := w.Status(now(), clock.Instant{}); return got }
		if got := status(); !got.Up || got.Queue != (source.Queue{Watched: true}) {
			t.Errorf("with nothing to do: %+v", got)
		}
		for range 400 {
			events.Add(&corev1.Pod{})
		}
		synctest.Wait()
		for taken := range 400 { // one a second: it lags by as many seconds
			got := status()
			if want := min(maxQueue, 400-taken); got.Queue.Events != want || got.Queue.Lag != time.Duration(taken)*time.Second {
				t.Fatalf("after %d events: %+v, want %d events", taken, got.Queue, want)
			}
			if late := taken > 10; late != (got.Reason == source.ReasonLagging) || late != strings.Contains(got.Message, "more than 10s") || late != (now().Since(got.LastSuccess) > 0) {
				t.Fatalf("after %d events: %+v", taken, got)
			}
			<-q.ResultChan()
			time.Sleep(time.Second)
		}
		if got := status(); !got.Up || got.Reason != source.ReasonNone || got.Queue.Lag != 0 || got.Errors != 1 {
			t.Errorf("when all are processed: %+v", got)
		}
		events.Add(&corev1.Pod{})
		time.Sleep(time.Second)
		if got := status(); got.Queue.Lag != time.Second {
			t.Errorf("one more: %+v", got.Queue)
		}
		// What was processed and is not exported counts likewise.
		<-q.ResultChan()
		synctest.Wait()
		if got, _ := w.Status(now(), now().Add(-11*time.Second)); got.Reason != source.ReasonLagging || got.Queue.Events != 0 {
			t.Errorf("with a page that is behind: %+v", got)
		}
		q.Stop()
		q.Stop()
		for range q.ResultChan() {
		}
	})
}

// A watch that ends delivers the events before its end.
func TestQueueOfEndedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := apiwatch.NewFakeWithChanSize(1000, false)
		_, q := laggingWatch(clock.System(), events)
		for range 300 {
			events.Add(&corev1.Pod{})
		}
		events.Stop()
		passed := 0
		for range q.ResultChan() {
			passed++
		}
		if passed != 300 {
			t.Errorf("%d events were passed on, want 300", passed)
		}
		q.Stop()
	})
}

// However large the events of a watch are, what waits of them takes a bounded amount of
// memory, and one waits at least. Their lag counts from when they would have been received.
func TestQueueOfLargeEvents(t *testing.T) {
	for name, c := range map[string]struct{ memory, waiting int64 }{
		"ordinary":             {50 << 10, maxQueue},
		"large":                {4 << 20, 4},
		"not a divisor":        {5 << 20, 4},
		"larger than a queue":  {100 << 20, 1},
		"nothing is known yet": {0, maxQueue},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := clock.System()
				events := &largeEvents{to: make(chan apiwatch.Event), stopped: make(chan struct{}), memory: c.memory}
				go events.run()
				w, idle := laggingWatch(now, apiwatch.NewFake())
				idle.Stop()
				synctest.Wait()
				q := newEventQueue(events, &events.read, now, w.observeQueue)
				for taken := range 300 {
					synctest.Wait()
					got, _ := w.Status(now(), clock.Instant{})
					// What is read of the next event may be counted for the one before.
					if n := int64(got.Queue.Events); n < max(1, c.waiting-1) || n > min(c.waiting+1, maxQueue) || got.Queue.Lag != time.Duration(taken)*time.Second {
						t.Fatalf("after %d events, %d wait for %s, want about %d", taken, got.Queue.Events, got.Queue.Lag, c.waiting)
					}
					<-q.ResultChan()
					time.Sleep(time.Second)
				}
				q.Stop()
				for range q.ResultChan() {
				}
			})
		})
	}
}

// largeEvents is a watch that has always another event.
type largeEvents struct {
	to      chan apiwatch.Event
	stopped chan struct{}
	memory  int64
	read    atomic.Int64
}

func (l *largeEvents) run() {
	for {
		l.read.Add(l.memory)
		select {
		case l.to <- apiwatch.Event{Type: apiwatch.Added, Object: &corev1.Pod{}}:
		case <-l.stopped:
			return
		}
	}
}

func (l *largeEvents) ResultChan() <-chan apiwatch.Event { return l.to }

func (l *largeEvents) Stop() { close(l.stopped) }
