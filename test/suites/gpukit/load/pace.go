package load

import (
	"math"
	"time"
)

// launch is how long one launch should take: long enough that starting it does
// not count, and short enough that the device can do other work between two.
const launch = 2 * time.Millisecond

// pace decides how much work to submit, so that the device is busy for a part
// of each period. It knows nothing of the device: it learns from what the work
// has taken, and what a period has had too much or too little is made up for
// in the next.
type pace struct {
	busy    float64 // seconds of a period
	period  float64 // seconds
	unit    float64 // seconds of a unit; 0: not known yet
	largest uint64  // units that have been submitted at once
	left    float64 // seconds of this period; negative: too much
}

func newPace(period time.Duration, duty int) *pace {
	seconds := period.Seconds()
	return &pace{busy: seconds * float64(duty) / 100, period: seconds}
}

// begin begins a period.
func (p *pace) begin() {
	// A unit that takes longer than a period is saved up or made up for in full;
	// what a device was busy with for others is not.
	p.left = p.busy + max(min(p.left, max(p.busy, p.unit)), -p.period-p.unit)
}

// next returns how many units to submit in this period, and how many of them
// in one launch; 0 units end the period's work.
func (p *pace) next() (units, perLaunch uint64) {
	if p.unit == 0 {
		return 1, 1
	}
	if p.left < p.unit/2 || p.left < p.busy/50 {
		return 0, 0
	}
	units = uint64(math.Round(p.left / p.unit))
	units = min(max(units, 1), 8*p.largest)
	return units, max(1, uint64(launch.Seconds()/p.unit))
}

// done records how long units have taken.
func (p *pace) done(units uint64, took time.Duration) {
	p.left -= took.Seconds()
	// The time of few units is mostly that of starting them.
	if units >= p.largest/4 {
		p.unit = max(took.Seconds()/float64(units), 1e-9)
	}
	p.largest = max(p.largest, units)
}
