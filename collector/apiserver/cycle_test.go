package apiserver

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
	"k8s.io/apimachinery/pkg/watch"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// scripted is a fake API server of an empty collection of pods. Its watches
// do what the script says, one after the other, and the last one for ever.
type scripted struct {
	script   []func(context.Context) (watch.Interface, error)
	listable bool // else lists fail

	mu      sync.Mutex
	watches int
	turns   []bool // whether alive, at each success and failure
}

// follow runs a watched of the collection in the bubble of the test.
func (s *scripted) follow(ctx context.Context) (w *watched, ended chan struct{}) {
	now := clock.System()
	w = &watched{
		resource: "pods",
		tracker:  source.NewTracker("pods", slog.New(slog.DiscardHandler), now, nil),
		now:      now,
		turned:   func(alive bool) { s.mu.Lock(); s.turns = append(s.turns, alive); s.mu.Unlock() },
		watch:    s.watch,
		list: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			if s.listable {
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
			}
			return nil, apierrors.NewGenericServerResponse(http.StatusInternalServerError, "list", schema.GroupResource{}, "", "", 0, true)
		},
	}
	pods := newCollection[*corev1.Pod, decode.PodRecord](&sync.Mutex{}, w)
	pods.strip = func(pod *corev1.Pod) *corev1.Pod { return decode.StripPod(pod) }
	pods.decode = func(pod *corev1.Pod) (decode.PodRecord, bool) { return decode.NewPodRecord(pod) }
	pods.changed, pods.settled = func(_, _ *decode.PodRecord) {}, func() {}
	ended = make(chan struct{})
	go func() { defer close(ended); w.run(ctx, &corev1.Pod{}, pods) }()
	return w, ended
}

func (s *scripted) watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	next := s.script[min(s.watches, len(s.script)-1)]
	s.watches++
	s.mu.Unlock()
	return next(ctx)
}

// seen is the number of watches so far, and whether the last turn was to
// alive.
func (s *scripted) seen() (watches int, alive bool) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches, len(s.turns) > 0 && s.turns[len(s.turns)-1]
}

// stream is a watch that tells the events, and then nothing until it is
// ended.
func stream(events ...watch.Event) func(context.Context) (watch.Interface, error) {
	return func(ctx context.Context) (watch.Interface, error) {
		told := watch.NewFakeWithChanSize(len(events), false)
		for _, event := range events {
			told.Action(event.Type, event.Object)
		}
		context.AfterFunc(ctx, told.Stop)
		return told, nil
	}
}

// ending is a watch that tells the events and ends.
func ending(events ...watch.Event) func(context.Context) (watch.Interface, error) {
	return func(ctx context.Context) (watch.Interface, error) {
		told, err := stream(events...)(ctx)
		told.Stop()
		return told, err
	}
}

// deaf never answers.
func deaf(ctx context.Context) (watch.Interface, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func bookmark() watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}}
}

// listed is the bookmark that ends a streamed list.
func listed() watch.Event {
	mark := bookmark()
	mark.Object.(*corev1.Pod).Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return mark
}

func problem(err *apierrors.StatusError) watch.Event {
	status := err.Status()
	return watch.Event{Type: watch.Error, Object: &status}
}

// following runs a test in a bubble of its own, with the script being
// followed until the test ends.
func following(t *testing.T, s *scripted, test func(*testing.T, *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w, ended := s.follow(ctx)
		test(t, w)
		cancel()
		<-ended
	})
}

func TestAStreamThatStopsBeforeItsListIsOverGoesStale(t *testing.T) {
	s := &scripted{script: []func(context.Context) (watch.Interface, error){
		stream(listed(), problem(apierrors.NewResourceExpired("old"))), stream(), stream(listed()),
	}}
	following(t, s, func(t *testing.T, w *watched) {
		time.Sleep(5 * time.Second)
		if watches, alive := s.seen(); watches != 2 || !alive {
			t.Errorf("while the second stream may still come: %d watches, alive %v", watches, alive)
		}
		time.Sleep(watchPatience - 4*time.Second)
		if _, alive := s.seen(); alive || w.status(clock.Instant{}, clock.Instant{}).Errors == 0 {
			t.Errorf("alive %v, %+v", alive, w.status(clock.Instant{}, clock.Instant{}))
		}
		time.Sleep(longestPause * 4)
		if watches, alive := s.seen(); watches != 3 || !alive {
			t.Errorf("it does not recover: %d watches, alive %v", watches, alive)
		}
	})
}

