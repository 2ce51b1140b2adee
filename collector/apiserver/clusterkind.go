package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// followed is one collection that is followed.
type followed struct {
	watched *watched
	store   cache.ReflectorStore
	ofDRA   bool // of resource.k8s.io/v1
}

// kind describes a collection to follow.
type kind[O metav1.Object, V any] struct {
	resource string
	selector string // of fields; empty: all
	scoped   bool   // it is in namespaces
	ofDRA    bool
	optional bool // the API server may well not serve it
	silent   bool // another part of the same source does the logging
	offers   []offer

	convert func(any) (O, bool) // see collection
	decode  func(O) (V, bool)
	known   func(V, O) bool
	changed func(before, after *V, live bool)
	handed  func(objectName, O, bool)
}

// follow adds a collection to those that Run follows.
func follow[O metav1.Object, V any](c *Cluster, k kind[O, V]) *collection[O, V] {
	w := &watched{
		resource: k.resource,
		tracker:  c.tracker(k.resource, k.silent),
		now:      c.options.Clock,
		limits:   c.options.Limits.orDefault(),
		turned:   func(bool) { signal(c.journal.changed) },
		optional: k.optional,
	}
	kept := newCollection[O, V](&sync.Mutex{}, w)
	kept.early = true
	kept.convert, kept.decode, kept.known, kept.handed = k.convert, k.decode, k.known, k.handed
	kept.changed = func(before, after *V) { k.changed(before, after, kept.live) }
	kept.settled = func() { signal(c.journal.changed) }
	at := from{client: c.client, offers: &offers{all: k.offers}, resource: k.resource, selector: k.selector}
	if k.scoped {
		at.namespace = c.options.Namespace
	}
	w.watch = at.watch
	w.list = func(ctx context.Context, query metav1.ListOptions) (runtime.Object, error) {
		list, err := at.list(ctx, query, func(object runtime.Object) runtime.Object { return kept.admit(object) })
		if errors.Is(err, errNotServed) {
			kept.exchange(nil) // what was there while it was served is not in force
		}
		return list, err
	}
	c.kinds = append(c.kinds, &followed{watched: w, store: kept, ofDRA: k.ofDRA})
	return kept
}

func (c *Cluster) tracker(name string, silent bool) *source.Tracker {
	log, observe := c.options.Log, func(float64) {}
	if silent {
		log = slog.New(slog.DiscardHandler)
	}
	if c.options.Observe != nil {
		observe = c.options.Observe(name)
	}
	return source.NewTracker(name, log, c.options.Clock, observe)
}

// from is where a collection is read from, in whichever version it is served.
type from struct {
	client              *client
	offers              *offers
	namespace, resource string
	selector            string
}

func (f from) place(o offer) place {
	return place{group: o.group, namespace: f.namespace, resource: f.resource}
}

// list reads one page of the newest state, and has each object taken in. It
// returns what stands for them.
func (f from) list(ctx context.Context, query metav1.ListOptions, admit func(runtime.Object) runtime.Object) (runtime.Object, error) {
	query.FieldSelector = f.selector
	query.ResourceVersion, query.ResourceVersionMatch = "", "" // with one, there may be no pages
	standIns := &metainternalversion.List{}
	err := f.offers.ask(func(o offer) error {
		page := o.list()
		if err := f.client.list(ctx, f.place(o), query, page); err != nil {
			return err
		}
		return f.replaceItems(standIns, page, admit)
	})
	if query.Continue != "" && isExpired(err) {
		err = &finalError{cause: err} // else the pager would ask for all at once, and take one page for that
	}
	return standIns, err
}

// replaceItems has each object of a page taken in, and puts what stands for it
// into the list.
func (f from) replaceItems(standIns *metainternalversion.List, page runtime.Object, admit func(runtime.Object) runtime.Object) error {
	about, err := meta.ListAccessor(page)
	if err != nil {
		return fmt.Errorf("understand a list of %s: %w", f.resource, err)
	}
	standIns.ResourceVersion, standIns.Continue = about.GetResourceVersion(), about.GetContinue()
	standIns.RemainingItemCount = about.GetRemainingItemCount()
	err = meta.EachListItemWithAlloc(page, func(object runtime.Object) error {
		standIns.Items = append(standIns.Items, admit(object))
		return nil
	})
	if err != nil {
		return fmt.Errorf("take in a list of %s: %w", f.resource, err)
	}
	return nil
}

func (f from) watch(ctx context.Context, query metav1.ListOptions) (watch.Interface, error) {
	query.FieldSelector = f.selector
	var opened watch.Interface
	err := f.offers.ask(func(o offer) error {
		var err error
		opened, err = f.client.watch(ctx, f.place(o), query)
		return err
	})
	return opened, err
}
