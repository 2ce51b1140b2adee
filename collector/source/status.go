// Package source has the status of every source of facts: a device library, the
// kubelet, each resource of the API server, CDI specs.
package source

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Reason names why a source is down, out of a closed set.
type Reason string

// The reasons that a source can give.
const (
	ReasonNone              Reason = ""
	ReasonTimeout           Reason = "timeout"
	ReasonDeviceTimeout     Reason = "device_timeout"
	ReasonDeviceError       Reason = "device_error"
	ReasonDuplicateUUID     Reason = "duplicate_uuid"
	ReasonPermission        Reason = "permission_denied"
	ReasonNotFound          Reason = "not_found"
	ReasonUnavailable       Reason = "unavailable"
	ReasonInvalid           Reason = "invalid"
	ReasonResourceExhausted Reason = "resource_exhausted"
	ReasonLibraryMissing    Reason = "library_not_found"
	ReasonUnsupported       Reason = "unsupported_version"
	ReasonLagging           Reason = "lagging"
	ReasonOther             Reason = "other"
)

// Status is the state of a source at one time.
type Status struct {
	Name        string
	Up          bool          // the last attempt succeeded
	Reason      Reason        // why not, or what is amiss though it is up
	Message     string        // the reason as a sentence with the remedy, see Text; empty if there is no failure
	LastSuccess clock.Instant // zero: never
	Errors      uint64        // failed attempts so far
	HungSince   clock.Instant // start of the oldest read that has not come back; zero: none
	Queue       Queue         // of a source that is watched
}

// Queue is what a watch has delivered and what has not been processed yet.
type Queue struct {
	Watched bool          // false: the source has none
	Events  int           // received and not yet processed
	Lag     time.Duration // since the oldest was received, or what was made of it
}

// Failure is an error that knows its Reason.
type Failure struct {
	Reason Reason
	Err    error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// ReasonOf finds the reason in an error: a Failure's own, or that of a
// well-known error of the standard library.
func ReasonOf(err error) Reason {
	var failure *Failure
	switch {
	case err == nil:
		return ReasonNone
	case errors.As(err, &failure):
		return failure.Reason
	case errors.Is(err, context.DeadlineExceeded):
		return ReasonTimeout
	case errors.Is(err, fs.ErrNotExist):
		return ReasonNotFound
	case errors.Is(err, fs.ErrPermission):
		return ReasonPermission
	default:
		return ReasonOther
	}
}

// Tracker keeps the Status of one source and logs when it changes, not at
// every tick, and not each time where it comes and goes. It is safe for
// concurrent use.
type Tracker struct {
	now     clock.Clock
	observe func(seconds float64)

	mu     sync.Mutex
	status Status
	diary  diary
}

// NewTracker returns the tracker of the named source. observe, which may be
// nil, is called with the duration of each finished attempt, in seconds.
func NewTracker(name string, log *slog.Logger, now clock.Clock, observe func(seconds float64)) *Tracker {
	if observe == nil {
		observe = func(float64) {}
	}
	return &Tracker{now: now, observe: observe, status: Status{Name: name}, diary: newDiary(log.With("component", name))}
}

// Optional marks the source as one that may be missing: a library that was
// never found is then not logged as a warning.
func (t *Tracker) Optional() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.diary.optional = true
}

// Begin notes the start of an attempt and returns what ends it. The end may
// come late: it then still counts, as the failure or success that it is.
func (t *Tracker) Begin() (end func(error)) {
	began := t.now()
	return func(err error) {
		t.observe(t.now().Since(began).Seconds())
		t.Report(err)
	}
}

// Report notes the outcome of an attempt whose duration means nothing, such
// as a watch that broke.
func (t *Tracker) Report(err error) {
	t.conclude(err == nil, err)
}

// Impair notes that the source works but not wholly: one of its devices
// fails, say. It counts as a success with a reason, and as an error.
func (t *Tracker) Impair(err error) {
	t.conclude(true, err)
}

// Late notes that an attempt which began at an instant has not ended when it
// should have. The source is down, and what ends the attempt counts.
func (t *Tracker) Late(began clock.Instant, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Up, t.status.Reason, t.status.Message = false, ReasonOf(err), Text(err.Error())
	if t.status.HungSince.IsZero() {
		t.status.HungSince = began
	}
	t.diary.note(t.status, t.now())
}

// conclude notes how an attempt ended and what went wrong in it.
func (t *Tracker) conclude(up bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.status.Up, t.status.Reason, t.status.Message = up, ReasonOf(err), ""
	if err != nil {
		t.status.Errors++
		t.status.Message = Text(err.Error())
	}
	if up {
		t.status.LastSuccess = now
	}
	t.diary.note(t.status, now)
}

// Hang notes since when a read has not come back; the zero instant: none.
func (t *Tracker) Hang(since clock.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.HungSince = since
}

// Status returns the present status. Where nothing is reported as long as
// nothing changes, it is what finds out that the source has settled.
func (t *Tracker) Status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.diary.unsettled() {
		t.diary.note(t.status, t.now())
	}
	return t.status
}

// NeverFound reports whether what the source is read through has not been
// there so far.
func (s Status) NeverFound() bool {
	return s.Reason == ReasonLibraryMissing && s.LastSuccess.IsZero()
}

// HungFor is how long the status' oldest read has not come back.
func (s Status) HungFor(now clock.Instant) time.Duration {
	if s.HungSince.IsZero() {
		return 0
	}
	return now.Since(s.HungSince)
}

// Unread returns the names of sources that have neither been read nor failed,
// sorted.
func Unread(statuses []Status) []string {
	var names []string
	for _, status := range statuses {
		if status.LastSuccess.IsZero() && status.Errors == 0 {
			names = append(names, status.Name)
		}
	}
	slices.Sort(names)
	return names
}
