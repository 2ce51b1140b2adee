package metric

import "time"

// Builder gathers the rows of one snapshot after another, family by family,
// and keeps each family under a cap.
type Builder struct {
	limit    int
	uncapped *Family

	rows    []Row
	used    int // of the memory of rows, by snapshots before
	family  *Family
	count   int
	dropped map[*Family]float64
}

// NewBuilder returns a Builder that lets every family have at most limit rows
// (0: as many as there are), except for the one that counts dropped rows.
func NewBuilder(limit int, uncapped *Family) *Builder {
	return &Builder{limit: limit, uncapped: uncapped, dropped: make(map[*Family]float64)}
}

// Begin begins the rows of a snapshot.
func (b *Builder) Begin() {
	b.rows = make([]Row, 0, len(b.rows)+len(b.rows)/16+64)
	b.family, b.count = nil, 0
}

// BeginAgain is Begin if nothing reads the rows of the snapshot before any more:
// their memory is used again.
func (b *Builder) BeginAgain() {
	b.used = max(b.used, len(b.rows))
	if clear(b.rows[len(b.rows):b.used]); len(b.rows) < cap(b.rows)/4 {
		b.rows = nil // there were many more once
	}
	b.used = len(b.rows)
	b.rows = b.rows[:0]
	b.family, b.count = nil, 0
}

// In begins the rows of a family. All of them are added before those of the
// next.
func (b *Builder) In(family *Family) { b.family, b.count = family, 0 }

// Family is the one that was begun last.
func (b *Builder) Family() *Family { return b.family }

// Add adds a row to the family.
func (b *Builder) Add(labels *Labels, value float64) { b.AddFrom(labels, value, time.Time{}) }

// AddFrom adds a row to the family: a counter that began at zero at start.
func (b *Builder) AddFrom(labels *Labels, value float64, start time.Time) {
	b.add(Row{Family: b.family, Labels: labels, Value: value, Start: start})
}

// AddPast adds an info row of what has ended.
func (b *Builder) AddPast(labels *Labels, value float64) {
	b.add(Row{Family: b.family, Labels: labels, Value: value, Past: true})
}

func (b *Builder) add(row Row) {
	b.count++
	if b.limit > 0 && b.count > b.limit && b.family != b.uncapped {
		b.dropped[b.family]++
		return
	}
	b.rows = append(b.rows, row)
}

// Rows returns the rows since Begin. The Builder does not touch them again, but
// for BeginAgain.
func (b *Builder) Rows() []Row { return b.rows[:len(b.rows):len(b.rows)] }

// Dropped is how many rows of each family did not fit, in all snapshots so
// far. It must not be changed.
func (b *Builder) Dropped() map[*Family]float64 { return b.dropped }
