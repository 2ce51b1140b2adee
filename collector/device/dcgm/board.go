package dcgm

import (
	"errors"
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// board makes readings of the values of a plan. It belongs to who reads.
type board struct {
	whole, partition *table
	interval         time.Duration // of fast fields
	fastLimit        time.Duration // for how long a value may stay the same one
	slowLimit        time.Duration
	memories         map[string]*memory // by UUID

	plan plan
	grid *grid
}

func newBoard(o Options) *board {
	return &board{
		whole:     newTable(watched(wholeRows(), o.Profiling)),
		partition: newTable(watched(partitionRows(), o.Profiling)),
		interval:  o.Interval,
		fastLimit: device.StaleAfter(o.Interval),
		slowLimit: 3 * o.SlowInterval,
		memories:  make(map[string]*memory),
	}
}

// adopt begins a new plan. Whole devices are remembered for as long as the
// source lives, because what was added up of them must not fall.
func (b *board) adopt(p plan) {
	places := b.plan.places
	b.plan = p
	fields := append(b.whole.fields(every), b.partition.fields(every)...)
	before := b.grid
	b.grid = newGrid(append(append([]entity{}, p.gpus...), p.partitions...), fields, b.limitOf)
	if before != nil {
		b.grid.inherit(before, func(e entity) bool { return p.places[e] == places[e] })
	}
	there := make(map[string]bool)
	for i := range p.targets {
		uuid := p.targets[i].device.UUID
		there[uuid] = true
		b.memory(&p.targets[i]).renew()
	}
	for uuid := range b.memories {
		if isMIG(uuid) && !there[uuid] {
			delete(b.memories, uuid)
		}
	}
}

func every(row) bool { return true }

func (b *board) table(t *target) *table {
	if t.device.IsPartition() {
		return b.partition
	}
	return b.whole
}

func (b *board) memory(t *target) *memory {
	m := b.memories[t.device.UUID]
	if m == nil {
		m = newMemory(b.table(t))
		b.memories[t.device.UUID] = m
	}
	return m
}

// found is what a read has found of a device.
type found struct {
	device.Observation
	told  bool // something is known of it
	lost  bool // the engine says that it is gone
	stale bool // of something the engine tells old values
	errs  []error
}

// spare is room for the states of sets and for what is not told by fields.
const spare = 12

// observe makes the readings of a device of what the engine has told in this
// round.
func (b *board) observe(t *target, tier device.Tier, now time.Duration) *found {
	f := &found{Observation: device.Observation{Device: t.device}}
	rows, m := b.table(t), b.memory(t)
	m.reads++
	f.Readings = make([]device.Reading, 0, len(rows.rows)+spare)
	for i := range rows.rows {
		r := &rows.rows[i]
		if r.tier > tier {
			continue
		}
		e, its := t.of(r.level)
		if !its {
			continue
		}
		c := b.grid.get(e, r.field)
		if c == nil {
			m.out[i] = true // the engine does not know the field
			continue
		}
		if b.aged(c, r, now) {
			f.stale = true
			continue
		}
		if m.may(rows, i) {
			f.take(r, m, i, c, b.interval)
		}
	}
	return f
}

// aged reports whether the engine has not sampled the field for too long.
func (b *board) aged(c *cell, r *row, now time.Duration) bool {
	return c.status == statusOK && now-c.changed > b.limit(r)
}

// limit is for how long a value of a row may stay the same one.
func (b *board) limit(r *row) time.Duration {
	if r.tier == device.Slow {
		return b.slowLimit
	}
	return b.fastLimit
}

// limitOf is that of the rows of a field, the longest.
func (b *board) limitOf(field uint16) (limit time.Duration) {
	for _, t := range []*table{b.whole, b.partition} {
		for i := range t.rows {
			if t.rows[i].field == field {
				limit = max(limit, b.limit(&t.rows[i]))
			}
		}
	}
	return limit
}

// take adds what a row says to what was found.
func (f *found) take(r *row, m *memory, i int, c *cell, interval time.Duration) {
	into := &f.Readings
	if r.tier == device.Slow {
		into = &f.Slow
	}
	var o outcome
	*into, o = r.tell(*into, m, i, c, interval)
	switch o {
	case present:
		m.answered[i], f.told = true, true
	case unsupported:
		m.out[i] = true
	case lost:
		f.lost = true
	case failed:
		f.errs = append(f.errs, fmt.Errorf("read field %d of %s: %w", r.field, f.Device.UUID, c.status))
	}
}

// tell appends what a value means.
func (r *row) tell(readings []device.Reading, m *memory, i int, c *cell, interval time.Duration) ([]device.Reading, outcome) {
	if r.how == reasonBit {
		mask, o := c.mask()
		if o != present {
			return readings, o
		}
		return append(readings, r.reading(m.integral(i).add(truth(mask&r.bit != 0), c.at, interval), c)), present
	}
	n, o := c.number()
	if o == present && n < 0 && r.quantity != device.Temperature {
		o = absent
	}
	if o != present {
		return readings, o
	}
	switch r.how {
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
				Quantity: r.quantity, Details: [2]string{state}, Value: truth(i == int(n)), Measured: of.measured,
			})
		}
	}
	return readings, present
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// err is what went wrong with the device.
func (f *found) err() error {
	if !f.told && f.stale {
		return errors.Join(append(f.errs, fmt.Errorf("read %s: the host engine has not sampled it for too long", f.Device.UUID))...)
	}
	return errors.Join(f.errs...)
}
