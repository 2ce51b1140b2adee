package apiserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	watchPatience = 10 * time.Second       // for the API server to answer that it will watch
	firstPause    = 250 * time.Millisecond // after a cycle of list and watch has ended
	longestPause  = 2500 * time.Millisecond
	lastingPause  = 30 * time.Second // where somebody must mend something first
	calmCycle     = 30 * time.Second // a cycle as long as this starts the pauses anew
)

// errConnectionEnded stands for a request whose connection ended or timed
// out before it was answered; client-go hides that behind an empty watch.
var errConnectionEnded = errors.New("the connection to the API server ended or timed out")

// watched is one collection that a reflector keeps up to date, and what is
// known about how well that goes.
//
// It is alive from the moment when a list has been taken over and a watch
// goes on from there, until an attempt to list or to watch again fails. A
// watch that simply ends, and can be taken up again, leaves it alive.
type watched struct {
	resource string
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	tracker  *source.Tracker
	now      clock.Clock
	turned   func(alive bool) // called at every success and failure

	mu        sync.Mutex
	end       func(error) // ends the attempt that is going on
	streaming bool        // the list comes as a stream, which then is the watch
	alive     bool
}

// run keeps the store up to date until ctx ends. example is an object of the
// collection's type.
func (w *watched) run(ctx context.Context, example any, store cache.ReflectorStore) {
	silent := logr.Discard() // failures are told by the tracker
	ctx = klog.NewContext(ctx, silent)
	reflector := cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc:  w.tryList,
		WatchFuncWithContext: w.tryWatch,
	}, example, store, cache.ReflectorOptions{Name: w.resource, Logger: &silent})
	pause := firstPause
	for ctx.Err() == nil {
		began := w.now()
		err := reflector.ListAndWatchWithContext(ctx)
		if w.now().Since(began) > calmCycle {
			pause = firstPause
		}
		wait := pause + rand.N(pause)
		if err != nil && !isExpired(err) && ctx.Err() == nil {
			if w.fail(err); isLasting(cause(err)) {
				wait = lastingPause
			}
		}
		sleep(ctx, wait)
		pause = min(2*pause, longestPause)
	}
}

// tryList is what the reflector lists by, where it cannot have a stream.
func (w *watched) tryList(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	w.begin(false)
	list, err := w.list(ctx, options)
	return list, final(err)
}

// tryWatch is what the reflector watches by, and streams its list by.
func (w *watched) tryWatch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	streaming := options.SendInitialEvents != nil && *options.SendInitialEvents
	if streaming {
		w.begin(true)
	}
	impatience := time.AfterFunc(watchPatience, func() {
		w.fail(fmt.Errorf("watch %s: no answer: %w", w.resource, context.DeadlineExceeded))
	})
	defer impatience.Stop()
	opened, err := w.watch(ctx, options)
	if err == nil && reflect.TypeOf(opened) == reflect.TypeOf(watch.NewEmptyWatch()) {
		err = errConnectionEnded
	}
	if err != nil {
		return nil, final(fmt.Errorf("watch %s: %w", w.resource, err))
	}
	if !streaming {
		w.succeed()
	}
	return opened, nil
}

// replaced is called once a list has been taken over. Only a streamed one
// is sure to be followed by a watch.
func (w *watched) replaced() {
	w.mu.Lock()
	streaming := w.streaming
	w.mu.Unlock()
	if streaming {
		w.succeed()
	}
}

func (w *watched) begin(streaming bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streaming = streaming
	if w.end == nil {
		w.end = w.tracker.Begin()
	}
}

func (w *watched) succeed()       { w.finish(nil) }
func (w *watched) fail(err error) { w.finish(failure(cause(err))) }

func (w *watched) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := w.end
	if end == nil {
		end = w.tracker.Report
	}
	end(err)
	w.end, w.alive = nil, err == nil
	w.turned(w.alive)
}

// aside notes how a request went that was made beside an open watch.
func (w *watched) aside(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.alive:
	case err != nil:
		w.tracker.Impair(failure(err))
	case w.tracker.Status().Reason != source.ReasonNone:
		w.tracker.Report(nil)
	}
}

// status is what the tracker says, with a last success of now while a watch
// is open: no news is the news that nothing has changed.
func (w *watched) status(now clock.Instant) source.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := w.tracker.Status()
	if w.alive {
		status.LastSuccess = now
	}
	return status
}

// finalError keeps an error from the reflector's own patience: it would try
// for ever to reach an API server that refuses connections, without a word
// to anybody and deaf to the end of the context.
type finalError struct{ cause error }

func (e *finalError) Error() string { return e.cause.Error() }

func final(err error) error {
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		return &finalError{cause: err}
	}
	return err
}

// cause is the error behind a final one.
func cause(err error) error {
	var hidden *finalError
	if errors.As(err, &hidden) {
		return hidden.cause
	}
	return err
}

// sleep waits, but not beyond the end of the context.
func sleep(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
