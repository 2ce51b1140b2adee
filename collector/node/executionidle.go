package node

import (
	"math"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Execution idle: a device that computes and moves next to nothing, and draws more power
// than it does while nothing holds it, because a program keeps it ready. The limits are
// those of a measurement of 756 GPUs over 31 days (arXiv 2604.04745): each activity below
// 5 %, and less than 1 GB/s over each bus. Signals that are not read are left out, but
// for the utilization. There it had to last for five seconds; here each time between two
// readings counts.
const (
	idleActivity = 0.05
	idleBytes    = 1e9 // a second
	// poweredOver is how far above the idle power a device is powered: readings of an
	// idle device differ by a few percent.
	poweredOver = 1.2
)

// idleReadings is odd, and more than twice the number of wrong readings in a row.
const idleReadings = 5

// watts returns the idle power; NaN: it was never observed.
func (p *idlePower) watts() float64 {
	if p.lowest == 0 {
		return math.NaN()
	}
	return p.lowest
}

// observe applies a reading of the power of a device that is not used.
func (p *idlePower) observe(watts float64) {
	if watts <= 0 {
		return
	}
	if p.recent = append(p.recent, watts); len(p.recent) < idleReadings {
		p.lowest = slices.Max(p.recent)
		return
	}
	sorted := slices.Sorted(slices.Values(p.recent))
	p.lowest = min(p.lowest, sorted[idleReadings/2])
	p.recent = slices.Delete(p.recent, 0, 1)
}

// executionIdle reports whether the device, whose utilization and power are read, is
// execution-idle. It comes after the growth of its counters.
func (g *deviceGrowth) executionIdle(idle float64) bool {
	d := g.device
	if d.of(device.Utilization)[0].Value >= idleActivity || d.of(device.Power)[0].Value <= poweredOver*idle {
		return false
	}
	for _, quantity := range []device.Quantity{device.EngineActive, device.MemoryActivity} {
		for _, reading := range d.of(quantity) {
			if reading.Value >= idleActivity {
				return false
			}
		}
	}
	for m := meterNVLinkTransmit; m <= meterNetworkReceive; m++ {
		if len(d.of(m.quantity())) > 0 && g.meters[m].based && g.meters[m].rate >= idleBytes {
			return false
		}
	}
	return true
}

// accrueExecutionIdle integrates for how long the device is execution-idle, and the
// energy beyond its idle power.
func (g *deviceGrowth) accrueExecutionIdle(idle float64, limit time.Duration) {
	if math.IsNaN(idle) {
		g.forgetExecutionIdle()
		return
	}
	sum, watts := 0.0, 0.0
	if g.executionIdle(idle) {
		sum, watts = 1, g.device.of(device.Power)[0].Value-idle
	}
	at := g.device.measured(&g.device.of(device.Utilization)[0])
	g.meters[meterExecutionIdle].integrate(sum, at, limit)
	g.meters[meterExecutionIdleEnergy].integrate(watts, at, limit)
}

// forgetExecutionIdle has the integrals begin again with the next reading.
func (g *deviceGrowth) forgetExecutionIdle() {
	g.meters[meterExecutionIdle].based, g.meters[meterExecutionIdleEnergy].based = false, false
}
