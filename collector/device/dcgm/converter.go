package dcgm

import (
	"errors"
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// converter makes readings of the values of a plan. It belongs to who reads.
type converter struct {
	whole, partition *table
	interval         time.Duration // of fast fields
	fastLimit        time.Duration // for how long a value may stay the same one
	slowLimit        time.Duration
	states           map[string]*deviceState // by UUID

	plan plan
	grid *grid
}

func newConverter(o Options) *converter {
	return &converter{
		whole:     newTable(watched(wholeRows(), o.Profiling)),
		partition: newTable(watched(partitionRows(), o.Profiling)),
		interval:  o.Interval,
		fastLimit: device.StaleAfter(o.Interval),
		slowLimit: 3 * o.SlowInterval,
		states:    make(map[string]*deviceState),
	}
}

// applyPlan begins a new plan. Whole devices are remembered for as long as the
// source lives, because what was added up of them must not fall.
func (b *converter) applyPlan(p plan) {
	places := b.plan.locations
	b.plan = p
	fields := append(b.whole.fields(anyRow), b.partition.fields(anyRow)...)
	before := b.grid
	b.grid = newGrid(append(append([]entity{}, p.gpus...), p.partitions...), fields, b.limitOf)
	if before != nil {
		b.grid.copyFrom(before, func(e entity) bool { return p.locations[e] == places[e] })
	}
	there := make(map[string]bool)
	for i := range p.targets {
		uuid := p.targets[i].device.UUID
		there[uuid] = true
		b.state(&p.targets[i]).reset()
	}
	for uuid := range b.states {
		if isMIG(uuid) && !there[uuid] {
			delete(b.states, uuid)
		}
	}
}

func anyRow(row) bool { return true }

func (b *converter) table(t *target) *table {
	if t.device.IsPartition() {
		return b.partition
	}
	return b.whole
}

func (b *converter) state(t *target) *deviceState {
	m := b.states[t.device.UUID]
	if m == nil {
		m = newDeviceState(b.table(t))
		b.states[t.device.UUID] = m
	}
	return m
}

// deviceResult is what a read has found about one device.
type deviceResult struct {
	device.Observation
	hasValues bool // something is known of it
	lost      bool // the engine says that it is gone
	stale     bool // of something the engine tells old values
	errs      []error
}

// extraCapacity is room for the states of sets and for what is not told by fields.
const extraCapacity = 12

// observe makes the readings of a device of what the engine has told in this
// round.
func (b *converter) observe(t *target, tier device.Tier, now time.Duration) *deviceResult {
	f := &deviceResult{Observation: device.Observation{Device: t.device}}
	rows, m := b.table(t), b.state(t)
	m.reads++
	f.Readings = make([]device.Reading, 0, len(rows.rows)+extraCapacity)
	for i := range rows.rows {
		r := &rows.rows[i]
		if r.tier > tier {
			continue
		}
		e, its := t.entityFor(r.level)
		if !its {
			continue
		}
		c := b.grid.get(e, r.field)
		if c == nil {
			m.missing[i] = true // the engine does not know the field
			continue
		}
		if b.isStale(c, r, now) {
			f.stale = true
			continue
		}
		if m.selects(rows, i) {
			f.addRow(r, m, i, c, b.interval)
		}
	}
	return f
}

// isStale reports whether the engine has not sampled the field for too long.
func (b *converter) isStale(c *cell, r *row, now time.Duration) bool {
	return c.status == statusOK && now-c.changed > b.limit(r)
}

// limit is for how long a value of a row may stay the same one.
func (b *converter) limit(r *row) time.Duration {
	if r.tier == device.Slow {
		return b.slowLimit
	}
	return b.fastLimit
}

// limitOf is that of the rows of a field, the longest.
func (b *converter) limitOf(field uint16) (limit time.Duration) {
	for _, t := range []*table{b.whole, b.partition} {
		for i := range t.rows {
			if t.rows[i].field == field {
				limit = max(limit, b.limit(&t.rows[i]))
			}
		}
	}
	return limit
}

// addRow adds what a row says to what was found.
func (f *deviceResult) addRow(r *row, m *deviceState, i int, c *cell, interval time.Duration) {
	into := &f.Readings
	if r.tier == device.Slow {
		into = &f.Slow
	}
	var o outcome
	*into, o = r.appendReadings(*into, m, i, c, interval)
	switch o {
	case present:
		m.answered[i], f.hasValues = true, true
	case unsupported:
		m.missing[i] = true
	case lost:
		f.lost = true
	case failed:
		f.errs = append(f.errs, fmt.Errorf("read field %d of %s: %w", r.field, f.Device.UUID, c.status))
	}
}

// appendReadings appends what a value means.
func (r *row) appendReadings(readings []device.Reading, m *deviceState, i int, c *cell, interval time.Duration) ([]device.Reading, outcome) {
	if r.conversion == reasonBit {
		mask, o := c.mask()
		if o != present {
			return readings, o
		}
		return append(readings, r.reading(m.integral(i).add(boolValue(mask&r.bit != 0), c.at, interval), c)), present
	}
	n, o := c.number()
	if o == present && n < 0 && r.quantity != device.Temperature {
		o = absent
	}
	if o != present {
		return readings, o
	}
	switch r.conversion {
	case rate:
		return append(readings, r.reading(m.integral(i).add(n, c.at, interval)*r.scale, c)), present
	case stateSet:
		return r.set(readings, n, c)
	default:
		return append(readings, r.reading(n*r.scale, c)), present
	}
}

// reading is a number that a value means. What is added up over time was
// measured when the value was that ended the last interval.
func (r *row) reading(n float64, of *cell) device.Reading {
	return device.Reading{Quantity: r.quantity, Details: [2]string{r.detail}, Value: n, Measured: of.measured}
}

// set appends all states, of which one is present.
func (r *row) set(readings []device.Reading, n float64, of *cell) ([]device.Reading, outcome) {
	last := float64(len(r.states) - 1)
	if n > last && r.states[len(r.states)-1] == "other" {
		n = last
	}
	if n > last || r.states[int(n)] == "" {
		return readings, absent
	}
	for i, state := range r.states {
		if state != "" {
			readings = append(readings, device.Reading{
				Quantity: r.quantity, Details: [2]string{state}, Value: boolValue(i == int(n)), Measured: of.measured,
			})
		}
	}
	return readings, present
}

func boolValue(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// err is what went wrong with the device.
func (f *deviceResult) err() error {
	if !f.hasValues && f.stale {
		return errors.Join(append(f.errs, fmt.Errorf("read %s: the host engine has not sampled it for too long", f.Device.UUID))...)
	}
	return errors.Join(f.errs...)
}
