package node

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// A unit is one device as the node role knows it from step to step: a piece
// of hardware, a partition, or a held device whose hardware is unknown.
type unit struct {
	uuid     string
	hardware bool // false: known by its published name alone
	device   device.Device
	source   string

	published   dra.PublishedDevice // last known; its ID is empty while unmatched
	isPublished bool
	inSlice     bool // the driver publishes it now

	at       clock.Instant // of the newest readings; zero: never read
	newer    bool          // they came in this step
	fresh    bool          // at is recent enough for gauges
	readings []device.Reading
	offsets  [device.Quantities + 1]int // of each quantity in readings
	size     float64                    // last known memory size, bytes; 0: unknown

	processes []device.Process // as listed last
	listedAt  clock.Instant    // zero: never
	split     *split           // nil: nothing is known of whose the processes are

	growth [meters]growth
	reason []reasonGrowth // of throttled time
	busy   tally

	pricing pricing

	xids   xidLog
	health health

	holders    holders
	seen       clock.Instant // last step that saw it, as hardware or as held
	present    bool          // seen in this step's samples
	wasPresent bool          // and in those of the step before
	labels     unitLabels
	slots      []*metric.Labels // labels of readings with details, by position
	slotted    []device.Reading // what slots were made for
}

// holders is who holds a unit in the present step.
type holders struct {
	claims  int  // distinct claims, admin access not counted
	plugins int  // distinct pods with device plugins
	related int  // holders of the parent, or of any partition; claims that may be holders
	cut     bool // it is made into partitions, or will be: somebody holds one
	shares  []consumption
	changed bool         // a claim has begun or ceased to hold it
	pods    []dra.PodRef // with device plugins, sorted
	before  []dra.PodRef // and those of the step before
}

// consumption is what one claim consumes of a device that several may share.
type consumption struct {
	claim    dra.ClaimRef
	consumed map[string]float64
}

// A growth is how much a quantity that accrues has grown between two reads,
// the earlier of which happened at the step named since. Only who held the
// device all the way from there gets it.
type growth struct {
	known  bool // the quantity has been read on this device
	based  bool // value is where the next growth begins
	value  float64
	at     clock.Instant // of the read that value is from
	step   uint64        // of that read
	amount float64
	over   float64 // seconds over which a gauge was integrated
	since  uint64  // 0: nothing has grown in this step
}

type reasonGrowth struct {
	reason string
	growth
}

// observe takes in a newer reading of a hardware counter. A counter that
// fell has counted from zero. It reports whether the hardware counter was
// reset.
func (g *growth) observe(value float64, at clock.Instant, step uint64) (reset bool) {
	switch {
	case !g.based:
		g.known, g.based, g.amount, g.since = true, true, 0, 0
	case value < g.value:
		g.amount, g.since, reset = value, g.step, true
	default:
		g.amount, g.since = value-g.value, g.step
	}
	g.value, g.at, g.step = value, at, step
	return reset
}

// integrate takes in a newer reading of a gauge and grows by its value over
// the time since the last one, unless that is longer than the limit.
func (g *growth) integrate(value float64, at clock.Instant, step uint64, limit time.Duration) {
	g.amount, g.since = 0, 0
	if elapsed := at.Since(g.at); g.based && elapsed <= limit {
		g.over = elapsed.Seconds()
		g.amount, g.since = value*g.over, g.step
	}
	g.known, g.based, g.value, g.at, g.step = true, true, value, at, step
}

// rest is what a growth does in a step without a new reading.
func (g *growth) rest() { g.amount, g.since = 0, 0 }

// take moves the unit to a sample of this step.
func (u *unit) take(sample device.Sample, step uint64, config Config) (resets int) {
	if u.source != sample.Source {
		u.forgetBases()
	}
	u.device, u.source, u.hardware, u.present = sample.Device, sample.Source, true, true
	u.processes, u.listedAt = sample.Processes, sample.ProcessesAt
	u.newer = !sample.At.IsZero() && sample.At != u.at
	if !u.newer {
		u.restGrowth()
		return 0
	}
	u.at, u.readings = sample.At, sample.Readings
	u.index()
	if size, ok := u.reading(device.MemorySize); ok {
		u.size = size
	}
	return u.grow(step, config.Staleness())
}

// forgetBases is for a device that another source reads from now on: its
// counters may have begun at another time.
func (u *unit) forgetBases() {
	for i := range u.growth {
		u.growth[i].based = false
	}
	for i := range u.reason {
		u.reason[i].based = false
	}
	u.health.watches = watches{}
}

func (u *unit) restGrowth() {
	for i := range u.growth {
		u.growth[i].rest()
	}
	for i := range u.reason {
		u.reason[i].rest()
	}
}

func (u *unit) grow(step uint64, limit time.Duration) (resets int) {
	u.restGrowth()
	if value, ok := u.reading(device.Utilization); ok {
		u.growth[meterBusy].integrate(value, u.at, step, limit)
	}
	for m := meterBusy + 1; m < meters; m++ {
		if value, ok := u.reading(m.quantity()); ok && u.growth[m].observe(value, u.at, step) {
			resets++
		}
	}
	for _, reading := range u.of(device.Throttled) {
		if u.throttled(reading.Details[0]).observe(reading.Value, u.at, step) {
			resets++
		}
	}
	return resets
}

func (u *unit) throttled(reason string) *growth {
	for i := range u.reason {
		if u.reason[i].reason == reason {
			return &u.reason[i].growth
		}
	}
	u.reason = append(u.reason, reasonGrowth{reason: reason})
	return &u.reason[len(u.reason)-1].growth
}

// index notes where each quantity begins; readings are sorted by quantity.
func (u *unit) index() {
	at := 0
	for q := range u.offsets {
		for at < len(u.readings) && int(u.readings[at].Quantity) < q {
			at++
		}
		u.offsets[q] = at
	}
}

// of returns the last readings of a quantity.
func (u *unit) of(q device.Quantity) []device.Reading {
	return u.readings[u.offsets[q]:u.offsets[q+1]]
}

// reading returns the last value of a quantity without details.
func (u *unit) reading(q device.Quantity) (float64, bool) {
	readings := u.of(q)
	if len(readings) == 0 {
		return 0, false
	}
	return readings[0].Value, true
}

// gauge returns the value of a quantity if it is recent enough.
func (u *unit) gauge(q device.Quantity) (float64, bool) {
	if !u.fresh {
		return 0, false
	}
	return u.reading(q)
}

// isHeld reports whether a claim or a pod with a device plugin holds the unit.
func (u *unit) isHeld() bool { return u.holders.claims+u.holders.plugins > 0 }

// attribution says how a holder's numbers relate to the unit's own.
func (u *unit) attribution() attribution {
	switch {
	case u.holders.claims+u.holders.plugins > 1 || u.holders.related > 0:
		return shared
	case u.device.IsPartition(), !u.hardware && u.published.IsPartition():
		return partition
	default:
		return exclusive
	}
}
