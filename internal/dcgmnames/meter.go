package dcgmnames

import (
	"math"
	"time"
)

// meters are the meters of one device, in the order of counterRates.
type meters [4]growthMeter

// growthMeter measures the growth of a counter of a device from one reading to the next.
// Snapshots are more frequent than readings, and at other times: the growth between
// two readings is divided by the time between the snapshots that first showed them.
type growthMeter struct {
	value float64
	at    time.Duration // of the snapshot that first showed the value
	rate  float64       // NaN: unknown
	seen  bool          // the counter has a value
	timed bool          // at is when the value was read, or earlier
}

// meterTiming has the times of a Translator's meters.
type meterTiming struct {
	quiet time.Duration // a counter without growth for this long has the rate 0
	stale time.Duration // readings that are farther apart have no rate
}

// observe observes the counter's value in the snapshot at now, and returns the growth
// a second; NaN: unknown. The value is NaN if there is none; fresh means that the
// device can be read.
func (m *growthMeter) observe(value float64, fresh bool, now time.Duration, t meterTiming) float64 {
	passed := now - m.at
	switch {
	case math.IsNaN(value):
		*m = growthMeter{rate: math.NaN()}
	case !m.seen || passed > t.stale:
		// The time of the reading is unknown; it is before now.
		*m = growthMeter{value: value, at: now, rate: math.NaN(), seen: true}
	case value < m.value:
		*m = growthMeter{value: value, at: now, rate: math.NaN(), seen: true, timed: true}
	case !fresh:
		m.rate = math.NaN()
	case value > m.value && passed > 0:
		m.rate = m.growth(value, passed)
		m.value, m.at, m.timed = value, now, true
	case value == m.value && passed >= t.quiet:
		// The next growth begins within the quiet time. Its rate is computed over too
		// long a time rather than over too short a time.
		m.rate, m.at, m.timed = 0, now-t.quiet, true
	}
	return m.rate
}

func (m *growthMeter) growth(value float64, passed time.Duration) float64 {
	if !m.timed {
		return math.NaN()
	}
	return (value - m.value) / passed.Seconds()
}
