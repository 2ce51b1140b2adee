package simulated

import (
	"math"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// unit is a device or a partition as it is now: a function of the time, and
// of what happened to its load and its counters so far.
type unit struct {
	identity device.Device
	series   []series
	load     float64
	since    float64       // seconds: the load has been the same since then
	reset    float64       // seconds: resets up to then have been heeded
	base     []float64     // of each counter, by its series: its value at since
	shown    []float64     // of each counter: the value last shown
	samples  []sample      // of each series that is sampled every so often
	origin   time.Duration // when, in elapsed time of the clock, the seconds began

	processes []Process // nil: they cannot be listed
}

// sample is what a series showed when it was sampled last.
type sample struct {
	taken     bool
	at, value float64
}

func newUnit(d Device, now float64, origin time.Duration) unit {
	u := unit{
		identity: d.Identity, series: d.series, load: d.Load, since: now,
		base: make([]float64, len(d.series)), shown: make([]float64, len(d.series)),
		samples: make([]sample, len(d.series)), origin: origin, processes: d.Processes,
	}
	for i := range u.series {
		u.base[i] = u.series[i].start
	}
	u.expect(now)
	return u
}

// expect heeds resets from now on, one at this very instant among them.
func (u *unit) expect(now float64) { u.reset = math.Nextafter(now, math.Inf(-1)) }

// advance carries the counters forward to a time, over resets on the way.
func (u *unit) advance(now float64, f faults) {
	for _, reset := range f.resets(u.reset, now) {
		clear(u.base)
		clear(u.shown)
		u.since = reset
	}
	u.reset = now
	for i := range u.series {
		if !u.series[i].counter {
			continue
		}
		u.base[i] += u.series[i].counted(u.since, now, u.load)
	}
	u.since = now
}

// inherit takes over the counters of the same device under an older file.
func (u *unit) inherit(old unit) {
	for i := range u.series {
		for j := range old.series {
			if u.series[i].quantity == old.series[j].quantity && u.series[i].details == old.series[j].details {
				u.base[i], u.shown[i], u.samples[i] = old.base[j], old.shown[j], old.samples[j]
			}
		}
	}
}

// observe reads what the unit shows, but not the quantities that fail.
func (u *unit) observe(now float64, f faults, wanted device.Tier) device.Observation {
	if len(f.resets(u.reset, now)) > 0 {
		u.advance(now, f)
	}
	o := device.Observation{Device: u.identity, Readings: make([]device.Reading, 0, len(u.series))}
	for i := range u.series {
		s := &u.series[i]
		if _, fails := f.at(now, "error", s.name); fails {
			continue
		}
		reading := device.Reading{Quantity: s.quantity, Details: s.details}
		if s.sampled > 0 {
			reading.Value, reading.Measured = u.sampled(i, now, f)
		} else {
			reading.Value = u.present(i, now, f)
		}
		switch {
		case tier(s.quantity) == device.Fast:
			o.Readings = append(o.Readings, reading)
		case wanted == device.Slow:
			o.Slow = append(o.Slow, reading)
		}
	}
	return o
}

// sampled is the last sample of a series, and when it was taken: by the first
// read of each period.
func (u *unit) sampled(i int, now float64, f faults) (float64, device.Window) {
	last, every := &u.samples[i], u.series[i].sampled
	if !last.taken || math.Floor(now/every) > math.Floor(last.at/every) {
		*last = sample{taken: true, at: now, value: u.present(i, now, f)}
	}
	at := u.origin + time.Duration(math.Round(last.at*float64(time.Second)))
	return last.value, device.Window{From: at, To: at}
}

// present is what one series shows, or what a fault has it show instead.
func (u *unit) present(i int, now float64, f faults) float64 {
	if value, set := f.set(now, &u.series[i]); set {
		return value
	}
	return u.value(i, now)
}

// value is what one series shows. A counter never falls, not even by what
// floating-point numbers lose.
func (u *unit) value(i int, now float64) float64 {
	s := &u.series[i]
	if !s.counter {
		return s.gauge(now, u.load)
	}
	u.shown[i] = max(u.shown[i], u.base[i]+s.counted(u.since, now, u.load))
	return u.shown[i]
}
