// Package source is the status of every source of facts (a device library, the
// kubelet, each resource of the API server, CDI specs).
package source

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Reason names why a source is down, out of a closed set.
type Reason string

// The reasons.
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
	ReasonEvents            Reason = "events_not_received" // the rest is read
	ReasonLibraryMismatch   Reason = "library_mismatch"    // the vendor's library and the driver are of two versions
	ReasonOther             Reason = "other"
)

// Status is the status of a source at one time.
type Status struct {
	Name        string
	Up          bool          // the last attempt succeeded
	Reason      Reason        // why not, or the impairment of a source that is up
	Message     string        // the same as a sentence, with the remedy, see Text; empty without a reason
	LastSuccess clock.Instant // zero: never
	Errors      uint64        // failed attempts so far
	Measures    bool          // it returns readings, which can be refused
	Refused     uint64        // readings so far that cannot be true
	HungSince   clock.Instant // start of the oldest read that has not returned; zero: none
	Released    bool          // it is closed on purpose: the rest is from before
	EndedAt     clock.Instant // since when only another process can read it again; zero: this one can
	Queue       Queue         // of a source that is watched
}

// Queue is the events that a watch has delivered and that are not processed yet.
type Queue struct {
	Watched bool          // false: the source has none
	Events  int           // received and not yet processed
	Lag     time.Duration // since the oldest was received, or its result computed
}

// Failure is an error with its Reason.
type Failure struct {
	Reason Reason
	Err    error
}

func (f *Failure) Error() string { return f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }

// ReasonOf returns the reason of an error: that of a Failure, or of an error of the
// standard library.
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

// NeverFound reports whether the source's library has never been found.
func (s Status) NeverFound() bool {
	return s.Reason == ReasonLibraryMissing && s.LastSuccess.IsZero()
}

// Tried reports whether the source has been read once, has failed, or is closed on
// purpose.
func (s Status) Tried() bool { return !s.LastSuccess.IsZero() || s.Errors > 0 || s.Released }

// HungFor is how long the oldest read has not returned.
func (s Status) HungFor(now clock.Instant) time.Duration {
	if s.HungSince.IsZero() {
		return 0
	}
	return now.Since(s.HungSince)
}

// EndedFor is how long only another process has been able to read the source.
func (s Status) EndedFor(now clock.Instant) time.Duration {
	if s.EndedAt.IsZero() {
		return 0
	}
	return now.Since(s.EndedAt)
}

// Unread returns the names of sources that have neither been read nor failed,
// sorted.
func Unread(statuses []Status) []string {
	var names []string
	for _, status := range statuses {
		if !status.Tried() {
			names = append(names, status.Name)
		}
	}
	slices.Sort(names)
	return names
}
