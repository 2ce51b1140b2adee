package dcgm

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// grid holds the newest value of each field of each entity of a plan.
type grid struct {
	slots   map[entity]int
	columns map[uint16]int
	cells   []cell
	round   uint64 // number of the current round
	limit   func(field uint16) time.Duration
}

// cell is the newest value of a field of an entity.
type cell struct {
	value
	round   uint64        // of the last report; 0: never
	queried time.Duration // elapsed time at which the call began that returned it

	// Of the newest value that is not a failure.
	sampled  bool          // there was one
	stamp    int64         // its timestamp
	changed  time.Duration // elapsed time at which this timestamp was first seen
	measured device.Window
}

// callTime is when a call for values began and ended. The engine answered at
// some time between.
type callTime struct {
	began time.Duration // in elapsed time
	ended clock.Instant
}

// elapsedAt converts a timestamp of the engine to elapsed time, assuming that
// the engine's clock is our wall clock. It returns false for a timestamp after
// the answer or before our elapsed time began.
func (a *callTime) elapsedAt(at int64) (time.Duration, bool) {
	// An engine may report any number. Without a sign no difference is too large,
	// and that of a timestamp after the answer is larger than any age.
	age := uint64(a.ended.Wall.UnixMicro()) - uint64(at)
	if age > uint64(a.ended.Elapsed.Microseconds()) {
		return 0, false
	}
	return a.ended.Elapsed - time.Duration(age)*time.Microsecond, true
}

// newGrid returns a grid without values. limit returns how long a value of a
// field counts as current.
func newGrid(entities []entity, fields []uint16, limit func(field uint16) time.Duration) *grid {
	g := &grid{slots: make(map[entity]int), columns: make(map[uint16]int), limit: limit}
	for _, e := range entities {
		g.slots[e] = len(g.slots)
	}
	for _, field := range fields {
		if _, ok := g.columns[field]; !ok {
			g.columns[field] = len(g.columns)
		}
	}
	g.cells = make([]cell, len(g.slots)*len(g.columns))
	return g
}

// copyFrom copies the values of unchanged entities from an earlier grid of the
// same fields. Without them a repeated value would look new.
func (g *grid) copyFrom(old *grid, same func(entity) bool) {
	g.round = old.round
	for e, slot := range g.slots {
		if previous, ok := old.slots[e]; ok && same(e) {
			copy(g.row(slot), old.row(previous))
		}
	}
}

func (g *grid) row(slot int) []cell {
	width := len(g.columns)
	return g.cells[slot*width : (slot+1)*width]
}

// begin starts a round. get returns only values that are reported in it.
func (g *grid) begin() { g.round++ }

// apply stores a value. It ignores values of entities and fields that the grid
// does not have.
//
// A value is new when its timestamp differs from the stored one. How long it
// has been the same is measured by our clock alone, because the engine's clock
// may be another machine's, or wrong.
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

// window returns when a value was measured whose timestamp is new: after the
// call that returned another value, or none, and before the end of this call.
// It is not before the window of the value that it replaces.
//
// Within these bounds the timestamp gives the exact time. For that it is
// compared with our wall clock, which is correct where the engine runs on the
// same node. A clock that is wrong by minutes is outside of the bounds and not
// used. An error that stays within the bounds is not detected.
//
// For a field that was never reported no earlier call bounds the time. Its
// value is then at most as old as the limit, because an older one does not
// count as current, and not older than our elapsed time.
func (c *cell) window(v *value, a *callTime, limit func(field uint16) time.Duration) device.Window {
	var start, least time.Duration // earliest begin of the window, and earliest exact time
	if c.round == 0 {
		start = max(a.ended.Elapsed-limit(v.field), 0)
		least = start
	} else {
		start, least = max(c.queried, c.measured.From), max(c.queried, c.measured.To)
	}
	if exact, ok := a.elapsedAt(v.at); ok && exact >= least {
		return device.Window{From: exact, To: exact}
	}
	return device.Window{From: start, To: a.ended.Elapsed}
}

// get returns the value that was reported in this round, or nil.
func (g *grid) get(e entity, field uint16) *cell {
	if c := g.at(e, field); c != nil && c.round == g.round {
		return c
	}
	return nil
}

func (g *grid) at(e entity, field uint16) *cell {
	slot, ok := g.slots[e]
	if !ok {
		return nil
	}
	column, ok := g.columns[field]
	if !ok {
		return nil
	}
	return &g.cells[slot*len(g.columns)+column]
}
