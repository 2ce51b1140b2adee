package device

import (
	"cmp"
	"fmt"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// readerCounts is the state of the readers of a source: what each returned
// last, or that it is overdue. A reader that has never returned counts only
// once it is overdue.
type readerCounts struct {
	all     int
	useful  int // readers that were useful, wholly or in part
	failed  int // readers that failed, wholly or in part
	overdue int // those of them that have not returned
	first   *readerState
	err     error // what the first one failed with, an overdue one before all others
}

// countReaders counts the readers; an overdue one has failed with what tooLate returns.
func countReaders(readers []*readerState, isOverdue func(*readerState) bool, tooLate func() error) (c readerCounts) {
	c.all = len(readers)
	for _, s := range readers {
		overdue := isOverdue(s)
		if s.removed || !overdue && !s.answered {
			continue
		}
		err := cmp.Or(s.err, s.slowErr)
		if overdue {
			err = tooLate()
		}
		if !overdue && !s.failed {
			c.useful++
		}
		if err == nil {
			continue
		}
		if c.failed++; c.first == nil || overdue && c.overdue == 0 {
			c.first, c.err = s, err
		}
		if overdue {
			c.overdue++
		}
	}
	return c
}

// impairment returns why a source that works is impaired, or nil.
func (c *readerCounts) impairment(duplicates []string, discovery, events error) error {
	switch {
	case c.failed > 0:
		return c.failure(source.ReasonDeviceTimeout)
	case len(duplicates) > 0:
		return &source.Failure{
			Reason: source.ReasonDuplicateUUID,
			Err:    fmt.Errorf("%d devices are seen twice, the first: %s", len(duplicates), duplicates[0]),
		}
	case discovery != nil:
		return discovery
	default:
		return events
	}
}

// failure describes the readers that failed by the first of them. timeout is
// the reason where that one did not return in time.
func (c *readerCounts) failure(timeout source.Reason) error {
	reason := source.ReasonOf(c.err)
	switch reason {
	case source.ReasonTimeout:
		reason = timeout
	case source.ReasonNone, source.ReasonOther:
		reason = source.ReasonDeviceError
	}
	return &source.Failure{Reason: reason, Err: fmt.Errorf(
		"%d of %d readers failed, the first: read %s: %w", c.failed, c.all, c.first.key, c.err)}
}
