package dcgm

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// grid holds the newest value of each field that is asked of each entity of a
// plan.
type grid struct {
	slots   map[entity]int
	columns map[uint16]int
	cells   []cell
	round   uint64 // of asking
	limit   func(field uint16) time.Duration
}

// cell is the newest value of a field of an entity.
type cell struct {
	value
	round   uint64        // in which it was reported; 0: never
	queried time.Duration // when, in elapsed time, the call began that returned it

	// Of the newest value that is no failure.
	sampled  bool          // there was one
	stamp    int64         // its timestamp
	changed  time.Duration // when, in elapsed time, this timestamp was first seen
	measured device.Window
}

// callTime is when a call asked for values: the engine has answered it at some
// time between.
type callTime struct {
	began time.Duration // in elapsed time
	ended clock.Instant
}

// elapsedAt is the elapsed time of a timestamp of the engine, if the engine's
// clock is our wall clock. It is false of a timestamp that lies after the
// answer or before our elapsed time began.
func (a *callTime) elapsedAt(at int64) (time.Duration, bool) {
	// An engine may report any number. Without a sign no difference is too large,
	// and that of a timestamp after the answer is larger than any age.
	age := uint64(a.ended.Wall.UnixMicro()) - uint64(at)
	if age > uint64(a.ended.Elapsed.Microseconds()) {
		return 0, false
	}
	return a.ended.Elapsed - time.Duration(age)*time.Microsecond, true
}

// newGrid makes a grid. The limit is for how long a value of a field counts as
// the present one.
func newGrid(entities []entity, fields []uint16, limit func(field uint16) time.Duration) *grid {
	g := &grid{slots: make(map[entity]int), columns: make(map[uint16]int), limit: limit}
	for _, e := range entities {
		g.slots[e] = len(g.slots)
	}
	for _, field := range fields {
		if _, twice := g.columns[field]; !twice {
			g.columns[field] = len(g.columns)
		}
	}
	g.cells = make([]cell, len(g.slots)*len(g.columns))
	return g
}

// copyFrom takes over what an earlier grid of the same fields knows of the
// entities that are the same as then. Without it a value that is merely
// repeated would look like a new one.
func (g *grid) copyFrom(old *grid, same func(entity) bool) {
	g.round = old.round
	for e, slot := range g.slots {
		if before, asked := old.slots[e]; asked && same(e) {
			copy(g.row(slot), old.row(before))
		}
	}
}

func (g *grid) row(slot int) []cell {
	width := len(g.columns)
	return g.cells[slot*width : (slot+1)*width]
}

// begin opens a round: what is not reported in it is not known.
func (g *grid) begin() { g.round++ }

// apply takes in a value. One that was not asked for is dropped.
//
// A value is another one than before when its timestamp is. How long it has
// been the same is measured by our clock alone, for the engine's may be another
// machine's, or wrong.
func (g *grid) apply(v *value, a *callTime) {
	c := g.at(v.entity, v.field)
	if c == nil {
		return
	}
	if v.status == statusOK && (!c.sampled || v.at != c.stamp) {
		c.measured = c.window(v, a, g.limit)
		c.sampled, c.stamp, c.changed = true, v.at, a.began
	}
	c.value, c.round, c.queried = *v, g.round, a.began
}

// window is when a value was measured whose timestamp is seen for the first
// time: after the call that returned another value, or none, and before the
// answer of this one. Nor was it measured before the value that it replaces.
//
// The timestamp says when within these bounds, where it lies within them. For
// that it is compared with our wall clock, which is right where the engine
// runs on the same node. A clock that is wrong by minutes leaves the bounds;
// one that is wrong by less is wrong within them.
//
// A field that was never reported before has no earlier call that bounds it. Its
// value is then taken to be no older than the limit, because an older one does
// not count as present, and no older than our elapsed time, in which whatever
// the value is compared with lies.
func (c *cell) window(v *value, a *callTime, limit func(field uint16) time.Duration) device.Window {
	var from, least time.Duration // of a window, of a moment
	if c.round == 0 {
		from = max(a.ended.Elapsed-limit(v.field), 0)
		least = from
	} else {
		from, least = max(c.queried, c.measured.From), max(c.queried, c.measured.To)
	}
	if moment, is := a.elapsedAt(v.at); is && moment >= least {
		return device.Window{From: moment, To: moment}
	}
	return device.Window{From: from, To: a.ended.Elapsed}
}

// get is the value that was told in this round, or nil.
func (g *grid) get(e entity, field uint16) *cell {
	if c := g.at(e, field); c != nil && c.round == g.round {
		return c
	}
	return nil
}

func (g *grid) at(e entity, field uint16) *cell {
	slot, asked := g.slots[e]
	if !asked {
		return nil
	}
	column, asked := g.columns[field]
	if !asked {
		return nil
	}
	return &g.cells[slot*len(g.columns)+column]
}
