package dcgm

import "time"

// grid holds the newest value of each field that is asked of each entity of a
// plan.
type grid struct {
	slots   map[entity]int
	columns map[uint16]int
	cells   []cell
	round   uint64 // of asking
}

// cell is the newest value of a field of an entity.
type cell struct {
	value
	round   uint64        // in which it was told
	changed time.Duration // when, in elapsed time, its timestamp was last seen to be another
}

func newGrid(entities []entity, fields []uint16) *grid {
	g := &grid{slots: make(map[entity]int), columns: make(map[uint16]int)}
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

// begin opens a round: what is not told in it is not known.
func (g *grid) begin() { g.round++ }

// put takes in a value. One that was not asked for is dropped.
//
// How old a value is, is not told by comparing the engine's clock with ours,
// which may be another machine's, but by seeing its timestamp change.
func (g *grid) put(v value, now time.Duration) {
	c := g.at(v.entity, v.field)
	if c == nil {
		return
	}
	if c.round == 0 || c.at != v.at {
		c.changed = now
	}
	c.value, c.round = v, g.round
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