func TestAWatchThatIsNotAnsweredGoesStaleAndIsAskedForAgain(t *testing.T) {
	s := &scripted{script: []func(context.Context) (watch.Interface, error){ending(listed(), bookmark()), deaf, stream(listed())}}
	following(t, s, func(t *testing.T, w *watched) {
		time.Sleep(watchPatience - time.Second)
		if watches, alive := s.seen(); watches != 2 || !alive {
			t.Errorf("given up too early: %d watches, alive %v", watches, alive)
		}
		time.Sleep(time.Second + watchSpacing + firstPause/2)
		if _, alive := s.seen(); alive || w.status(clock.Instant{}, clock.Instant{}).Reason != source.ReasonTimeout || w.status(clock.Instant{}, clock.Instant{}).Errors != 1 {
			t.Errorf("after %v: alive %v, %+v", watchPatience, alive, w.status(clock.Instant{}, clock.Instant{}))
		}
		time.Sleep(2 * longestPause)
		if watches, alive := s.seen(); watches != 3 || !alive {
			t.Errorf("it does not recover: %d watches, alive %v", watches, alive)
		}
	})
}

func TestStreamsThatEndBeforeTheirListMakeNoStorm(t *testing.T) {
	for name, listable := range map[string]bool{"lists fail": false, "lists succeed": true} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{script: []func(context.Context) (watch.Interface, error){ending(bookmark())}, listable: listable}
			following(t, s, func(t *testing.T, _ *watched) {
				time.Sleep(time.Minute)
				if watches, alive := s.seen(); watches < 5 || watches > 100 || alive != listable {
					t.Errorf("%d watches in a minute, alive %v", watches, alive)
				}
			})
		})
	}
}

func TestWatchesThatEndAtOnceMakeNoStorm(t *testing.T) {
	s := &scripted{script: []func(context.Context) (watch.Interface, error){ending(listed(), bookmark()), ending(bookmark())}}
	following(t, s, func(t *testing.T, _ *watched) {
		time.Sleep(time.Minute)
		if watches, alive := s.seen(); watches < 50 || watches > 65 || !alive {
			t.Errorf("%d watches in a minute, alive %v", watches, alive)
		}
	})
}

func TestAWatchThatHasFallenSilentIsReplaced(t *testing.T) {
	t.Run("while nothing changes at all", func(t *testing.T) {
		s := &scripted{script: []func(context.Context) (watch.Interface, error){stream(listed())}}
		following(t, s, func(t *testing.T, w *watched) {
			time.Sleep(time.Hour)
			if watches, alive := s.seen(); watches < 15 || watches > 20 || !alive || w.status(clock.Instant{}, clock.Instant{}).Errors != 0 {
				t.Errorf("%d watches in an hour, alive %v, %+v", watches, alive, w.status(clock.Instant{}, clock.Instant{}))
			}
		})
	})
	t.Run("because the API server is gone", func(t *testing.T) {
		s := &scripted{script: []func(context.Context) (watch.Interface, error){stream(listed()), deaf}}
		following(t, s, func(t *testing.T, _ *watched) {
			time.Sleep(watchSilence + watchPatience + time.Second)
			if _, alive := s.seen(); alive {
				t.Error("a connection that died is taken for an open watch")
			}
		})
	})
	t.Run("but not while bookmarks come", func(t *testing.T) {
		s := &scripted{script: []func(context.Context) (watch.Interface, error){marking}}
		following(t, s, func(t *testing.T, _ *watched) {
			time.Sleep(time.Hour)
			if watches, alive := s.seen(); watches != 1 || !alive {
				t.Errorf("%d watches in an hour, alive %v", watches, alive)
			}
		})
	})
}

// marking is a watch that tells a bookmark every minute.
func marking(ctx context.Context) (watch.Interface, error) {
	told := watch.NewRaceFreeFake()
	told.Action(watch.Bookmark, listed().Object)
	go func() {
		for ctx.Err() == nil {
			sleep(ctx, time.Minute)
			told.Action(watch.Bookmark, bookmark().Object)
		}
		told.Stop()
	}()
	return told, nil
}

