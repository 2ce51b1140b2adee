package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// change is one entry of the history. Objects in it are never changed.
type change struct {
	version       uint64
	resource      string
	before, after Object // nil if there was, or is, none
}

// store holds the objects and the newest changes. It is safe for concurrent
// use.
type store struct {
	limit int // of changes to keep

	mu      sync.Mutex
	version uint64 // of the newest change
	oldest  uint64 // changes after this version are in the history
	objects map[string]map[string]Object
	history []change
	changed chan struct{} // closed at the next change
}

func newStore(limit int) *store {
	return &store{limit: limit, version: 1, oldest: 1, objects: make(map[string]map[string]Object), changed: make(chan struct{})}
}

func name(namespace, name string) string { return namespace + "/" + name }

// put stores a copy of an object, which replaces one of its name. It keeps the UID
// and the time of creation of that one unless it has its own.
func (s *store) put(k kind, given Object) error {
	copied, ok := given.DeepCopyObject().(Object)
	if !ok || copied.GetName() == "" || k.namespaced != (copied.GetNamespace() != "") {
		return fmt.Errorf("put %s %q: name or namespace does not fit", k.name, name(given.GetNamespace(), given.GetName()))
	}
	copied.GetObjectKind().SetGroupVersionKind(k.group.WithKind(k.name))
	if sized, ok := copied.(interface{ Size() int }); ok {
		sized.Size() // a quantity caches its text at the first use: here, and not in two concurrent responses
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := name(copied.GetNamespace(), copied.GetName())
	previous := s.objects[k.resource][key]
	s.identify(copied, previous)
	copied.SetResourceVersion(strconv.FormatUint(s.version+1, 10))
	if s.objects[k.resource] == nil {
		s.objects[k.resource] = make(map[string]Object)
	}
	s.objects[k.resource][key] = copied
	s.record(change{resource: k.resource, before: previous, after: copied})
	return nil
}

// identify gives an object a UID and a time of creation, unless it has them.
func (s *store) identify(copied, previous Object) {
	uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version+1))
	created := metav1.NewTime(time.Now().Truncate(time.Second))
	if previous != nil {
		uid, created = previous.GetUID(), previous.GetCreationTimestamp()
	}
	if copied.GetUID() == "" {
		copied.SetUID(uid)
	}
	if stamp := copied.GetCreationTimestamp(); stamp.IsZero() {
		copied.SetCreationTimestamp(created)
	}
}

// delete removes the object of that name and reports whether there was one.
func (s *store) delete(k kind, namespace, object string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := name(namespace, object)
	previous, ok := s.objects[k.resource][key]
	if !ok {
		return false
	}
	delete(s.objects[k.resource], key)
	s.record(change{resource: k.resource, before: previous})
	return true
}

func (s *store) record(c change) {
	s.version++
	c.version = s.version
	s.history = append(s.history, c)
	if surplus := len(s.history) - s.limit; surplus > 0 {
		s.oldest = s.history[surplus-1].version
		s.history = slices.Clone(s.history[surplus:])
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// expire clears the history: no watch can continue from an older version.
func (s *store) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest, s.history = s.version, nil
}

func (s *store) get(k kind, namespace, object string) (Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.objects[k.resource][name(namespace, object)]
	return found, ok
}

// list returns the objects that fit, sorted by name, and their version.
func (s *store) list(k kind, fits func(Object) bool) (found []Object, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.objects[k.resource]
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if fits(all[key]) {
			found = append(found, all[key])
		}
	}
	return found, s.version
}

// event is an event of a watch.
type event struct {
	kind   watch.EventType
	object runtime.Object
}

// since returns the events of a watch of the objects that fit after a version, the
// version reached, and a channel that is closed at the next change. Not known means
// that the history does not reach back.
func (s *store) since(k kind, version uint64, fits func(Object) bool) (events []event, reached uint64, more <-chan struct{}, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.oldest {
		return nil, version, nil, false
	}
	for _, c := range s.history {
		if c.version <= version || c.resource != k.resource {
			continue
		}
		if e, selected := c.event(fits); selected {
			events = append(events, e)
		}
	}
	return events, s.version, s.changed, true
}

// event is the change as a selection sees it: an object that begins to fit is
// added, one that no longer does is deleted.
func (c change) event(fits func(Object) bool) (event, bool) {
	previous := c.before != nil && fits(c.before)
	now := c.after != nil && fits(c.after)
	switch {
	case previous && now:
		return event{watch.Modified, c.after}, true
	case now:
		return event{watch.Added, c.after}, true
	case previous:
		last, ok := c.before.DeepCopyObject().(Object)
		if !ok {
			return event{}, false
		}
		last.SetResourceVersion(strconv.FormatUint(c.version, 10))
		return event{watch.Deleted, last}, true
	default:
		return event{}, false
	}
}
