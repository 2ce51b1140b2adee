// Package clock reads the time in the two ways that accounting needs: the time
// of the wall clock, and how much time has really passed.
package clock

import "time"

// Instant is one moment. Wall is what people and other machines call it;
// it may jump. Elapsed counts steadily from an arbitrary origin of this
// process, never backwards, and is what durations are computed from. An
// Instant without Elapsed and Wall means "never".
type Instant struct {
	Wall    time.Time
	Elapsed time.Duration
}

// Clock returns the current instant. It is safe for concurrent use.
type Clock func() Instant

// System returns the clock of this process. Its origin lies one nanosecond
// before the call, so that no instant of it is zero.
func System() Clock {
	origin := time.Now().Add(-1)
	return func() Instant {
		now := time.Now()
		return Instant{Wall: now.Round(0), Elapsed: now.Sub(origin)}
	}
}

// UntilNext returns the time until the next multiple of an interval, by the wall clock.
// Loops that wake at the same moments wake the process once: waking it costs more than
// most of what they do.
func UntilNext(interval time.Duration) time.Duration {
	now := time.Now().Round(0)
	return now.Truncate(interval).Add(interval).Sub(now)
}

// Since is the time that really passed between an earlier instant and i.
func (i Instant) Since(earlier Instant) time.Duration { return i.Elapsed - earlier.Elapsed }

// IsZero reports whether the instant means "never".
func (i Instant) IsZero() bool { return i.Elapsed == 0 && i.Wall.IsZero() }

// Add moves the instant by d.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Wall: i.Wall.Add(d), Elapsed: i.Elapsed + d}
}
