package device

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// tally is how the readers of a source are: what each said last, or that it
// has not answered for too long. One that has never answered says nothing
// before that.
type tally struct {
	useful  int // readers that were of use, wholly or in part
	failed  int // readers that failed, wholly or in part
	overdue int // those of them that have not answered
	first   *seat
	err     error // what the first one failed with, an overdue one before all others
}

// report tells the tracker how the source is: a failure when no reader was of
// use, an impairment when something is amiss, else a success. Nothing is told
// where nothing has happened since the last report.
func (l *loop) report() {
	t := l.count()
	if !l.answered && t.overdue == 0 {
		return
	}
	l.answered = false
	switch {
	case t.useful == 0 && t.failed == 0:
		// Nothing is there to be read: what discovery said stands.
	case t.useful == 0:
		l.tracker.Report(l.failure(t, source.ReasonTimeout))
		l.discovery.hasten(l.now())
	default:
		l.discovery.calm()
		if err := l.impairment(t); err != nil {
			l.tracker.Impair(err)
		} else {
			l.tracker.Report(nil)
		}
	}
}

// count makes the tally.
func (l *loop) count() (t tally) {
	for _, s := range l.seats {
		overdue := l.overdue(s)
		if s.gone || !overdue && !s.answered {
			continue
		}
		err := cmp.Or(s.err, s.slowErr)
		if overdue {
			err = l.tooLate()
		}
		if !overdue && !s.failed {
			t.useful++
		}
		if err == nil {
			continue
		}
		if t.failed++; t.first == nil || overdue && t.overdue == 0 {
			t.first, t.err = s, err
		}
		if overdue {
			t.overdue++
		}
	}
	return t
}

// tooLate is what an overdue read failed with.
func (l *loop) tooLate() error {
	limit := time.Duration(2*l.patience) * l.interval
	return &source.Failure{Reason: source.ReasonTimeout, Err: fmt.Errorf("no answer within %s", limit)}
}

// impairment is what is amiss with a source that works, or nil.
func (l *loop) impairment(t tally) error {
	switch {
	case t.failed > 0:
		return l.failure(t, source.ReasonDeviceTimeout)
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
// reason where that one did not answer in time.
func (l *loop) failure(t tally, late source.Reason) error {
	reason := source.ReasonOf(t.err)
	switch reason {
	case source.ReasonTimeout:
		reason = late
	case source.ReasonNone, source.ReasonOther:
		reason = source.ReasonDeviceError
	}
	return &source.Failure{Reason: reason, Err: fmt.Errorf(
		"%d of %d readers failed, the first: read %s: %w", t.failed, len(l.seats), t.first.key, t.err)}
}
