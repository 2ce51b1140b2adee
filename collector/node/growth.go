package node

import (
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// counters computes by how much the quantities of devices that accrue have
// grown. It comes after holders: while a holder may have ended, hardware
// counters are not observed, so that what they count meanwhile is divided when
// that is known.
type counters struct {
	staleness time.Duration
	specs     [device.Quantities]device.Spec
	resets    tally
}

// noise is how far a hardware counter may fall, as a part of its value, without
// having been reset: interpolated counters of energy fall by a little.
const noise = 0.01

// observe applies a measurement of a hardware counter, unless it is not newer
// than the last. A counter that fell has counted from zero, unless it fell by
// less than the noise. One of another origin has counted something else, and one
// that grew faster than hardware can has counted something that is not known: the next
// growth begins there. It reports whether the hardware counter was reset.
func (g *growth) observe(r *device.Reading, at device.Window, bounds *device.Bounds) (reset bool) {
	if g.origin != r.Origin {
		g.origin, g.based = r.Origin, false
	}
	if g.based && at.To <= g.at.To {
		return false
	}
	value := r.Value
	g.grew, g.reset, g.from = g.based, false, g.at
	if g.across = g.gap > 0 && at.To > g.gap; g.across {
		g.gap = 0
	}
	switch {
	case !g.based:
		g.amount = 0
	case value >= g.value:
		g.amount = value - g.value
	case value > g.value*(1-noise):
		g.amount, value = 0, g.value
	default:
		g.amount, g.reset = value, true
	}
	if g.based && !bounds.Grown(g.amount, g.from, at) {
		g.amount = 0
	}
	g.known, g.based, g.value, g.at = true, true, value, at
	if g.grew {
		g.rate = g.amount / (at.To - g.from.From).Seconds()
	}
	return g.reset
}

// integrate applies a measurement of a gauge: the growth is its value over the
// time since the last one, unless that is longer than the limit.
func (g *growth) integrate(value float64, at device.Window, limit time.Duration) {
	if g.based && at.To <= g.at.To {
		return
	}
	g.grew, g.from = g.based && at.To-g.at.To <= limit, g.at
	if g.grew {
		g.amount = value * (at.To - g.at.To).Seconds()
	}
	g.known, g.based, g.value, g.at = true, true, value, at
}

// begin begins a step.
func (g *growth) begin() { g.amount, g.grew, g.reset = 0, false, false }

// share is the part of the growth, 0 to 1, that certainly falls into a time:
// all of it where the time covers both measurements, else its part of the time
// between them. The growth of a counter that was reset cannot be divided, nor growth
// while the device was released: when it grew was not observed.
func (g *growth) share(start, end time.Duration) float64 {
	switch {
	case start <= g.from.From && g.at.To <= end:
		return 1
	case g.reset, g.across:
		return 0
	}
	gap := min(end, g.at.From) - max(start, g.from.To)
	if gap <= 0 {
		return 0
	}
	return gap.Seconds() / (g.at.To - g.from.From).Seconds()
}

func newCounters(config Config) *counters {
	return &counters{staleness: config.Staleness(), specs: device.Specs()}
}

// update observes the readings of the step, and, if it is certain which devices are
// held, what the others draw. Its events are about counters that were reset.
func (s *counters) update(all []*deviceState, holdersKnown bool, now clock.Instant) []Event {
	s.resets.open(now.Wall)
	var events []Event
	lowest := sync.OnceValue(func() map[string]float64 { return lowestIdlePower(all) })
	for _, d := range all {
		g := &d.growth
		resets := g.update(&s.specs, s.staleness, d.holders.missing)
		s.updateExecutionIdle(d, lowest, holdersKnown)
		if resets > 0 {
			s.resets.total += float64(resets)
			events = append(events, Event{slog.LevelInfo, "hardware counters were reset", []slog.Attr{slog.String("uuid", d.uuid), slog.Int("counters", resets)}})
		}
		if busy := &g.meters[meterBusy]; busy.known {
			g.busy.add(busy.amount, now.Wall)
		}
	}
	return events
}

// updateExecutionIdle observes the idle power of a device that nothing holds, and whether
// one that is held is execution-idle. While a holder may have ended nothing is observed.
// Lowest returns the lowest idle power of each model.
func (s *counters) updateExecutionIdle(d *deviceState, lowest func() map[string]float64, holdersKnown bool) {
	g, holders := &d.growth, &d.holders
	if !d.newer || holders.missing {
		return
	}
	utilization, power := d.of(device.Utilization), d.of(device.Power)
	switch {
	case len(utilization) == 0 || len(power) == 0:
		g.forgetExecutionIdle()
	case holders.count() > 0 || holders.related > 0:
		g.accrueExecutionIdle(findIdlePower(d, lowest), s.staleness)
	case holders.possible > 0:
		g.forgetExecutionIdle()
	default:
		g.forgetExecutionIdle()
		if holdersKnown && utilization[0].Value == 0 {
			g.idle.observe(power[0].Value)
		}
	}
}

// findIdlePower returns the idle power of a device, in watts: its own, else the lowest of a
// device of the same model on the node; NaN: none is known.
func findIdlePower(d *deviceState, lowest func() map[string]float64) float64 {
	watts := d.growth.idle.watts()
	if !math.IsNaN(watts) {
		return watts
	}
	if watts, ok := lowest()[d.model()]; ok {
		return watts
	}
	return math.NaN()
}

// lowestIdlePower returns the lowest idle power of the devices of each model, in watts.
func lowestIdlePower(all []*deviceState) map[string]float64 {
	lowest := make(map[string]float64)
	for _, d := range all {
		watts := d.growth.idle.watts()
		if known, ok := lowest[d.model()]; !math.IsNaN(watts) && (!ok || watts < known) {
			lowest[d.model()] = watts
		}
	}
	return lowest
}

// update observes the readings of the step. While counters are deferred, only
// the utilization is observed.
func (g *deviceGrowth) update(specs *[device.Quantities]device.Spec, limit time.Duration, deferred bool) (resets int) {
	g.begin()
	d := g.device
	if d.released {
		g.release()
	}
	if readings := d.of(device.Utilization); d.newer && len(readings) > 0 {
		g.meters[meterBusy].integrate(readings[0].Value, d.measured(&readings[0]), limit)
	}
	g.unread = g.unread || d.newer
	if deferred || !g.unread {
		return 0
	}
	g.unread = false
	for m := range meters {
		if !m.isCounter() {
			continue
		}
		if readings := d.of(m.quantity()); len(readings) > 0 && g.meters[m].observe(&readings[0], d.measured(&readings[0]), &specs[m.quantity()].Bounds) {
			resets++
		}
	}
	throttled := d.of(device.Throttled)
	for i := range throttled {
		if g.throttledBy(throttled[i].Details[0]).observe(&throttled[i], d.measured(&throttled[i]), &specs[device.Throttled].Bounds) {
			resets++
		}
	}
	return resets
}

// begin begins a step. The counters of another source may have begun at
// another time.
func (g *deviceGrowth) begin() {
	sameSource := g.source == g.device.source
	g.source = g.device.source
	for i := range g.meters {
		g.meters[i].begin()
		g.meters[i].based = g.meters[i].based && sameSource
	}
	for i := range g.throttled {
		g.throttled[i].begin()
		g.throttled[i].based = g.throttled[i].based && sameSource
	}
}

// release records that the growth of counters has not been observed since the last reading.
func (g *deviceGrowth) release() {
	start := g.device.at.Elapsed
	for i := range g.meters {
		g.meters[i].gap = start
	}
	for i := range g.throttled {
		g.throttled[i].gap = start
	}
}

// oldest is the earliest measurement since which something is still to grow.
func (g *deviceGrowth) oldest() time.Duration {
	oldest := g.device.at.Elapsed
	for i := range g.meters {
		if m := &g.meters[i]; m.based {
			oldest = min(oldest, m.at.From)
		}
	}
	for i := range g.throttled {
		if t := &g.throttled[i]; t.based {
			oldest = min(oldest, t.at.From)
		}
	}
	return oldest
}

func (g *deviceGrowth) throttledBy(reason string) *growth {
	for i := range g.throttled {
		if g.throttled[i].reason == reason {
			return &g.throttled[i].growth
		}
	}
	g.throttled = append(g.throttled, reasonGrowth{reason: reason})
	return &g.throttled[len(g.throttled)-1].growth
}
