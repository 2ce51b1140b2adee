package dcgm

import (
	"errors"
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// converter converts the values of a plan to readings. It is not safe for
// concurrent use.
type converter struct {
	whole, partition *rowTable
	interval         time.Duration // of fast fields
	fastLimit        time.Duration // how long a value may remain unchanged
	slowLimit        time.Duration
	states           map[string]*deviceRows // by UUID

	plan watchPlan
	grid *grid
}

func newConverter(o Options) *converter {
	return &converter{
		whole:     newRowTable(watched(wholeRows(), o.Profiling)),
		partition: newRowTable(watched(partitionRows(), o.Profiling)),
		interval:  o.Interval,
		fastLimit: device.StaleAfter(o.Interval),
		slowLimit: 3 * o.SlowInterval,
		states:    make(map[string]*deviceRows),
	}
}

// applyPlan replaces the plan. The states of whole devices are kept as long as
// the source exists, so that integrals never decrease.
func (b *converter) applyPlan(p watchPlan) {
	places := b.plan.locations
	b.plan = p
	fields := append(b.whole.fields(anyRow), b.partition.fields(anyRow)...)
	previous := b.grid
	b.grid = newGrid(append(append([]entity{}, p.gpus...), p.partitions...), fields, b.fieldLimit)
	if previous != nil {
		b.grid.copyFrom(previous, func(e entity) bool { return p.locations[e] == places[e] })
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

func (b *converter) table(t *watchedDevice) *rowTable {
	if t.device.IsPartition() {
		return b.partition
	}
	return b.whole
}

func (b *converter) state(t *watchedDevice) *deviceRows {
	m := b.states[t.device.UUID]
	if m == nil {
		m = newDeviceRows(b.table(t))
		b.states[t.device.UUID] = m
	}
	return m
}

// deviceResult is what a read has found about one device.
type deviceResult struct {
	device.Observation
	hasValues bool // at least one value was read
	lost      bool // the engine reports it as lost
	stale     bool // at least one value is too old
	errs      []error
}

// extraCapacity is the capacity of a list of readings for state sets and for
// readings without a field.
const extraCapacity = 12

// observe converts the values of a device that were reported in this round.
func (b *converter) observe(t *watchedDevice, tier device.Tier, now time.Duration) *deviceResult {
	f := &deviceResult{Observation: device.Observation{Device: t.device}}
	rows, m := b.table(t), b.state(t)
	m.reads++
	f.Readings = make([]device.Reading, 0, len(rows.rows)+extraCapacity)
	for i := range rows.rows {
		r := &rows.rows[i]
		if r.tier > tier {
			continue
		}
		e, ok := t.entityFor(r.level)
		if !ok {
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

// limit returns how long a value of a row may remain unchanged.
func (b *converter) limit(r *row) time.Duration {
	if r.tier == device.Slow {
		return b.slowLimit
	}
	return b.fastLimit
}

// fieldLimit returns the longest limit of the rows of a field.
func (b *converter) fieldLimit(field uint16) (limit time.Duration) {
	for _, t := range []*rowTable{b.whole, b.partition} {
		for i := range t.rows {
			if t.rows[i].field == field {
				limit = max(limit, b.limit(&t.rows[i]))
			}
		}
	}
	return limit
}

// addRow converts a value by its row and adds the outcome to the result.
func (f *deviceResult) addRow(r *row, m *deviceRows, i int, c *cell, interval time.Duration) {
	readings := &f.Readings
	if r.tier == device.Slow {
		readings = &f.Slow
	}
	var o outcome
	*readings, o = r.appendReadings(*readings, m, i, c, interval)
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

const (
	knownReasons = 1<<16 - 1 // bits of throttle reasons that NVML may have: it has nine
	mostStates   = 255       // the largest number that may stand for a state, known or not
)

// appendReadings appends the readings of a value.
func (r *row) appendReadings(readings []device.Reading, m *deviceRows, i int, c *cell, interval time.Duration) ([]device.Reading, outcome) {
	if r.conversion == reasonBit {
		mask, o := c.mask()
		if o != present {
			return readings, o
		}
		if mask > knownReasons {
			return append(readings, r.reading(device.Implausible(), c)), absent
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
		if n*r.scale > r.most {
			return append(readings, r.reading(device.Implausible(), c)), absent
		}
		return append(readings, r.reading(m.integral(i).add(n, c.at, interval)*r.scale, c)), present
	case stateSet:
		return r.set(readings, n, c)
	default:
		return append(readings, r.reading(n*r.scale, c)), present
	}
}

// reading returns the reading of a number. An integral was measured when the
// value was that ended its last interval.
func (r *row) reading(n float64, c *cell) device.Reading {
	return device.Reading{Quantity: r.quantity, Details: [2]string{r.detail}, Value: n, Measured: c.measured}
}

// set appends a reading for each state, of which one is 1.
func (r *row) set(readings []device.Reading, n float64, c *cell) ([]device.Reading, outcome) {
	last := float64(len(r.states) - 1)
	if n > mostStates {
		return append(readings, r.reading(device.Implausible(), c)), absent
	}
	if n > last && r.states[len(r.states)-1] == "other" {
		n = last
	}
	if n > last || r.states[int(n)] == "" {
		return readings, absent
	}
	for i, state := range r.states {
		if state != "" {
			readings = append(readings, device.Reading{
				Quantity: r.quantity, Details: [2]string{state}, Value: boolValue(i == int(n)), Measured: c.measured,
			})
		}
	}
	return readings, present
}

func boolValue(value bool) float64 {
	if value {
		return 1
	}
	return 0
}

// err returns the errors of the device.
func (f *deviceResult) err() error {
	if !f.hasValues && f.stale {
		return errors.Join(append(f.errs, fmt.Errorf("read %s: the host engine has not sampled it for too long", f.Device.UUID))...)
	}
	return errors.Join(f.errs...)
}
