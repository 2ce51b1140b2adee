package dcgmnames

import (
	"math"
	"time"
)

// readings are the values of one snapshot's rows, in the order of the plan. NaN: there is
// no row.
type readings struct {
	devices []deviceReadings
	holders []holderReadings
}

type deviceReadings struct {
	values    [sources]float64
	xidsKnown bool    // a source reports Xids of the device
	xidAt     float64 // time of the newest, seconds since 1970; 0: none
}

// holderReadings are the shares that Split shows.
type holderReadings [shares]float64

// begin removes all values.
func (r *readings) begin(p *plan) {
	r.devices = resize(r.devices, len(p.devices))
	for d := range r.devices {
		values := &r.devices[d].values
		for i := range values {
			values[i] = math.NaN()
		}
		r.devices[d].xidsKnown, r.devices[d].xidAt = false, 0
	}
	r.holders = resize(r.holders, len(p.holders))
	for h := range r.holders {
		for i := range r.holders[h] {
			r.holders[h][i] = math.NaN()
		}
	}
}

func resize[T any](s []T, length int) []T {
	if cap(s) < length {
		return make([]T, length)
	}
	return s[:length]
}

// derive computes values without rows from those with rows.
func (r *readings) derive(p *plan, meters map[string]*meters, now time.Duration, t meterTiming) {
	for d := range r.devices {
		r.devices[d].setFree()
		r.devices[d].setRates(meters[p.devices[d].uuid], now, t)
	}
	for d := range r.devices {
		if gpu := p.devices[d].parent; gpu != d {
			r.devices[d].addXIDs(&r.devices[gpu])
		}
	}
	for d := range r.devices {
		if r.devices[d].xidsKnown && r.devices[d].xidAt == 0 {
			r.devices[d].values[lastXID] = 0
		}
	}
}

// setFree sets the memory that is not in use. Libraries that do not report reserved
// memory count it as used.
func (d *deviceReadings) setFree() {
	left := d.values[memorySize] - d.values[memoryUsed]
	if reserved := d.values[memoryReserved]; !math.IsNaN(reserved) {
		left -= reserved
	}
	d.values[memoryFree] = max(0, left)
}

// setRates sets the growth rates of the device's counters. Those of a stale device,
// which has only rows of counters, are unknown.
func (d *deviceReadings) setRates(m *meters, now time.Duration, t meterTiming) {
	fresh := d.fresh()
	for i, c := range counterRates() {
		d.values[c.rate] = m[i].observe(d.values[c.counter], fresh, now, t)
	}
	d.values[nvlinkRate] = d.values[nvlinkTransmitRate] + d.values[nvlinkReceiveRate]
}

func (d *deviceReadings) fresh() bool {
	for s := range observed {
		if !s.isCounter() && !math.IsNaN(d.values[s]) {
			return true
		}
	}
	return false
}

// addXIDs adds the Xids of the GPU that the device is a partition of.
func (d *deviceReadings) addXIDs(gpu *deviceReadings) {
	d.xidsKnown = d.xidsKnown || gpu.xidsKnown
	if gpu.xidAt > d.xidAt {
		d.xidAt, d.values[lastXID] = gpu.xidAt, gpu.values[lastXID]
	}
}
