package dcgmnames

import (
	"math"
	"time"
)

// derive makes out of what rows told what they do not tell.
func (r *readings) derive(p *plan, meters map[string]*meters, now time.Duration, pace patience) {
	for d := range r.devices {
		r.devices[d].free()
		r.devices[d].rates(meters[p.devices[d].uuid], now, pace)
	}
	for d := range r.devices {
		if gpu := p.devices[d].parent; gpu != d {
			r.devices[d].hear(&r.devices[gpu])
		}
	}
	for d := range r.devices {
		if r.devices[d].heard && r.devices[d].xidAt == 0 {
			r.devices[d].values[lastXID] = 0
		}
	}
}

// free is the memory that nobody uses. Libraries that do not tell what is
// reserved count it as used.
func (d *deviceReadings) free() {
	left := d.values[memorySize] - d.values[memoryUsed]
	if reserved := d.values[memoryReserved]; !math.IsNaN(reserved) {
		left -= reserved
	}
	d.values[memoryFree] = max(0, left)
}

// rates are how fast the device's counters grow. Of a stale device, of which
// rows tell nothing but counters, nobody knows.
func (d *deviceReadings) rates(m *meters, now time.Duration, pace patience) {
	fresh := d.fresh()
	for i, c := range counted() {
		d.values[c.rate] = m[i].take(d.values[c.counter], fresh, now, pace)
	}
	d.values[nvlinkRate] = d.values[nvlinkTransmitRate] + d.values[nvlinkReceiveRate]
}

func (d *deviceReadings) fresh() bool {
	for s := range told {
		if !s.lasts() && !math.IsNaN(d.values[s]) {
			return true
		}
	}
	return false
}

// hear takes in the Xids of the GPU that the device is a partition of.
func (d *deviceReadings) hear(gpu *deviceReadings) {
	d.heard = d.heard || gpu.heard
	if gpu.xidAt > d.xidAt {
		d.xidAt, d.values[lastXID] = gpu.xidAt, gpu.values[lastXID]
	}
}
