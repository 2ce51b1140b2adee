package apiserver

import (
	"reflect"
	"sync"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// journal is what the API server has told and nobody has taken yet. It is
// safe for concurrent use.
type journal struct {
	now     clock.Clock
	changed chan struct{} // capacity 1

	mu      sync.Mutex
	changes []Change
}

func newJournal(now clock.Clock) *journal {
	return &journal{now: now, changed: make(chan struct{}, 1)}
}

// note adds a change, told now.
func (j *journal) note(change Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change.At = j.now()
	j.changes = append(j.changes, change)
}

// oldest is when the first change was noted that has not been taken; zero: all
// have been.
func (j *journal) oldest() clock.Instant {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.changes) == 0 {
		return clock.Instant{}
	}
	return j.changes[0].At
}

func (j *journal) take() []Change {
	j.mu.Lock()
	defer j.mu.Unlock()
	taken := j.changes
	j.changes = nil
	return taken
}

// item is what is kept of one object: what it decoded to, shared with the
// changes that told of it, and by what to know the object again.
type item[T any] struct {
	version string // resource version, or what else tells that nothing has changed
	value   *T     // nil: only the keeper has it
}

// teller tells the journal of changed items: of one that was made again under
// its name, that the one before is gone; nothing of those that differ in
// nothing that is decoded.
type teller[T any] struct {
	journal *journal
	uid     func(*T) string
	change  func(*T) Change
}

func (t teller[T]) tell(before, after *item[T], live bool) {
	if before != nil && after != nil && t.uid(before.value) == t.uid(after.value) && reflect.DeepEqual(before.value, after.value) {
		after.value = before.value
		return
	}
	if before != nil && (after == nil || t.uid(before.value) != t.uid(after.value)) {
		gone := t.change(before.value)
		gone.Gone, gone.Live = true, live
		t.journal.note(gone)
	}
	if after != nil {
		told := t.change(after.value)
		told.Live = live
		t.journal.note(told)
	}
}
