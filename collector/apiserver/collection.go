package apiserver

import (
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// collection is where a reflector puts the objects of one collection. Each
// is decoded at once, and only the decoded value is kept; an object that
// changed in nothing that is decoded makes no stir.
type collection[O metav1.Object, V any] struct {
	lock   sync.Locker // held while items are used, and during all calls below but replaced and heard
	items  map[string]V
	strip  func(O) any       // a lighter object that decodes to the same
	decode func(O) (V, bool) // false: of no interest

	changed  func(before, after *V) // one item; nil for none
	settled  func()                 // after one or many changed
	replaced func()                 // after the whole collection was listed
	heard    func()                 // at each event of the watch, also one that only says how far it is
}

// newCollection returns a collection that a reflector fills for a watched.
func newCollection[O metav1.Object, V any](lock sync.Locker, from *watched) *collection[O, V] {
	return &collection[O, V]{lock: lock, items: make(map[string]V), replaced: from.replaced, heard: from.heard}
}

// Add implements cache.ReflectorStore.
func (c *collection[O, V]) Add(object any) error { return c.Update(object) }

// Update implements cache.ReflectorStore.
func (c *collection[O, V]) Update(object any) error {
	c.heard()
	typed, ok := object.(O)
	if !ok {
		return fmt.Errorf("keep a watched object: %T is not what is watched", object)
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	value, keep := c.decode(typed)
	if c.put(key(typed), value, keep) {
		c.settled()
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (c *collection[O, V]) Delete(object any) error {
	c.heard()
	typed, ok := object.(O)
	if !ok {
		return fmt.Errorf("forget a watched object: %T is not what is watched", object)
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	var none V
	if c.put(key(typed), none, false) {
		c.settled()
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (c *collection[O, V]) Replace(objects []any, _ string) error {
	c.exchange(objects)
	c.replaced()
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (c *collection[O, V]) Bookmark(string) error {
	c.heard()
	return nil
}

// Resync implements cache.ReflectorStore.
func (c *collection[O, V]) Resync() error { return nil }

// Transformer implements cache.TransformingStore: what a stream brings is
// held until all has come, and should not weigh much meanwhile.
func (c *collection[O, V]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if typed, ok := object.(O); ok {
			return c.strip(typed), nil
		}
		return object, nil
	}
}

func (c *collection[O, V]) exchange(objects []any) {
	c.lock.Lock()
	defer c.lock.Unlock()
	stir := false
	present := make(map[string]bool, len(objects))
	for _, object := range objects {
		if typed, ok := object.(O); ok {
			value, keep := c.decode(typed)
			stir = c.put(key(typed), value, keep) || stir
			present[key(typed)] = true
		}
	}
	for name := range c.items {
		if !present[name] {
			var none V
			stir = c.put(name, none, false) || stir
		}
	}
	if stir {
		c.settled()
	}
}

// put reports whether anything is different now.
func (c *collection[O, V]) put(name string, value V, keep bool) bool {
	before, had := c.items[name]
	switch {
	case !had && !keep:
		return false
	case !keep:
		delete(c.items, name)
		c.changed(&before, nil)
	case !had:
		c.items[name] = value
		c.changed(nil, &value)
	case reflect.DeepEqual(before, value):
		return false
	default:
		c.items[name] = value
		c.changed(&before, &value)
	}
	return true
}

func key(object metav1.Object) string { return object.GetNamespace() + "/" + object.GetName() }