func TestEndsPromptlyThoughItIsAskedForPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{script: []func(context.Context) (watch.Interface, error){stream(problem(apierrors.NewTooManyRequests("later", 30)))}}
		ctx, cancel := context.WithCancel(t.Context())
		_, ended := s.follow(ctx)
		synctest.Wait()
		began := time.Now()
		cancel()
		<-ended
		if took := time.Since(began); took > endPatience {
			t.Errorf("it took %v to end", took)
		}
		time.Sleep(time.Minute) // lets client-go sleep to its end
	})
}

func TestPausesGrowAndAreLongWhereAnErrorLasts(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	pauses := newPauses(middle)
	for i, step := range []struct {
		err  error
		took time.Duration
		want time.Duration
	}{
		{nil, 0, 375 * time.Millisecond},
		{errConnectionEnded, 0, 750 * time.Millisecond},
		{forbidden, 0, 1500 * time.Millisecond},
		{forbidden, 0, lastingPause + lastingPause/4},
		{forbidden, 0, lastingPause + lastingPause/4},
		{nil, 0, longestPause + longestPause/2},
		{forbidden, calmCycle + 1, 375 * time.Millisecond},
	} {
		if got := pauses.after(step.err, step.took); got != step.want {
			t.Errorf("pause %d is %v, want %v", i, got, step.want)
		}
	}
}

// aPod is what a watch tells of a new pod.
func aPod(name string) watch.Event {
	return watch.Event{Type: watch.Added, Object: user(name, name, "gpu")}
}

func TestAStreamThatGoesOnIsWaitedFor(t *testing.T) {
	slow := func(ctx context.Context) (watch.Interface, error) {
		told := watch.NewRaceFreeFake()
		go func() {
			defer told.Stop()
			for i := range 5 {
				told.Action(watch.Added, aPod(string(rune('a'+i))).Object)
				sleep(ctx, watchPatience-time.Second)
			}
			told.Action(watch.Bookmark, listed().Object)
			<-ctx.Done()
		}()
		return told, nil
	}
	s := &scripted{script: []func(context.Context) (watch.Interface, error){slow}}
	following(t, s, func(t *testing.T, w *watched) {
		time.Sleep(5 * watchPatience)
		if watches, alive := s.seen(); watches != 1 || !alive || w.status(clock.Instant{}, clock.Instant{}).Errors != 0 {
			t.Errorf("%d watches, alive %v, %+v", watches, alive, w.status(clock.Instant{}, clock.Instant{}))
		}
	})
}

func TestWhatAWatchTellsAtFirstAfterAGapIsNotPrompt(t *testing.T) {
	within := func(seconds int64) metav1.ListOptions { return metav1.ListOptions{TimeoutSeconds: &seconds} }
	initial := true
	stream := within(300)
	stream.SendInitialEvents = &initial
	for name, c := range map[string]struct {
		before func(*watched)
		want   bool
	}{
		"a streamed list":                {func(w *watched) { open(w, stream); w.replaced() }, true},
		"a streamed list that took long": {func(w *watched) { open(w, stream); time.Sleep(3 * time.Second); w.replaced() }, false},
		"a list":                         {func(w *watched) { w.beginList(); w.replaced(); open(w, within(300)) }, false},
		"a watch that ended at its time": {func(w *watched) { open(w, stream); time.Sleep(5 * time.Minute); open(w, within(300)) }, true},
		"two of them": {func(w *watched) {
			open(w, stream)
			time.Sleep(5 * time.Minute)
			open(w, within(300))
			time.Sleep(5 * time.Minute)
			open(w, within(300))
		}, true},
		"a watch that broke":      {func(w *watched) { open(w, stream); time.Sleep(4 * time.Minute); open(w, within(300)) }, false},
		"a relist after its time": {func(w *watched) { open(w, stream); time.Sleep(5 * time.Minute); w.beginList(); open(w, within(300)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := clock.System()
				w := &watched{
					tracker: source.NewTracker("pods", slog.New(slog.DiscardHandler), now, nil), now: now, turned: func(bool) {},
					watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
						time.Sleep(3 * time.Second) // the answer takes a while
						return watch.NewFake(), nil
					},
				}
				defer w.stop()
				w.start(func() {})
				c.before(w)
				if got := w.prompt(); got != c.want {
					t.Errorf("at once: prompt %v", got)
				}
				time.Sleep(catchUp)
				if !w.prompt() {
					t.Error("it never becomes prompt")
				}
			})
		})
	}
}

// open opens a watch.
func open(w *watched, options metav1.ListOptions) {
	if opened, err := w.tryWatch(context.Background(), options); err == nil {
		opened.Stop()
	}
}
