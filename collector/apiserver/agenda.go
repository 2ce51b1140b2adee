package apiserver

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// agenda says what to read next: every key has a time at which it is due,
// and is never read twice at once. It is not safe for concurrent use.
type agenda[K comparable] struct {
	appointments map[K]*appointment
	urgent       func(K) bool // goes before what has been due longer
}

// appointment is one key's entry. Its address tells a read that began before
// the key was dropped and added again from a read of the present entry.
type appointment struct {
	due  time.Duration // elapsed time of the clock
	busy bool
}

func newAgenda[K comparable](urgent func(K) bool) *agenda[K] {
	return &agenda[K]{appointments: make(map[K]*appointment), urgent: urgent}
}

// set makes a key due; a key that is being read keeps that until done.
func (a *agenda[K]) set(key K, due time.Duration) {
	if entry, found := a.appointments[key]; found {
		entry.due = due
		return
	}
	a.appointments[key] = &appointment{due: due}
}

// bring makes a key due no later than given.
func (a *agenda[K]) bring(key K, due time.Duration) {
	if entry, found := a.appointments[key]; found {
		entry.due = min(entry.due, due)
	}
}

func (a *agenda[K]) drop(key K) { delete(a.appointments, key) }

// begin takes the key that has been due longest, an urgent one first. Where
// none is due, wait is how long until one will be; idle is how long it waits
// for nothing at all.
func (a *agenda[K]) begin(now clock.Instant) (key K, taken *appointment, wait time.Duration) {
	wait = idle
	urgent := false
	for candidate, entry := range a.appointments {
		left := entry.due - now.Elapsed
		if entry.busy || left >= idle {
			continue
		}
		hurried := left <= 0 && a.urgent(candidate)
		if hurried == urgent && left < wait || hurried && !urgent {
			key, taken, wait, urgent = candidate, entry, left, hurried
		}
	}
	if taken == nil || wait > 0 {
		return key, nil, wait
	}
	taken.busy = true
	return key, taken, 0
}

const idle = time.Hour

// done ends a read. It reports whether the key is still wanted: if not, what
// was read is of no interest.
func (a *agenda[K]) done(key K, taken *appointment) bool {
	taken.busy = false
	return a.appointments[key] == taken
}
