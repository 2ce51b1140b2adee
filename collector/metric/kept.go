package metric

import (
	"slices"
	"sync"
)

// keptRows is how many rows of a family are kept together: a change of one of
// them copies them all, and the list of a snapshot has an entry for them all.
const keptRows = 64

// Kept keeps the rows of one snapshot for the next: rows that are the same as
// before are shared by both, and only those that have changed are copied. It
// belongs to one goroutine; what it returns does not.
type Kept struct {
	parts  map[*Family][][]Row
	before *Snapshot
}

// Snapshot is the rows of one moment. It is immutable and safe for concurrent
// use.
type Snapshot struct {
	parts [][]Row
	rows  func() []Row
}

// Keep returns the snapshot of the rows, in which those of one family stand
// next to each other. The rows themselves may be changed afterwards. If no row
// differs from those of the call before, the snapshot is the same, too.
func (k *Kept) Keep(rows []Row) *Snapshot {
	parts := make([][]Row, 0, len(rows)/keptRows+2*len(k.parts)+1)
	families := make(map[*Family][][]Row, len(k.parts))
	for family, run := range Runs(rows) {
		old, first := k.parts[family], len(parts)
		for part := range slices.Chunk(run, keptRows) {
			if at := len(parts) - first; at < len(old) && slices.Equal(old[at], part) {
				parts = append(parts, old[at])
			} else {
				parts = append(parts, slices.Clone(part))
			}
		}
		families[family] = parts[first:len(parts):len(parts)]
	}
	if k.before != nil && slices.EqualFunc(k.before.parts, parts, samePart) {
		return k.before
	}
	k.parts, k.before = families, newSnapshot(parts)
	return k.before
}

// samePart reports whether both are the same memory. No part is empty.
func samePart(a, b []Row) bool { return &a[0] == &b[0] && len(a) == len(b) }

func newSnapshot(parts [][]Row) *Snapshot {
	return &Snapshot{parts: parts, rows: sync.OnceValue(func() []Row { return slices.Concat(parts...) })}
}

// Rows returns all rows, which must not be changed. The first call copies them
// into one list, so that a snapshot that is not read costs nothing.
func (s *Snapshot) Rows() []Row {
	if s == nil {
		return nil
	}
	return s.rows()
}
