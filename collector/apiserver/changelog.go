package apiserver

import (
	"hash/fnv"
	"io"
	"reflect"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// changelog has the changes that have not been drained yet. It is safe for
// concurrent use.
type changelog struct {
	now     clock.Clock
	changed chan struct{} // capacity 1

	mu      sync.Mutex
	changes []dra.Change
}

func newChangelog(now clock.Clock) *changelog {
	return &changelog{now: now, changed: make(chan struct{}, 1)}
}

// record appends a change, received now.
func (c *changelog) record(change dra.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change.At = c.now()
	c.changes = append(c.changes, change)
}

// oldest is when the oldest change that has not been drained was recorded; zero:
// there is none.
func (c *changelog) oldest() clock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.changes) == 0 {
		return clock.Instant{}
	}
	return c.changes[0].At
}

func (c *changelog) take() []dra.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.changes
	c.changes = nil
	return taken
}

// changeRecorder records the changes of values of one type. A value with another UID
// under the same name replaces one that is gone. Values that are equal are no
// change.
type changeRecorder[T any] struct {
	log    *changelog
	uid    func(*T) string
	change func(*T) dra.Change
}

// record returns what to keep in place of updated: the previous value, if they are
// equal.
func (r changeRecorder[T]) record(previous, updated *T, live bool) *T {
	same := previous != nil && updated != nil && r.uid(previous) == r.uid(updated)
	if same && reflect.DeepEqual(previous, updated) {
		return previous
	}
	if previous != nil && !same {
		gone := r.change(previous)
		gone.Gone, gone.Live = true, live
		r.log.record(gone)
	}
	if updated != nil {
		change := r.change(updated)
		change.Live = live
		r.log.record(change)
	}
	return updated
}

// recordedObject is what is kept of an object: what it was decoded to, shared with the
// changes that were recorded, and its version.
type recordedObject[T any] struct {
	version objectVersion
	value   *T // nil: nothing but the version is kept
}

// objectVersion is the number of an object's resource version, or a hash of what is
// relevant: equal if nothing has changed; 0: it has none.
type objectVersion uint64

// readVersion returns the version of an object. A resource version that is not a number
// is hashed.
func readVersion(object metav1.Object) objectVersion {
	text := object.GetResourceVersion()
	if text == "" {
		return 0
	}
	if number, err := strconv.ParseUint(text, 10, 64); err == nil {
		return objectVersion(number)
	}
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, text) // it never fails
	return objectVersion(hash.Sum64())
}

// matches reports whether an object still has the version.
func (v objectVersion) matches(object metav1.Object) bool { return v != 0 && v == readVersion(object) }

// sameVersion reports whether an object is as it was when it was decoded.
func sameVersion[O watch.Object, T any](previous recordedObject[T], object O) bool {
	return previous.version.matches(object)
}

// itemValue is the value of an item; nil: there is no item.
func itemValue[T any](i *recordedObject[T]) *T {
	if i == nil {
		return nil
	}
	return i.value
}

// recorded decodes the objects of a collection and records the changes of the values.
func recorded[O watch.Object, T any](decode func(O) (decoded T, keep bool), r changeRecorder[T]) watch.Decoder[O, recordedObject[T]] {
	return watch.Decoder[O, recordedObject[T]]{
		Unchanged: sameVersion[O, T],
		Decode: func(object O) (recordedObject[T], bool) {
			decoded, keep := decode(object)
			return recordedObject[T]{version: readVersion(object), value: &decoded}, keep
		},
		Apply: recording[O](r),
	}
}

// recording returns what applies the changes of items to the changelog.
func recording[O watch.Object, T any](r changeRecorder[T]) func(watch.Event[O, recordedObject[T]]) {
	return func(event watch.Event[O, recordedObject[T]]) {
		kept := r.record(itemValue(event.Before), itemValue(event.After), event.Live)
		if event.After != nil {
			event.After.value = kept
		}
	}
}
