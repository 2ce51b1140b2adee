package watch

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// scripted is a fake API server with an empty collection of pods. Its watches
// follow the script, in order; the last entry repeats.
type scripted struct {
	script   []func(context.Context) (apiwatch.Interface, error)
	listable bool // else lists fail

	mu      sync.Mutex
	watches int
	changes []bool // whether alive, at each success and failure
}

// start runs a Watcher of the collection in the synctest bubble of the test.
func (s *scripted) start(ctx context.Context) (w *Watcher, ended chan struct{}) {
	changed := func(alive bool) { s.mu.Lock(); s.changes = append(s.changes, alive); s.mu.Unlock() }
	w = testWatcher(changed, s.watch)
	w.list = func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		if s.listable {
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		}
		return nil, apierrors.NewGenericServerResponse(http.StatusInternalServerError, "list", schema.GroupResource{}, "", "", 0, true)
	}
	ended = make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	return w, ended
}

// testWatcher returns a Watcher of pods that opens watches by a function.
func testWatcher(changed func(alive bool), open func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)) *Watcher {
	now := clock.System()
	tracker := source.NewTracker("pods", slog.New(slog.DiscardHandler), now, nil)
	w := New(Options{Clock: now, Tracker: tracker, Changed: changed}, &CollectionReader{Resource: "pods", Client: &Client{}}, podStore())
	w.watch = open
	return w
}

// podStore keeps the resource versions of pods.
func podStore() *Store[*corev1.Pod, string] {
	return NewStore(&sync.Mutex{}, Decoder[*corev1.Pod, string]{
		Decode: func(pod *corev1.Pod) (string, bool) { return pod.ResourceVersion, true },
		Strip:  func(pod *corev1.Pod) *corev1.Pod { return pod },
		Apply:  func(Event[*corev1.Pod, string]) {},
		Flush:  func() {},
	})
}

func (s *scripted) watch(ctx context.Context, _ metav1.ListOptions) (apiwatch.Interface, error) {
	s.mu.Lock()
	next := s.script[min(s.watches, len(s.script)-1)]
	s.watches++
	s.mu.Unlock()
	return next(ctx)
}

// state returns the number of watches so far, and whether the watch is up.
func (s *scripted) state() (watches int, alive bool) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches, len(s.changes) > 0 && s.changes[len(s.changes)-1]
}

// stream returns a watch that delivers the events, and then nothing until it is
// ended.
func stream(events ...apiwatch.Event) func(context.Context) (apiwatch.Interface, error) {
	return func(ctx context.Context) (apiwatch.Interface, error) {
		opened := apiwatch.NewFakeWithChanSize(len(events), false)
		for _, event := range events {
			opened.Action(event.Type, event.Object)
		}
		context.AfterFunc(ctx, opened.Stop)
		return opened, nil
	}
}

// ending returns a watch that delivers the events and ends.
func ending(events ...apiwatch.Event) func(context.Context) (apiwatch.Interface, error) {
	return func(ctx context.Context) (apiwatch.Interface, error) {
		opened, err := stream(events...)(ctx)
		opened.Stop()
		return opened, err
	}
}

// unanswered never answers.
func unanswered(ctx context.Context) (apiwatch.Interface, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func bookmark() apiwatch.Event {
	return apiwatch.Event{Type: apiwatch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}}
}

// listed returns the bookmark that ends a streamed list.
func listed() apiwatch.Event {
	mark := bookmark()
	mark.Object.(*corev1.Pod).Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return mark
}

func problem(err *apierrors.StatusError) apiwatch.Event {
	status := err.Status()
	return apiwatch.Event{Type: apiwatch.Error, Object: &status}
}

// running runs a test in a synctest bubble, with a Watcher of the script until
// the test ends.
func running(t *testing.T, s *scripted, test func(*testing.T, *Watcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w, ended := s.start(ctx)
		test(t, w)
		cancel()
		<-ended
	})
}

func TestStreamThatStopsBeforeItsListIsComplete(t *testing.T) {
	s := &scripted{script: []func(context.Context) (apiwatch.Interface, error){
		stream(listed(), problem(apierrors.NewResourceExpired("old"))), stream(), stream(listed()),
	}}
	running(t, s, func(t *testing.T, w *Watcher) {
		time.Sleep(5 * time.Second)
		if watches, alive := s.state(); watches != 2 || !alive {
			t.Errorf("while the second stream may still come: %d watches, alive %v", watches, alive)
		}
		time.Sleep(answerTimeout - 4*time.Second)
		if _, alive := s.state(); alive || statusOf(w).Errors == 0 {
			t.Errorf("alive %v, %+v", alive, statusOf(w))
		}
		time.Sleep(maxDelay * 4)
		if watches, alive := s.state(); watches != 3 || !alive {
			t.Errorf("it does not recover: %d watches, alive %v", watches, alive)
		}
	})
}

