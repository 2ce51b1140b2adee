package device

import (
	"errors"
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// errNothingSeen is what a read failed with that came back with no device
// and without an error.
var errNothingSeen = errors.New("no device was seen")

// report tells the tracker how the round went: a failure when no reader was
// of use, an impairment when something is amiss, else a success.
func (l *loop) report() {
	useful, failed, first := l.count()
	switch {
	case useful == 0 && failed == 0:
		// Nothing is there to be read: what discovery said stands.
	case useful == 0:
		l.tracker.Report(l.failure(first, failed, source.ReasonTimeout))
		l.discovery.hasten(l.now())
	default:
		l.discovery.calm()
		if err := l.impairment(first, failed); err != nil {
			l.tracker.Impair(err)
		} else {
			l.tracker.Report(nil)
		}
	}
}

// count says how many readers were of use in the round and how many failed,
// wholly or in part, and which was the first to fail, those that hang before
// all others. A reader that was not asked in the round says nothing.
func (l *loop) count() (useful, failed int, first *seat) {
	for _, s := range l.seats {
		late := s.busy()
		if s.gone || !late && s.taken != l.round {
			continue
		}
		if !late && !s.empty {
			useful++
		}
		if !late && s.err == nil && !s.empty {
			continue
		}
		failed++
		if first == nil || late && !first.busy() {
			first = s
		}
	}
	return useful, failed, first
}

// impairment is what is amiss with a source that works, or nil.
func (l *loop) impairment(first *seat, failed int) error {
	switch {
	case failed > 0:
		return l.failure(first, failed, source.ReasonDeviceTimeout)
	case len(l.duplicates) > 0:
		return &source.Failure{
			Reason: source.ReasonDuplicateUUID,
			Err:    fmt.Errorf("%d devices are seen twice, the first: %s", len(l.duplicates), l.duplicates[0]),
		}
	default:
		return l.discovery.err
	}
}

// failure describes the readers that failed by the first of them. late is the
// reason where that one has not answered.
func (l *loop) failure(first *seat, failed int, late source.Reason) error {
	if first.busy() {
		limit := time.Duration(l.patience) * l.interval
		return &source.Failure{Reason: late, Err: fmt.Errorf(
			"%d of %d readers failed, the first: read %s: no answer within %s", failed, len(l.seats), first.key, limit)}
	}
	reason := source.ReasonOf(first.err)
	switch reason {
	case source.ReasonTimeout:
		reason = late
	case source.ReasonNone, source.ReasonOther:
		reason = source.ReasonDeviceError
	}
	err := first.err
	if err == nil {
		err = errNothingSeen
	}
	return &source.Failure{Reason: reason, Err: fmt.Errorf(
		"%d of %d readers failed, the first: read %s: %w", failed, len(l.seats), first.key, err)}
}
