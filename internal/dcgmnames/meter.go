package dcgmnames

import (
	"math"
	"time"
)

// meters are those of one device, in the order of counted.
type meters [4]meter

// meter tells how fast a counter of a device grows, from one reading to the
// next. Snapshots come more often than readings, and not at the same moments:
// the growth between two readings belongs to the time between the snapshots
// that first showed them.
type meter struct {
	value float64
	at    time.Duration // of the snapshot that first showed the value
	rate  float64       // NaN: unknown
	seen  bool          // the counter has a value
	sharp bool          // at is when the value was read, or earlier
}

// patience is how the meters of a Translator take their time.
type patience struct {
	quiet time.Duration // without growth for so long, a counter stands still
	stale time.Duration // readings that are farther apart make no rate
}

// newPatience waits for growth until the next reading must have come: those
// of a device that answers are an interval apart or a little more, and seconds
// where the interval is short and the device slow.
func newPatience(o Options) patience {
	return patience{quiet: max(2*o.Interval, 3*time.Second), stale: o.Staleness}
}

// take takes in the counter's value in the snapshot of the given moment, and
// returns the growth a second: NaN where it is unknown. A value that is NaN
// means that there is none; fresh, that the device can be read.
func (m *meter) take(value float64, fresh bool, now time.Duration, pace patience) float64 {
	passed := now - m.at
	switch {
	case math.IsNaN(value):
		*m = meter{rate: math.NaN()}
	case !m.seen || passed > pace.stale:
		// When the value was read is not known, only that it was before now.
		*m = meter{value: value, at: now, rate: math.NaN(), seen: true}
	case value < m.value:
		*m = meter{value: value, at: now, rate: math.NaN(), seen: true, sharp: true}
	case !fresh:
		m.rate = math.NaN()
	case value > m.value && passed > 0:
		m.rate = m.growth(value, passed)
		m.value, m.at, m.sharp = value, now, true
	case value == m.value && passed >= pace.quiet:
		// The next growth began within the quiet time: it is taken over too
		// long a time rather than over too short a one.
		m.rate, m.at, m.sharp = 0, now-pace.quiet, true
	}
	return m.rate
}

func (m *meter) growth(value float64, passed time.Duration) float64 {
	if !m.sharp {
		return math.NaN()
	}
	return (value - m.value) / passed.Seconds()
}
