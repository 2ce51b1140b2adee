package node

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// watches is what the signals need to remember of earlier samples.
type watches struct {
	ecc            lastCount
	links          linkCount
	ports          []port
	thermal, brake throttleWindow
}

// lastCount notices that a hardware counter grew. What it had counted before
// it was first read is history.
type lastCount struct {
	based bool
	value float64
}

// grew takes in a reading. A counter that fell has counted from zero.
func (c *lastCount) grew(value float64, known bool) bool {
	if !known {
		return false
	}
	before, based := c.value, c.based
	c.value, c.based = value, true
	return based && (value > before || value < before && value > 0)
}

// downSamples is in how many samples on end a link must be seen down before
// it is believed: links are trained anew now and then.
const downSamples = 2

// linkCount compares how many links are active with the most that ever were.
type linkCount struct {
	most   float64
	missed int // samples on end with fewer
}

func (l *linkCount) observe(active float64) {
	l.most = max(l.most, active)
	l.missed++
	if active == l.most {
		l.missed = 0
	}
}

func (l *linkCount) down() bool { return l.missed >= downSamples }

// port is a port of a network device that has been seen active.
type port struct {
	name   string
	missed int
}

func (p port) down() bool { return p.missed >= downSamples }

// watchLinks takes in a newer sample's states of links. A link that never
// was active is not missed.
func (w *watches) watchLinks(u *unit) {
	for _, reading := range u.of(device.NVLinks) {
		if reading.Details[0] == "active" {
			w.links.observe(reading.Value)
		}
	}
	states := u.of(device.NetworkLinks)
	if len(states) == 0 {
		return
	}
	for i := range w.ports {
		w.ports[i].missed++
	}
	for _, reading := range states {
		if reading.Value > 0 && reading.Details[1] == "active" {
			w.active(reading.Details[0])
		}
	}
}

func (w *watches) active(name string) {
	at := slices.IndexFunc(w.ports, func(p port) bool { return p.name == name })
	if at < 0 {
		w.ports = append(w.ports, port{name: name})
		return
	}
	w.ports[at].missed = 0
}

// A throttleWindow holds for how long a device was throttled within the last
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

// add takes in what a sample adds to the throttled time. A time that grew
// over a gap longer than the limit may lie outside of the minute, and is left
// out.
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

// share is the part of the minute that was throttled, 0 to 1. A minute that
// has only begun counts as a whole.
func (w *throttleWindow) share() float64 {
	seconds := 0.0
	for _, slot := range w.slots {
		seconds += slot
	}
	return seconds / (throttleSlot * throttleSlots).Seconds()
}

// watchThrottling takes in how the throttled time grew. Reasons may hold at
// the same time, so the longest of them counts.
func (w *watches) watchThrottling(u *unit, limit time.Duration) {
	if len(u.reason) == 0 {
		return
	}
	hot, braked := 0.0, 0.0
	for i := range u.reason {
		g := &u.reason[i]
		switch {
		case g.since == 0:
		case thermal(g.reason):
			hot = max(hot, g.amount)
		case powerBrake(g.reason):
			braked = max(braked, g.amount)
		}
	}
	w.thermal.add(hot, u.at, limit)
	w.brake.add(braked, u.at, limit)
}
