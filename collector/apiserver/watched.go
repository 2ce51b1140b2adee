package apiserver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	watchPatience = 10 * time.Second       // for the answer to a watch, and to the end of a streamed list
	watchSilence  = 3 * time.Minute        // of an open watch; a bookmark comes about every minute
	watchSpacing  = time.Second            // from the start of one watch to that of the next
	catchUp       = time.Second            // after a gap: what a watch tells until then may have happened in it
	endPatience   = 500 * time.Millisecond // for a cycle to end with its context
)

var (
	// errConnectionEnded stands for a request whose connection ended or
	// timed out before it was answered; client-go hides that behind an
	// empty watch.
	errConnectionEnded = errors.New("the connection to the API server ended or timed out")
	errNoList          = errors.New("the answer is not the list that was asked for")
	errStreamEnded     = errors.New("the stream ended before its list did")

	// errNotServed stands for a collection that the API server has in no
	// version that can be read here.
	errNotServed = errors.New("the API server does not serve it")
)

// watched is one collection that a reflector keeps up to date, and what is
// known about how well that goes.
//
// It is alive from the moment when a list has been taken over and a watch
// goes on from there, until an attempt to list or to watch again fails. A
// watch that simply ends, and can be taken up again, leaves it alive.
//
// A cycle is a list and the watches that go on from it. An alarm ends one
// that does not come along, see alarm.go.
type watched struct {
	resource string
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	tracker  *source.Tracker
	now      clock.Clock
	turned   func(alive bool) // called at every success and failure
	limits   Limits
	optional bool // the API server may well not serve it: that is no failure

	mu         sync.Mutex
	end        func(error) // ends the attempt that is going on
	streaming  bool        // the list comes as a stream, which then is the watch
	unfinished bool        // the last stream was opened, but its list has not come to its end
	alive      bool
	listed     bool          // at least once
	absent     bool          // it is optional and not served
	opened     clock.Instant // the last watch
	closes     clock.Instant // when that is to end in the normal course of things; zero: it has no end, or there is none
	caughtUp   clock.Instant // from when on what it tells has just happened
	giveUp     context.CancelFunc
	alarm      *time.Timer
	beyond     error // a limit that the cycle has exceeded
	received   int   // objects of the present list or stream

	waiting int           // events that have been received and not processed
	oldest  clock.Instant // when the first of those was; zero: there is none
	lagging bool          // and the tracker has been told so
}

// run keeps the store up to date until ctx ends. example is an object of the
// collection's type; nil where the store tells what it can take.
func (w *watched) run(ctx context.Context, example any, store cache.ReflectorStore) {
	silent := logr.Discard() // failures are told by the tracker
	ctx = klog.NewContext(ctx, silent)
	reflector := cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc:  w.tryList,
		WatchFuncWithContext: w.tryWatch,
	}, example, store, cache.ReflectorOptions{Name: w.resource, Logger: &silent})
	pauses := newPauses(spread)
	for ctx.Err() == nil {
		began := w.now()
		err := w.cycle(ctx, reflector.ListAndWatchWithContext)
		sleep(ctx, pauses.after(err, w.now().Since(began)))
	}
}

// cycle lists and watches once and returns the failure that ended it, if it
// was one. When ctx ends it waits for no more than a moment: where the API
// server asks for patience within a stream, client-go sleeps beyond that.
func (w *watched) cycle(ctx context.Context, listAndWatch func(context.Context) error) error {
	cycle, giveUp := context.WithCancel(ctx)
	defer giveUp()
	w.start(giveUp)
	defer w.stop()
	ended := make(chan error, 1)
	go func() { ended <- listAndWatch(cycle) }()
	select {
	case err := <-ended:
		if beyond := w.beyondLimit(); beyond != nil {
			return beyond // the status says so already
		}
		if err == nil || isExpired(err) || cycle.Err() != nil {
			return nil
		}
		w.fail(err)
		return err
	case <-ctx.Done():
	}
	select {
	case <-ended: //nolint:errcheck // whatever it says: it was told to end
	case <-time.After(endPatience):
	}
	return nil
}

// tryList is what the reflector lists by, where it cannot have a stream.
func (w *watched) tryList(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w.beginList()
	if options.Continue == "" {
		w.uncount()
	}
	list, err := w.list(ctx, options)
	if err == nil {
		err = w.count(meta.LenList(list))
	}
	return list, final(err)
}

// tryWatch is what the reflector watches by, and streams its list by. It
// would open the next stream at once where one has ended before its list,
// and likewise the next watch: the former gives way to a plain list instead,
// the latter waits.
func (w *watched) tryWatch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	streaming := options.SendInitialEvents != nil && *options.SendInitialEvents
	if streaming && w.abandonStream() {
		return nil, fmt.Errorf("stream %s: %w", w.resource, errStreamEnded)
	}
	if !streaming {
		sleep(ctx, w.untilNextWatch())
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w.beginWatch(streaming, options.TimeoutSeconds)
	opened, err := w.watch(asking(ctx, request{kind: requestWatch, exceeded: w.exceed}), options)
	if err == nil && reflect.TypeOf(opened) == reflect.TypeOf(watch.NewEmptyWatch()) {
		err = errConnectionEnded
	}
	if err != nil {
		return nil, final(fmt.Errorf("watch %s: %w", w.resource, err))
	}
	w.answered(streaming)
	return newQueue(opened, w.now, w.moved), nil
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
// is open: no news is the news that nothing has changed. pending is since when
// something waits that was processed and is not shown yet, zero for nothing.
func (w *watched) status(now, pending clock.Instant) source.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	behind := w.checkLag(now, pending)
	status := w.tracker.Status()
	status.Queue = behind
	if w.alive {
		status.LastSuccess = now
	}
	if w.alive && w.lagging {
		status.LastSuccess = now.Add(-behind.Lag)
	}
	return status
}

// statusIfServed is the same; false while the collection is one that the API
// server need not serve, and it is not known to.
func (w *watched) statusIfServed(now, pending clock.Instant) (source.Status, bool) {
	status := w.status(now, pending)
	w.mu.Lock()
	defer w.mu.Unlock()
	return status, !w.absent && (!w.optional || status.Up || status.Errors > 0)
}

// isListed reports whether the collection has been known as a whole.
func (w *watched) isListed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.listed
}

// isSettled reports whether the collection has been known as a whole, or has
// failed to be.
func (w *watched) isSettled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.listed || w.absent || w.tracker.Status().Errors > 0
}

// finalError keeps an error from the reflector's own patience: it would try
// for ever to reach an API server that refuses connections, without a word
// to anybody and deaf to the end of the context.
type finalError struct{ cause error }

func (e *finalError) Error() string { return e.cause.Error() }

// ownError is an error of ours within what the reflector makes of it.
type ownError struct{ cause error }

func (e *ownError) Error() string { return e.cause.Error() }
func (e *ownError) Unwrap() error { return e.cause }

func final(err error) error {
	switch {
	case err == nil:
		return nil
	case utilnet.IsConnectionRefused(err), apierrors.IsTooManyRequests(err):
		return &finalError{cause: err}
	default:
		return &ownError{cause: err}
	}
}

// cause is the error that was given to the reflector, without the reflector's
// words about it.
func cause(err error) error {
	var hidden *finalError
	var own *ownError
	switch {
	case errors.As(err, &hidden):
		return hidden.cause
	case errors.As(err, &own):
		return own.cause
	default:
		return err
	}
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
