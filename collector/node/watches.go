package node

import (
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// watches is what the signals depend on of earlier samples.
type watches struct {
	ecc            lastCount
	links          linkCount
	ports          ports
	thermal, brake throttleWindow
}

// lastCount detects that a hardware counter grew. What it had counted before it
// was first read does not count, nor what one of another origin has counted.
type lastCount struct {
	based  bool
	origin uint16
	value  float64
}

// grew applies a reading; nil: there is none. A counter that fell has counted from zero.
func (c *lastCount) grew(r *device.Reading) bool {
	if r == nil {
		return false
	}
	previous := *c
	c.value, c.origin, c.based = r.Value, r.Origin, true
	return previous.based && previous.origin == c.origin && (c.value > previous.value || c.value < previous.value && c.value > 0)
}

// linkDelay is how long NVLinks must have been down before that is a signal:
// links are trained again now and then, and a value of DCGM, which is repeated
// for 5 s, must have been read twice.
const linkDelay = 6 * time.Second

// portDelay is how long a port must have been down before that is a signal. A
// RoCE port goes down whenever its interface is moved into the network
// namespace of a pod, or back.
const portDelay = time.Minute

// downtime is how long something has been down, by all samples that have it.
type downtime struct {
	since, last clock.Instant // the first and the newest of these samples; zero: it is up
}

// observe applies a sample. What happened between samples that are further apart
// than the limit is not known, so the time begins again.
func (d *downtime) observe(down bool, at clock.Instant, limit time.Duration) {
	switch {
	case !down:
		*d = downtime{}
	case d.last.IsZero() || at.Since(d.last) > limit:
		d.since, d.last = at, at
	default:
		d.last = at
	}
}

// until is how long it has been down at the time of a sample; zero if the sample
// does not have it.
func (d downtime) until(at clock.Instant) time.Duration {
	if d.last != at {
		return 0
	}
	return at.Since(d.since)
}

// linkCount compares how many links are active with the most that ever were in several
// samples in a row: a single sample may be wrong.
type linkCount struct {
	recent [linkSamples]float64
	most   float64
	down   downtime
}

const linkSamples = 3

func (l *linkCount) observe(active float64, at clock.Instant, limit time.Duration) {
	copy(l.recent[:], l.recent[1:])
	l.recent[linkSamples-1] = active
	l.most = max(l.most, slices.Min(l.recent[:]))
	l.down.observe(active < l.most, at, limit)
}

func (l *linkCount) missed(at clock.Instant) bool { return l.down.until(at) > linkDelay }

// ports are those of a network device that have been seen active.
type ports []port

type port struct {
	name string
	down downtime
}

func (p *ports) observe(name string, active bool, at clock.Instant, limit time.Duration) {
	i := slices.IndexFunc(*p, func(known port) bool { return known.name == name })
	switch {
	case i >= 0:
		(*p)[i].down.observe(!active, at, limit)
	case active:
		*p = append(*p, port{name: name})
	}
}

func (p ports) missed(at clock.Instant) bool {
	return slices.ContainsFunc(p, func(known port) bool { return known.down.until(at) >= portDelay })
}

// restart begins the time again that each port has been down.
func (p ports) restart() {
	for i := range p {
		p[i].down = downtime{}
	}
}

// observeLinks applies a newer sample's states of links. A link that never was
// active is not missed.
func (w *watches) observeLinks(d *deviceState, limit time.Duration) {
	for _, reading := range d.of(device.NVLinks) {
		if reading.Details[0] == "active" {
			w.links.observe(reading.Value, d.at, limit)
		}
	}
	for _, reading := range d.of(device.NetworkLinks) {
		if reading.Value > 0 {
			w.ports.observe(reading.Details[0], reading.Details[1] == "active", d.at, limit)
		}
	}
}

// throttleWindow is for how long a device was throttled within the last
// minute, in slots of five seconds.
type throttleWindow struct {
	slots [throttleSlots]float64 // seconds
	slot  int64                  // the present one, counted since Elapsed was zero
	at    clock.Instant          // of the newest sample; zero: none
}

const (
	throttleSlot  = 5 * time.Second
	throttleSlots = 12
)

// add adds the throttled time of a sample, seconds. A time that grew over a gap
// longer than the limit may be outside of the minute, and is left out.
func (w *throttleWindow) add(seconds float64, at clock.Instant, limit time.Duration) {
	slot := int64(at.Elapsed / throttleSlot)
	for passed := min(slot-w.slot, throttleSlots); passed > 0; passed-- {
		w.slots[(slot-passed+1)%throttleSlots] = 0
	}
	if !w.at.IsZero() && at.Since(w.at) <= limit {
		w.slots[slot%throttleSlots] += seconds
	}
	w.slot, w.at = slot, at
}

// share is the part of the minute that was throttled, 0 to 1. A minute that has
// only begun counts as a whole one.
func (w *throttleWindow) share() float64 {
	seconds := 0.0
	for _, slot := range w.slots {
		seconds += slot
	}
	return seconds / (throttleSlot * throttleSlots).Seconds()
}

// observeThrottling applies the growth of the throttled time. Reasons may apply
// at the same time, so the longest of them counts.
func (w *watches) observeThrottling(g *deviceGrowth, limit time.Duration) {
	if len(g.throttled) == 0 {
		return
	}
	hot, braked := 0.0, 0.0
	for i := range g.throttled {
		t := &g.throttled[i]
		switch {
		case !t.grew:
		case thermal(t.reason):
			hot = max(hot, t.amount)
		case powerBrake(t.reason):
			braked = max(braked, t.amount)
		}
	}
	w.thermal.add(hot, g.device.at, limit)
	w.brake.add(braked, g.device.at, limit)
}

// thermal and powerBrake classify the reasons of throttled time. A power limit
// that software enforces is normal operation, and neither.
func thermal(reason string) bool { return strings.Contains(reason, "thermal") }

func powerBrake(reason string) bool { return strings.Contains(reason, "power_brake") }
