package watch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const endTimeout = 500 * time.Millisecond // of a cycle whose context has ended

// Watcher keeps the Store of one collection up to date by lists and watches, and
// has the status of the collection. All methods but Run may be called at any
// time from any goroutine; Run once.
type Watcher struct {
	*watchSession

	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
	store cache.ReflectorStore
}

// New returns a Watcher that reads from a source into a store.
func New[O Object, V any](options Options, source *CollectionReader, store *Store[O, V]) *Watcher {
	s := newWatchSession(options, source)
	list := func(ctx context.Context, query metav1.ListOptions) (runtime.Object, error) {
		atOnce := store.decoder.Strip == nil
		if atOnce {
			query.ResourceVersion, query.ResourceVersionMatch = "", "" // with one, the list may have no pages
		}
		list, err := source.list(ctx, query, store.Admit)
		if errors.Is(err, errNotServed) {
			store.Replace(nil) // objects that were there while it was served have no effect any more
		}
		if atOnce && query.Continue != "" && isExpired(err) {
			err = &finalError{cause: err} // otherwise the pager lists without pages, and takes one page for the list
		}
		return list, err
	}
	return &Watcher{watchSession: s, list: list, watch: source.watch, store: &reflectorStore[O, V]{store: store, session: s}}
}

// Run keeps the store up to date until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	silent := logr.Discard() // the tracker reports failures
	ctx = klog.NewContext(ctx, silent)
	reflector := cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc:  w.tryList,
		WatchFuncWithContext: w.tryWatch,
	}, nil, w.store, cache.ReflectorOptions{Name: w.resource, Logger: &silent})
	backoff := NewBackoff(Jitter)
	for ctx.Err() == nil {
		began := w.now()
		err := w.cycle(ctx, reflector.ListAndWatchWithContext)
		Sleep(ctx, backoff.Next(err, w.now().Since(began)))
	}
}

// cycle lists and watches once and returns the failure that ended it, nil for
// none. When ctx ends it returns after endTimeout at the latest: if the API
// server asks for a delay within a stream, client-go sleeps beyond the context.
func (w *Watcher) cycle(ctx context.Context, listAndWatch func(context.Context) error) error {
	cycle, cancel := context.WithCancel(ctx)
	defer cancel()
	w.begin(cancel)
	defer w.stop()
	ended := make(chan error, 1)
	go func() { ended <- listAndWatch(cycle) }()
	select {
	case err := <-ended:
		if exceeded := w.exceededLimit(); exceeded != nil {
			return exceeded // it is reported already
		}
		if err == nil || isExpired(err) || cycle.Err() != nil {
			return nil
		}
		w.Fail(err)
		return err
	case <-ctx.Done():
	}
	select {
	case <-ended: //nolint:errcheck // it was canceled
	case <-time.After(endTimeout):
	}
	return nil
}

// tryList lists for the reflector if it cannot stream the list.
func (w *Watcher) tryList(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w.beginList(options.Continue != "")
	list, err := w.list(ctx, options)
	if err == nil {
		err = w.count(meta.LenList(list))
	}
	return list, wrapError(err)
}

// tryWatch watches for the reflector, and streams its list. The reflector would
// immediately open another stream after one that ended before its list was
// complete. Instead, a list without a stream follows. It would also immediately
// open another watch after one that ended; this is delayed.
func (w *Watcher) tryWatch(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
	streaming := options.SendInitialEvents != nil && *options.SendInitialEvents
	if streaming && w.abandonStream() {
		return nil, fmt.Errorf("stream %s: %w", w.resource, errStreamEnded)
	}
	if !streaming {
		Sleep(ctx, w.untilNextWatch())
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w.beginWatch(streaming, options.TimeoutSeconds)
	read := new(atomic.Int64)
	opened, err := w.watch(withRequest(ctx, request{kind: requestWatch, exceeded: w.exceed, read: read}), options)
	if err == nil && reflect.TypeOf(opened) == reflect.TypeOf(apiwatch.NewEmptyWatch()) {
		err = errConnectionEnded
	}
	if err != nil {
		return nil, wrapError(fmt.Errorf("watch %s: %w", w.resource, err))
	}
	w.answered(streaming)
	return newEventQueue(opened, read, w.now, w.observeQueue), nil
}

// reflectorStore is a Store as a reflector fills it.
type reflectorStore[O Object, V any] struct {
	store   *Store[O, V]
	session *watchSession
}

// Add implements cache.ReflectorStore.
func (r *reflectorStore[O, V]) Add(object any) error { return r.receive(object, false) }

// Update implements cache.ReflectorStore.
func (r *reflectorStore[O, V]) Update(object any) error { return r.receive(object, false) }

// Delete implements cache.ReflectorStore.
func (r *reflectorStore[O, V]) Delete(object any) error { return r.receive(object, true) }

func (r *reflectorStore[O, V]) receive(object any, deleted bool) error {
	r.session.observeEvent()
	items, err := r.store.Receive(object, deleted, r.session.live())
	if most := r.session.limits.Objects; most > 0 && items > most {
		r.session.exceed(tooManyObjects(most))
	}
	return err
}

// Replace implements cache.ReflectorStore.
func (r *reflectorStore[O, V]) Replace(objects []any, _ string) error {
	r.store.Replace(objects)
	r.session.completed()
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (r *reflectorStore[O, V]) Bookmark(string) error {
	r.session.observeEvent()
	return nil
}

// Resync implements cache.ReflectorStore.
func (r *reflectorStore[O, V]) Resync() error { return nil }

// Transformer implements cache.TransformingStore. The objects of a stream are
// kept until it is complete, so they are stripped or applied when they arrive.
func (r *reflectorStore[O, V]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		r.session.observeObject()
		if err := r.session.count(1); err != nil {
			r.session.exceed(err)
			return nil, err
		}
		if received, ok := object.(runtime.Object); ok {
			return r.store.Admit(received), nil
		}
		return object, nil
	}
}
