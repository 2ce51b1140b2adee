package metric

import (
	"math"
	"slices"
	"time"
)

// Builder makes one snapshot after another, family by family, and keeps each
// family under a cap. It compares each row with the one in its place in the
// snapshot before, and shares with it all that is the same. It belongs to one
// goroutine; the snapshots do not.
type Builder struct {
	limit    int
	uncapped *Family
	dropped  map[*Family]float64

	family  *Family
	count   int  // rows of the family, with those that were dropped
	started bool // the family has a part

	before *Snapshot // the newest
	next   int       // in its parts, the one after old
	parts  []part    // finished ones of the snapshot that is being made

	// The part that is being made.
	size    int
	old     part              // in its place in the snapshot before; empty: there is none
	moved   bool              // its series are others than those of old
	changed bool              // a value is another
	series  [partRows]series  // only if they have moved
	values  [partRows]float64 // always
}

// NewBuilder returns a Builder that lets every family have at most limit rows
// (0: as many as there are), except for the one that counts dropped rows.
func NewBuilder(limit int, uncapped *Family) *Builder {
	return &Builder{limit: limit, uncapped: uncapped, dropped: make(map[*Family]float64), before: newSnapshot(nil)}
}

// In begins the rows of a family. All of them are added before those of the
// next.
func (b *Builder) In(family *Family) {
	b.endPart()
	b.family, b.count, b.started = family, 0, false
}

// Family is the one that was begun last.
func (b *Builder) Family() *Family { return b.family }

// Add adds a row to the family.
func (b *Builder) Add(labels *Labels, value float64) { b.add(series{labels: labels}, value) }

// AddFrom adds a row to the family: a counter that began at zero at start.
func (b *Builder) AddFrom(labels *Labels, value float64, start time.Time) {
	b.add(series{labels: labels, start: start}, value)
}

// AddPast adds an info row of what has ended.
func (b *Builder) AddPast(labels *Labels, value float64) {
	b.add(series{labels: labels, past: true}, value)
}

func (b *Builder) add(row series, value float64) {
	b.count++
	if b.limit > 0 && b.count > b.limit && b.family != b.uncapped {
		b.dropped[b.family]++
		return
	}
	if b.size == 0 {
		b.beginPart()
	}
	at := b.size
	if !b.moved && (at >= len(b.old.series) || !sameSeries(&b.old.series[at], &row)) {
		b.move()
	}
	if b.moved {
		b.series[at] = row
	} else if math.Float64bits(value) != math.Float64bits(b.old.values[at]) {
		b.changed = true
	}
	b.values[at] = value
	if b.size++; b.size == partRows {
		b.endPart()
	}
}

// beginPart finds the part that has the same place in the snapshot before. Families
// mostly come in the order of that snapshot.
func (b *Builder) beginPart() {
	b.old, b.moved, b.changed = part{}, false, false
	parts, tries := b.before.parts, 1
	if !b.started {
		b.started, tries = true, len(b.before.parts)
	}
	for at := b.next; tries > 0 && len(parts) > 0; at, tries = at+1, tries-1 {
		if at >= len(parts) {
			at = 0
		}
		if parts[at].family == b.family {
			b.old, b.next = parts[at], at+1
			return
		}
	}
}

// move is for the first series of the part that differs from that of old.
func (b *Builder) move() {
	copy(b.series[:b.size], b.old.series)
	b.moved = true
}

func (b *Builder) endPart() {
	if b.size == 0 {
		return
	}
	if b.size < len(b.old.series) && !b.moved {
		b.move()
	}
	made := b.old
	switch {
	case b.moved:
		made = part{b.family, slices.Clone(b.series[:b.size]), slices.Clone(b.values[:b.size])}
	case b.changed:
		made.values = slices.Clone(b.values[:b.size])
	}
	b.parts, b.size = append(b.parts, made), 0
}

// Finish returns the snapshot of the rows that were added since the last call. If
// no row differs from those of the snapshot before, it is the same.
func (b *Builder) Finish() *Snapshot {
	b.endPart()
	if !slices.EqualFunc(b.parts, b.before.parts, samePart) {
		b.before = newSnapshot(slices.Clone(b.parts))
	}
	clear(b.parts)
	b.parts, b.next, b.family = b.parts[:0], 0, nil
	return b.before
}

// Dropped is how many rows of each family did not fit, in all snapshots so
// far. It must not be changed.
func (b *Builder) Dropped() map[*Family]float64 { return b.dropped }
