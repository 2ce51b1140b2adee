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
	lock   sync.Locker // held while items are used, and during all calls below but those of the watched
	items  map[objectName]V
	decode func(O) (V, bool) // false: of no interest

	// convert makes an O of an object in another version of the API, or says
	// that it cannot be one: then it is of no interest. Optional.
	convert func(any) (O, bool)

	// Of a list, either all objects are held until it is over, stripped to
	// lighter ones that decode to the same, or each is taken in as it comes.
	strip func(O) O
	early bool

	known   func(V, O) bool           // optional: what decodes to nothing new
	changed func(before, after *V)    // one item; nil for none. It may replace parts of after by equal ones
	handed  func(objectName, O, bool) // optional, after changed: the object of a changed item; false: it is gone
	settled func()                    // after one or many changed
	live    bool                      // during the calls above: it was told as it happened, not found in a list

	from *watched
}

// objectName names an object within its collection.
type objectName struct{ namespace, name string }

// newCollection returns a collection that a reflector fills for a watched.
func newCollection[O metav1.Object, V any](lock sync.Locker, from *watched) *collection[O, V] {
	return &collection[O, V]{lock: lock, items: make(map[objectName]V), settled: func() {}, from: from}
}

// Add implements cache.ReflectorStore.
func (c *collection[O, V]) Add(object any) error { return c.Update(object) }

// Update implements cache.ReflectorStore.
func (c *collection[O, V]) Update(object any) error {
	c.from.heard()
	return c.apply(object, c.take)
}

// Delete implements cache.ReflectorStore.
func (c *collection[O, V]) Delete(object any) error {
	c.from.heard()
	return c.apply(object, func(typed O) bool { return c.remove(nameOf(typed)) })
}

// apply does something, under the lock, with an object that the watch told of.
func (c *collection[O, V]) apply(object any, do func(O) bool) error {
	named, ok := object.(metav1.Object)
	typed, isOne := c.typed(object)
	if !ok || !isOne && c.convert == nil {
		return fmt.Errorf("take a watched object in: %T is not what is watched", object)
	}
	live := c.from.prompt() // before the lock: the watched calls back under its own
	if tooMany := c.applyNow(named, typed, isOne, live, do); tooMany {
		c.from.exceed(moreThan(c.from.limits.Objects))
	}
	return nil
}

// applyNow reports whether there are more objects than there may be.
func (c *collection[O, V]) applyNow(named metav1.Object, typed O, isOne, live bool, do func(O) bool) (tooMany bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.live = live
	if isOne && do(typed) || !isOne && c.remove(nameOf(named)) {
		c.settled()
	}
	return c.from != nil && c.from.limits.Objects > 0 && len(c.items) > c.from.limits.Objects
}

func (c *collection[O, V]) typed(object any) (O, bool) {
	typed, ok := object.(O)
	if !ok && c.convert != nil {
		return c.convert(object)
	}
	return typed, ok
}

// Replace implements cache.ReflectorStore.
func (c *collection[O, V]) Replace(objects []any, _ string) error {
	c.exchange(objects)
	c.from.replaced()
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (c *collection[O, V]) Bookmark(string) error {
	c.from.heard()
	return nil
}

// Resync implements cache.ReflectorStore.
func (c *collection[O, V]) Resync() error { return nil }

// Transformer implements cache.TransformingStore: what a stream brings is
// held until all has come, and should not weigh much meanwhile.
func (c *collection[O, V]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		c.from.progress()
		if err := c.from.count(1); err != nil {
			c.from.exceed(err)
			return nil, err
		}
		switch typed, ok := object.(O); {
		case c.early:
			return c.admit(object), nil
		case ok:
			return c.strip(typed), nil
		default:
			return object, nil
		}
	}
}

// standIn stands for an object of a list that has been taken in already. All
// that are of no interest share one.
type standIn = metav1.PartialObjectMetadata

// admit takes an object of a list in before all have come.
func (c *collection[O, V]) admit(object any) *standIn {
	stands := &standIn{}
	typed, ok := c.typed(object)
	if !ok {
		return stands
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.live = false
	if c.take(typed) {
		c.settled()
	}
	if _, kept := c.items[nameOf(typed)]; kept {
		stands.Namespace, stands.Name = typed.GetNamespace(), typed.GetName()
	}
	return stands
}

// exchange takes in those objects of a list that have not been admitted, and
// removes what is not in the list.
func (c *collection[O, V]) exchange(objects []any) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.live = false
	stir := false
	present := make(map[objectName]bool, len(objects))
	for _, object := range objects {
		switch listed := object.(type) {
		case *standIn:
			present[nameOf(listed)] = true
		case O:
			present[nameOf(listed)] = true
			stir = c.take(listed) || stir
		}
	}
	for name := range c.items {
		if !present[name] {
			stir = c.remove(name) || stir
		}
	}
	if stir {
		c.settled()
	}
}

// take reports whether anything is different now.
func (c *collection[O, V]) take(object O) bool {
	name := nameOf(object)
	before, had := c.items[name]
	if had && c.known != nil && c.known(before, object) {
		return false
	}
	value, keep := c.decode(object)
	switch {
	case !keep:
		return c.remove(name)
	case !had:
		c.changed(nil, &value)
	case reflect.DeepEqual(before, value):
		return false
	default:
		c.changed(&before, &value)
	}
	c.items[name] = value
	if c.handed != nil {
		c.handed(name, object, true)
	}
	return true
}

// remove reports whether there was anything to remove.
func (c *collection[O, V]) remove(name objectName) bool {
	before, had := c.items[name]
	if !had {
		return false
	}
	delete(c.items, name)
	c.changed(&before, nil)
	if c.handed != nil {
		var none O
		c.handed(name, none, false)
	}
	return true
}

func nameOf(object metav1.Object) objectName {
	return objectName{namespace: object.GetNamespace(), name: object.GetName()}
}