func TestUnansweredWatch(t *testing.T) {
	s := &scripted{script: []func(context.Context) (apiwatch.Interface, error){ending(listed(), bookmark()), unanswered, stream(listed())}}
	running(t, s, func(t *testing.T, w *Watcher) {
		time.Sleep(answerTimeout - time.Second)
		if watches, alive := s.state(); watches != 2 || !alive {
			t.Errorf("given up too early: %d watches, alive %v", watches, alive)
		}
		time.Sleep(time.Second + watchInterval + firstDelay/2)
		if _, alive := s.state(); alive || statusOf(w).Reason != source.ReasonTimeout || statusOf(w).Errors != 1 {
			t.Errorf("after %v: alive %v, %+v", answerTimeout, alive, statusOf(w))
		}
		time.Sleep(2 * maxDelay)
		if watches, alive := s.state(); watches != 3 || !alive {
			t.Errorf("it does not recover: %d watches, alive %v", watches, alive)
		}
	})
}

func TestStreamsThatEndBeforeTheirListIsComplete(t *testing.T) {
	for name, listable := range map[string]bool{"lists fail": false, "lists succeed": true} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{script: []func(context.Context) (apiwatch.Interface, error){ending(bookmark())}, listable: listable}
			running(t, s, func(t *testing.T, _ *Watcher) {
				time.Sleep(time.Minute)
				if watches, alive := s.state(); watches < 5 || watches > 100 || alive != listable {
					t.Errorf("%d watches in a minute, alive %v", watches, alive)
				}
			})
		})
	}
}

func TestWatchesThatEndImmediately(t *testing.T) {
	s := &scripted{script: []func(context.Context) (apiwatch.Interface, error){ending(listed(), bookmark()), ending(bookmark())}}
	running(t, s, func(t *testing.T, _ *Watcher) {
		time.Sleep(time.Minute)
		if watches, alive := s.state(); watches < 50 || watches > 65 || !alive {
			t.Errorf("%d watches in a minute, alive %v", watches, alive)
		}
	})
}

func TestSilentWatch(t *testing.T) {
	t.Run("while nothing changes at all", func(t *testing.T) {
		s := &scripted{script: []func(context.Context) (apiwatch.Interface, error){stream(listed())}}
		running(t, s, func(t *testing.T, w *Watcher) {
			time.Sleep(time.Hour)
			if watches, alive := s.state(); watches < 15 || watches > 20 || !alive || statusOf(w).Errors != 0 {
				t.Errorf("%d watches in an hour, alive %v, %+v", watches, alive, statusOf(w))
			}
		})
	})
	t.Run("because the API server is gone", func(t *testing.T) {
		s := &scripted{script: []func(context.Context) (apiwatch.Interface, error){stream(listed()), unanswered}}
		running(t, s, func(t *testing.T, _ *Watcher) {
			time.Sleep(silenceTimeout + answerTimeout + time.Second)
			if _, alive := s.state(); alive {
				t.Error("a connection that died is taken for an open watch")
			}
		})
	})
	t.Run("but not while bookmarks come", func(t *testing.T) {
		s := &scripted{script: []func(context.Context) (apiwatch.Interface, error){bookmarking}}
		running(t, s, func(t *testing.T, _ *Watcher) {
			time.Sleep(time.Hour)
			if watches, alive := s.state(); watches != 1 || !alive {
				t.Errorf("%d watches in an hour, alive %v", watches, alive)
			}
		})
	})
}

// bookmarking returns a watch that delivers a bookmark every minute.
func bookmarking(ctx context.Context) (apiwatch.Interface, error) {
	events := apiwatch.NewRaceFreeFake()
	events.Action(apiwatch.Bookmark, listed().Object)
	go func() {
		for ctx.Err() == nil {
			Sleep(ctx, time.Minute)
			events.Action(apiwatch.Bookmark, bookmark().Object)
		}
		events.Stop()
	}()
	return events, nil
}

func TestEndDuringRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{script: []func(context.Context) (apiwatch.Interface, error){stream(problem(apierrors.NewTooManyRequests("later", 30)))}}
		ctx, cancel := context.WithCancel(t.Context())
		_, ended := s.start(ctx)
		synctest.Wait()
		began := time.Now()
		cancel()
		<-ended
		if took := time.Since(began); took > endTimeout {
			t.Errorf("it took %v to end", took)
		}
		time.Sleep(time.Minute) // lets client-go sleep to its end
	})
}

