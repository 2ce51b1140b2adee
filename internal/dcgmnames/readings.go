package dcgmnames

import (
	"math"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/model"
)

// readings are the values of one snapshot, in the order of the plan. NaN: there is none.
type readings struct {
	devices []deviceReadings
	holders []holderReadings
}

type deviceReadings struct {
	values    [sources]float64
	fresh     bool
	xidsKnown bool  // a source reports Xids of the device
	xidAt     int64 // time of the newest, milliseconds since 1970; 0: none
}

// holderReadings are the shares that Split shows.
type holderReadings [shares]float64

// read replaces the values by those of a node, for which the plan is valid.
func (r *readings) read(p *plan, n *model.Node, table *sourceTable, mode Mode) {
	r.begin(p)
	for i, place := range p.places {
		if place >= 0 {
			r.devices[place].read(&n.Devices[i], table)
		}
	}
	if mode != Split {
		return
	}
	for i := range n.Pods {
		use := &n.Pods[i]
		r.setShare(p, holder{true, use.Pod.Namespace, use.Pod.Name, use.UUID}, use.Utilization, use.Memory)
	}
	for i := range n.Holds {
		hold := &n.Holds[i]
		r.setShare(p, holder{false, hold.Claim.Namespace, hold.Claim.Name, hold.UUID}, hold.Utilization, hold.Memory)
	}
}

// setShare sets what the processes of a holder use.
func (r *readings) setShare(p *plan, h holder, utilization, memory model.Use) {
	place, ok := p.holders[h]
	if !ok {
		return
	}
	for q, use := range [shares]model.Use{byUtilization: utilization, byMemory: memory} {
		if use.Known && use.Attribution == model.Process {
			r.holders[place][q] = use.Value
		}
	}
}

// read takes the values of a device. If a source does not report the code of the newest
// XID, the code is unknown.
func (d *deviceReadings) read(hardware *model.Device, table *sourceTable) {
	for i := range hardware.Readings {
		reading := &hardware.Readings[i]
		if s, ok := table.find(reading); ok && (hardware.Fresh || s.isCounter()) {
			d.values[s] = reading.Value
			d.fresh = d.fresh || !s.isCounter()
		}
	}
	d.xidsKnown = hardware.XIDsWatched
	for _, xid := range hardware.XIDs {
		d.xidsKnown = d.xidsKnown || !xid.Last.IsZero()
		if at := xid.Last.UnixMilli(); at > d.xidAt {
			d.xidAt, d.values[lastXID] = at, float64(xid.Code)
			if xid.Code == model.OtherXID {
				d.values[lastXID] = math.NaN()
			}
		}
	}
}

// begin removes all values.
func (r *readings) begin(p *plan) {
	r.devices = resize(r.devices, len(p.devices))
	for d := range r.devices {
		values := &r.devices[d].values
		for i := range values {
			values[i] = math.NaN()
		}
		r.devices[d].fresh, r.devices[d].xidsKnown, r.devices[d].xidAt = false, false, 0
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

// derive computes values that are not read from those that are.
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
// which has counters only, are unknown.
func (d *deviceReadings) setRates(m *meters, now time.Duration, t meterTiming) {
	for i, c := range counterRates() {
		d.values[c.rate] = m[i].observe(d.values[c.counter], d.fresh, now, t)
	}
	d.values[nvlinkRate] = d.values[nvlinkTransmitRate] + d.values[nvlinkReceiveRate]
}

// addXIDs adds the Xids of the GPU that the device is a partition of.
func (d *deviceReadings) addXIDs(gpu *deviceReadings) {
	d.xidsKnown = d.xidsKnown || gpu.xidsKnown
	if gpu.xidAt > d.xidAt {
		d.xidAt, d.values[lastXID] = gpu.xidAt, gpu.values[lastXID]
	}
}
