package metric

import (
	"sync"
	"time"
)

// partRows is how many rows of a family are kept together: a change of one of
// them copies them all, and the list of a snapshot has an entry for them all.
const partRows = 64

// Snapshot is the rows of one moment. It is immutable and safe for concurrent
// use.
type Snapshot struct {
	parts []part
	rows  func() []Row
}

// part is rows of one family that are next to each other. Snapshots share parts
// without a change, and the series of those of which only values have changed,
// because these have no pointers and are an eighth of the size.
type part struct {
	family *Family
	series []series
	values []float64 // of the series
}

// series is what a row has besides its family and its value.
type series struct {
	labels *Labels
	start  time.Time
	past   bool
}

// sameSeries compares field by field: == would compare memory byte by byte.
func sameSeries(a, b *series) bool {
	return a.labels == b.labels && a.past == b.past && a.start == b.start //nolint:staticcheck // the same time, not only the same moment, and quicker
}

// samePart reports whether both are the same memory. No part is empty.
func samePart(a, b part) bool {
	return &a.series[0] == &b.series[0] && &a.values[0] == &b.values[0]
}

func newSnapshot(parts []part) *Snapshot {
	return &Snapshot{parts: parts, rows: sync.OnceValue(func() []Row { return joinParts(parts) })}
}

func joinParts(parts []part) []Row {
	size := 0
	for i := range parts {
		size += len(parts[i].series)
	}
	rows := make([]Row, 0, size)
	for i := range parts {
		p := &parts[i]
		for at := range p.series {
			s := &p.series[at]
			rows = append(rows, Row{Family: p.family, Labels: s.labels, Value: p.values[at], Start: s.start, Past: s.past})
		}
	}
	return rows
}

// Rows returns all rows, which must not be changed. The first call makes the list,
// so that a snapshot that is not read costs nothing.
func (s *Snapshot) Rows() []Row {
	if s == nil {
		return nil
	}
	return s.rows()
}
