package device

import (
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// discoveryTimeout is how long a source may look for its devices before it
// counts as hung: a vendor's library may take seconds to wake the hardware.
// Devices that it finds after that still count, because nothing newer is known.
const discoveryTimeout = 10 * time.Second

// discovered has the result of a source that looked for its devices.
type discovered struct {
	readers []Reader
	err     error
}

// discovery determines when a source looks for its devices, and records how the
// last discovery ended.
type discovery struct {
	every   time.Duration // the interval
	began   clock.Instant // of the last one
	running bool
	late    bool          // it has not returned in time
	due     time.Duration // when, in elapsed time, the next one is to begin
	early   bool          // that is sooner than usual, after a failed round
	retry   backoff
	err     error // what the last one failed with
}

// roundFailed brings the next discovery forward after a round in which all
// readers failed.
func (d *discovery) roundFailed(now clock.Instant) {
	if d.running || d.early {
		return
	}
	d.early, d.due = true, min(d.due, now.Elapsed+d.retry.grow())
}

// roundSucceeded resets the retry interval after a round that succeeded.
func (d *discovery) roundSucceeded() {
	if d.err == nil {
		d.retry.reset()
	}
}

// start starts a discovery; the next one is due after the interval.
func (d *discovery) start(now clock.Instant) {
	d.began, d.running, d.early = now, true, false
	d.due = now.Elapsed + d.every
}

// expire reports whether the discovery has just become late, which is its error
// from then on.
func (d *discovery) expire(now clock.Instant) bool {
	if !d.running || d.late || now.Since(d.began) <= discoveryTimeout {
		return false
	}
	d.late = true
	d.err = &source.Failure{
		Reason: source.ReasonTimeout,
		Err:    fmt.Errorf("look for devices: no answer within %s", discoveryTimeout),
	}
	return true
}

// finish ends the discovery with its error, which may be nil.
func (d *discovery) finish(now clock.Instant, err error) {
	d.running, d.late, d.err = false, false, nil
	if err != nil {
		d.err = fmt.Errorf("look for devices: %w", err)
		d.due = now.Elapsed + d.retry.grow()
	}
}