func TestBackoff(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	backoff := NewBackoff(middle)
	for i, step := range []struct {
		err  error
		took time.Duration
		want time.Duration
	}{
		{nil, 0, 375 * time.Millisecond},
		{errConnectionEnded, 0, 750 * time.Millisecond},
		{forbidden, 0, 1500 * time.Millisecond},
		{forbidden, 0, permanentDelay + permanentDelay/4},
		{forbidden, 0, permanentDelay + permanentDelay/4},
		{nil, 0, maxDelay + maxDelay/2},
		{forbidden, resetAfter + 1, 375 * time.Millisecond},
	} {
		if got := backoff.Next(step.err, step.took); got != step.want {
			t.Errorf("delay %d is %v, want %v", i, got, step.want)
		}
	}
}

// aPod returns the event of a new pod.
func aPod(name string) apiwatch.Event {
	return apiwatch.Event{Type: apiwatch.Added, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}}
}

func TestSlowStream(t *testing.T) {
	slow := func(ctx context.Context) (apiwatch.Interface, error) {
		events := apiwatch.NewRaceFreeFake()
		go func() {
			defer events.Stop()
			for i := range 5 {
				events.Action(apiwatch.Added, aPod(string(rune('a'+i))).Object)
				Sleep(ctx, answerTimeout-time.Second)
			}
			events.Action(apiwatch.Bookmark, listed().Object)
			<-ctx.Done()
		}()
		return events, nil
	}
	s := &scripted{script: []func(context.Context) (apiwatch.Interface, error){slow}}
	running(t, s, func(t *testing.T, w *Watcher) {
		time.Sleep(5 * answerTimeout)
		if watches, alive := s.state(); watches != 1 || !alive || statusOf(w).Errors != 0 {
			t.Errorf("%d watches, alive %v, %+v", watches, alive, statusOf(w))
		}
	})
}

func TestLive(t *testing.T) {
	within := func(seconds int64) metav1.ListOptions { return metav1.ListOptions{TimeoutSeconds: &seconds} }
	initial := true
	stream := within(300)
	stream.SendInitialEvents = &initial
	for name, c := range map[string]struct {
		before func(*Watcher)
		want   bool
	}{
		"a streamed list":                {func(w *Watcher) { open(w, stream); w.completed() }, true},
		"a streamed list that took long": {func(w *Watcher) { open(w, stream); time.Sleep(3 * time.Second); w.completed() }, false},
		"a list":                         {func(w *Watcher) { w.beginList(false); w.completed(); open(w, within(300)) }, false},
		"a watch that ended at its time": {func(w *Watcher) { open(w, stream); time.Sleep(5 * time.Minute); open(w, within(300)) }, true},
		"two of them": {func(w *Watcher) {
			open(w, stream)
			time.Sleep(5 * time.Minute)
			open(w, within(300))
			time.Sleep(5 * time.Minute)
			open(w, within(300))
		}, true},
		"a watch that broke": {func(w *Watcher) { open(w, stream); time.Sleep(4 * time.Minute); open(w, within(300)) }, false},
		"a relist after its time": {func(w *Watcher) {
			open(w, stream)
			time.Sleep(5 * time.Minute)
			w.beginList(false)
			open(w, within(300))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := testWatcher(func(bool) {}, func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) {
					time.Sleep(3 * time.Second) // the answer takes a while
					return apiwatch.NewFake(), nil
				})
				defer w.stop()
				w.begin(func() {})
				c.before(w)
				if got := w.live(); got != c.want {
					t.Errorf("at once: live %v", got)
				}
				time.Sleep(catchUpTime)
				if !w.live() {
					t.Error("it never becomes live")
				}
			})
		})
	}
}

// open opens a watch.
func open(w *Watcher, options metav1.ListOptions) {
	if opened, err := w.tryWatch(context.Background(), options); err == nil {
		opened.Stop()
	}
}

func statusOf(w *Watcher) source.Status {
	status, _ := w.Status(clock.Instant{}, clock.Instant{})
	return status
}

// middle returns the middle of the interval, in place of a random value.
func middle(limit time.Duration) time.Duration { return limit / 2 }

func TestListIsFreshWithContinuingWatch(t *testing.T) {
	alive := false
	w := testWatcher(func(now bool) { alive = now }, func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) { return apiwatch.NewFake(), nil })
	defer w.stop()
	try := func(options metav1.ListOptions) {
		opened, err := w.tryWatch(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(opened.Stop)
	}
	w.beginList(false)
	w.completed()
	if alive {
		t.Error("a list alone is taken for fresh")
	}
	if try(metav1.ListOptions{ResourceVersion: "7"}); !alive {
		t.Error("a list with a watch is not taken for fresh")
	}
	w.Fail(errConnectionEnded)
	yes := true
	if try(metav1.ListOptions{SendInitialEvents: &yes}); alive {
		t.Error("a stream is taken for fresh before its list is complete")
	}
	if w.completed(); !alive {
		t.Error("a stream is not taken for fresh when its list is complete")
	}
}
