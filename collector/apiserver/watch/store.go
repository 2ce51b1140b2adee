package watch

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an object of a typed API.
type Object interface {
	metav1.Object
	runtime.Object
}

// ObjectName names an object within its collection.
type ObjectName struct{ Namespace, Name string }

// NameOf returns the name of an object.
func NameOf(object metav1.Object) ObjectName {
	return ObjectName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Event is a change of one decoded value.
type Event[O Object, V any] struct {
	Name          ObjectName
	Before, After *V   // nil: there is none
	Object        O    // what After was decoded from; the zero value: it is gone
	Live          bool // delivered by a watch as it happened, not found in a list
}

// Decoder defines how the objects of a collection become values. Decode, Apply and
// Flush are needed.
type Decoder[O Object, V any] struct {
	Decode func(O) (V, bool) // false: the object is ignored

	// Convert converts an object of another version of the API to an O; false:
	// it cannot, and the object is ignored.
	Convert func(any) (O, bool)

	// Strip returns a smaller object that decodes to the same value, and that is
	// kept until the list is complete. Without Strip each object of a list is
	// applied when it is received, so that no list is held as a whole.
	Strip func(O) O

	Unchanged func(V, O) bool // reports whether the object decodes to the value; optional

	// Apply receives the changes, and Flush is called after one or many of them,
	// both under the lock. Apply may replace parts of After by equal ones.
	Apply func(Event[O, V])
	Flush func()
}

// Store has the decoded values of one collection. Only changes of what is
// decoded are events. Its methods are called under the lock, except for Receive,
// Admit and Replace.
type Store[O Object, V any] struct {
	lock    sync.Locker
	decoder Decoder[O, V]
	items   map[ObjectName]V
}

// NewStore returns an empty store.
func NewStore[O Object, V any](lock sync.Locker, decoder Decoder[O, V]) *Store[O, V] {
	return &Store[O, V]{lock: lock, decoder: decoder, items: make(map[ObjectName]V)}
}

// Get returns the value of a name, and whether there is one.
func (s *Store[O, V]) Get(name ObjectName) (V, bool) {
	value, ok := s.items[name]
	return value, ok
}

// Values are in no order.
func (s *Store[O, V]) Values() iter.Seq[V] { return maps.Values(s.items) }

// Revise replaces each value by the one that the function returns. It causes no
// event.
func (s *Store[O, V]) Revise(revise func(V) V) {
	for name, value := range s.items {
		s.items[name] = revise(value)
	}
}

// Put applies an object that is new or has changed, without Flush. It reports
// whether that was an event.
func (s *Store[O, V]) Put(object O) bool { return s.put(object, false) }

// Remove removes a value, without Flush. It reports whether that was an event.
func (s *Store[O, V]) Remove(name ObjectName) bool { return s.remove(name, false) }

func (s *Store[O, V]) put(object O, live bool) bool {
	name := NameOf(object)
	previous, ok := s.items[name]
	if ok && s.decoder.Unchanged != nil && s.decoder.Unchanged(previous, object) {
		return false
	}
	value, keep := s.decoder.Decode(object)
	if !keep {
		return s.remove(name, live)
	}
	event := Event[O, V]{Name: name, After: &value, Object: object, Live: live}
	if ok {
		if reflect.DeepEqual(previous, value) {
			return false
		}
		event.Before = &previous
	}
	s.decoder.Apply(event)
	s.items[name] = value
	return true
}

func (s *Store[O, V]) remove(name ObjectName, live bool) bool {
	previous, ok := s.items[name]
	if !ok {
		return false
	}
	delete(s.items, name)
	s.decoder.Apply(Event[O, V]{Name: name, Before: &previous, Live: live})
	return true
}

func (s *Store[O, V]) typed(object any) (O, bool) {
	typed, ok := object.(O)
	if !ok && s.decoder.Convert != nil {
		return s.decoder.Convert(object)
	}
	return typed, ok
}

// Receive applies an object that a watch delivered, or its deletion. It returns
// how many values there are. It takes the lock.
func (s *Store[O, V]) Receive(object any, deleted, live bool) (items int, err error) {
	named, ok := object.(metav1.Object)
	typed, isOne := s.typed(object)
	if !ok || !isOne && s.decoder.Convert == nil {
		return 0, fmt.Errorf("store a watched object: %T is not the watched type", object)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	changed := false
	switch {
	case !isOne:
		changed = s.remove(NameOf(named), live)
	case deleted:
		changed = s.remove(NameOf(typed), live)
	default:
		changed = s.put(typed, live)
	}
	if changed {
		s.decoder.Flush()
	}
	return len(s.items), nil
}

// placeholder replaces, in a list, an object that has been applied already. It
// has no name if the object was ignored.
type placeholder = metav1.PartialObjectMetadata

// Admit receives an object of a list that is not complete, and returns the
// object to keep in the list. It takes the lock.
func (s *Store[O, V]) Admit(object runtime.Object) runtime.Object {
	if s.decoder.Strip != nil {
		if typed, ok := object.(O); ok {
			return s.decoder.Strip(typed)
		}
		return object
	}
	stands := &placeholder{}
	typed, ok := s.typed(object)
	if !ok {
		return stands
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.put(typed, false) {
		s.decoder.Flush()
	}
	if _, ok := s.items[NameOf(typed)]; ok {
		stands.Namespace, stands.Name = typed.GetNamespace(), typed.GetName()
	}
	return stands
}

// Replace applies the objects of a complete list that were not applied already,
// and removes what is not in it. It takes the lock.
func (s *Store[O, V]) Replace(objects []any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	changed := false
	present := make(map[ObjectName]bool, len(objects))
	for _, object := range objects {
		switch listed := object.(type) {
		case *placeholder:
			present[NameOf(listed)] = true
		case O:
			present[NameOf(listed)] = true
			changed = s.put(listed, false) || changed
		}
	}
	for name := range s.items {
		if !present[name] {
			changed = s.remove(name, false) || changed
		}
	}
	if changed {
		s.decoder.Flush()
	}
}
