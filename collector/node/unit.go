package node

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// holders is who holds a unit in the present step.
type holders struct {
	claims   int  // distinct claims, admin access not counted
	plugins  int  // distinct pods with device plugins
	related  int  // holders of the parent, or of any partition; claims that may be holders
	siblings int  // holders of other compute instances of its GPU instance
	cut      bool // it is made into partitions, or will be: somebody holds one
	shares   []consumption
	changed  bool // a claim has begun or ceased to hold it
	missing  bool // the pods of a claim that holds it may have ended, see claimView

	listedOnly bool         // a claim that only the kubelet's List reports: it may have admin access
	inGroup    bool         // a claim whose device-seconds no node counts, see charging
	pods       []dra.PodRef // with device plugins, sorted
	before     []dra.PodRef // and those of the step before
}

// consumption is what one claim consumes of a device that several may share.
type consumption struct {
	claim    dra.ClaimRef
	consumed map[string]float64
}

// A growth is how much a quantity that accrues has grown between two of its
// measurements.
type growth struct {
	known  bool          // the quantity has been read on this device
	based  bool          // value is where the next growth begins
	value  float64       // of a counter: the highest since its last reset
	at     device.Window // when value was measured
	grew   bool          // there is a newer measurement in this step
	reset  bool          // the counter began again at zero between the two
	amount float64
	from   device.Window // the measurement before
}

type reasonGrowth struct {
	reason string
	growth
}

// noise is how far a hardware counter may fall, as a part of its value,
// without having been reset: a counter that began again at zero is not nearly
// where it was. Counters of energy that are interpolated do so.
const noise = 0.01

// observe takes in a measurement of a hardware counter. One that is not newer
// than the last says nothing. A counter that fell has counted from zero, unless
// it fell by next to nothing. It reports whether the hardware counter was
// reset.
func (g *growth) observe(value float64, at device.Window) (reset bool) {
	if g.based && at.To <= g.at.To {
		return false
	}
	g.grew, g.reset, g.from = g.based, false, g.at
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
	g.known, g.based, g.value, g.at = true, true, value, at
	return g.reset
}

// integrate takes in a measurement of a gauge and grows by its value over the
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

// rest is what a growth does in a step without a new measurement.
func (g *growth) rest() { g.amount, g.grew, g.reset = 0, false, false }

// share is the part of the growth, 0 to 1, that certainly falls into a time:
// all of it where the time covers both measurements, else as much as it has of
// the time between them. A counter that began again at zero says nothing of
// parts.
func (g *growth) share(from, to time.Duration) float64 {
	switch {
	case from <= g.from.From && g.at.To <= to:
		return 1
	case g.reset:
		return 0
	}
	between := min(to, g.at.From) - max(from, g.from.To)
	if between <= 0 {
		return 0
	}
	return between.Seconds() / (g.at.To - g.from.From).Seconds()
}

// forgetBases is for a device that another source reads from now on: its
// counters may have begun at another time.
func (u *deviceState) forgetBases() {
	for i := range u.growth {
		u.growth[i].based = false
	}
	for i := range u.reason {
		u.reason[i].based = false
	}
	u.health.watches = watches{}
}

func (u *deviceState) restGrowth() {
	for i := range u.growth {
		u.growth[i].rest()
	}
	for i := range u.reason {
		u.reason[i].rest()
	}
}

// grow takes in what the readings of this step add to what the unit accrues.
// While a holder may have ended, hardware counters wait: what they count
// meanwhile is shared out once that is known.
func (u *deviceState) grow(limit time.Duration) (resets int) {
	u.restGrowth()
	if readings := u.of(device.Utilization); u.newer && len(readings) > 0 {
		u.growth[meterBusy].integrate(readings[0].Value, u.measured(&readings[0]), limit)
	}
	u.unread = u.unread || u.newer
	if u.holders.missing || !u.unread {
		return 0
	}
	u.unread = false
	for m := meterBusy + 1; m < meters; m++ {
		if readings := u.of(m.quantity()); len(readings) > 0 && u.growth[m].observe(readings[0].Value, u.measured(&readings[0])) {
			resets++
		}
	}
	throttled := u.of(device.Throttled)
	for i := range throttled {
		if u.throttled(throttled[i].Details[0]).observe(throttled[i].Value, u.measured(&throttled[i])) {
			resets++
		}
	}
	return resets
}

// oldest is the earliest measurement from which something is yet to grow.
func (u *deviceState) oldest() time.Duration {
	oldest := u.at.Elapsed
	for i := range u.growth {
		if g := &u.growth[i]; g.based {
			oldest = min(oldest, g.at.From)
		}
	}
	for i := range u.reason {
		if g := &u.reason[i]; g.based {
			oldest = min(oldest, g.at.From)
		}
	}
	return oldest
}

func (u *deviceState) throttled(reason string) *growth {
	for i := range u.reason {
		if u.reason[i].reason == reason {
			return &u.reason[i].growth
		}
	}
	u.reason = append(u.reason, reasonGrowth{reason: reason})
	return &u.reason[len(u.reason)-1].growth
}

// isHeld reports whether a claim or a pod with a device plugin holds the unit.
func (u *deviceState) isHeld() bool { return u.holders.claims+u.holders.plugins > 0 }

// attribution says how a holder's numbers relate to the unit's own.
func (u *deviceState) attribution() attribution {
	switch {
	case u.holders.claims+u.holders.plugins > 1 || u.holders.related > 0:
		return shared
	case u.device.IsPartition(), !u.hardware && u.published.IsPartition():
		return partition
	default:
		return exclusive
	}
}
