package device

import (
	"context"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Reader reads devices that fail together: one GPU with its partitions, or
// everything behind one host engine. Read is never called while an earlier
// Read of the same Reader has not returned, even if its context has ended
// long ago: a call into a vendor's library cannot be cancelled.
type Reader interface {
	// Key identifies a reader among those of its source and stays the same
	// as long as the hardware does, over any number of calls of Readers.
	Key() string
	// Read returns each device with the readings of the tier: the fast
	// ones alone, or the fast and the slow. A quantity that a device does
	// not have is left out. Failures of single calls are joined into err
	// beside the observations that succeeded; no observation at all means
	// that the read failed. ctx ends when an answer would be too old to be
	// of use.
	Read(ctx context.Context, tier Tier) ([]Observation, error)
}

// Source finds the devices that one library, or one kind of file, can see.
type Source interface {
	// Name is the source's name in flags and metrics.
	Name() string
	// Readers lists what is there now. It is called again at each slow tier and
	// after a failure, never twice at a time, and connects again if a
	// connection was lost. Readers of hardware that is still there keep their
	// Key; the sampler goes on with the one it has. Readers that are returned
	// with an error could be listed nevertheless: they are added, and no
	// missing reader is removed.
	Readers(ctx context.Context) ([]Reader, error)
	// Close releases what the source holds. It is not called while a
	// call into the source hangs.
	Close() error
}

// ChangingSource is a Source whose devices may come and go while it runs, and that
// finds them quickly.
type ChangingSource interface {
	Source
	// LookEvery returns the interval between two calls of Readers, if it is shorter
	// than that of the slow tier.
	LookEvery() time.Duration
}

// EventSource is a Source that reports errors as they happen, however long its
// reads take. Its methods never wait, and are safe for concurrent use.
type EventSource interface {
	// XIDs returns the XIDs of each device that is watched, by its UUID:
	// sorted by code, and empty, not nil, where there have been none. Counts
	// never fall while the source lives. A device that ceases to be read,
	// because it has fallen off the bus, stays known as long as it is reported
	// here; one that was removed in good order (bound to another driver) should
	// not be reported. What is returned is shared and must not be changed.
	XIDs() map[string][]XID
	// Received returns up to when XIDs has every error of the devices in it, and
	// why errors of other devices are not received; nil if that is because they
	// report none. The zero instant is that of a source without a connection. If
	// a source has not received errors for long, its XIDs are not attached to
	// samples.
	Received() (clock.Instant, error)
	// Changed signals that XIDs has changed since the last signal.
	Changed() <-chan struct{}
}
