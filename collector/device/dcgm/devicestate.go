package dcgm

import "time"

// rowTable is a list of rows, and for each row the alternatives for the same
// quantity.
type rowTable struct {
	rows         []row
	alternatives [][]int
}

func newRowTable(rows []row) *rowTable {
	t := &rowTable{rows: rows, alternatives: make([][]int, len(rows))}
	for i, a := range rows {
		for j, b := range rows {
			same := a.quantity == b.quantity && a.detail == b.detail
			if i != j && (same || a.fallbackFor == b.field || b.fallbackFor == a.field) {
				t.alternatives[i] = append(t.alternatives[i], j)
			}
		}
	}
	return t
}

// fields returns the fields of the rows that match, each once.
func (t *rowTable) fields(wanted func(row) bool) (fields []uint16) {
	seen := make(map[uint16]bool)
	for _, r := range t.rows {
		if wanted(r) && !seen[r.field] {
			seen[r.field] = true
			fields = append(fields, r.field)
		}
	}
	return fields
}

// deviceRows is what is kept for a device over all connections: which rows are
// used for its quantities, and their integrals.
type deviceRows struct {
	answered  []bool // by row
	integrals map[int]*integral

	// Since the present plan was made.
	missing []bool // rows that the device does not have
	reads   int
}

func newDeviceRows(t *rowTable) *deviceRows {
	return &deviceRows{answered: make([]bool, len(t.rows)), missing: make([]bool, len(t.rows)), integrals: make(map[int]*integral)}
}

// reset forgets which rows the device does not have: another engine may have
// them.
func (m *deviceRows) reset() {
	clear(m.missing)
	m.reads = 0
}

// alternativeReads is the number of reads for which a row may have no value
// before a later alternative is used. From then on that alternative is kept.
const alternativeReads = 3

// selects reports whether a row is the one to use for its quantity.
func (m *deviceRows) selects(t *rowTable, i int) bool {
	if m.answered[i] {
		return true
	}
	for _, j := range t.alternatives[i] {
		if m.answered[j] || j < i && !m.missing[j] && m.reads <= alternativeReads {
			return false
		}
	}
	return true
}

// integral returns the integral of a row.
func (m *deviceRows) integral(i int) *integral {
	n := m.integrals[i]
	if n == nil {
		n = new(integral)
		m.integrals[i] = n
	}
	return n
}

// integral adds up a rate that an engine averages over each of its intervals.
type integral struct {
	total float64
	at    int64 // timestamp of the last value, microseconds; 0: none yet
}

// gapIntervals is the maximum distance of two values, in intervals, for which
// the newer rate also counts for the time between.
const gapIntervals = 3

// add adds a value with its timestamp, in microseconds, and returns the total,
// which never decreases. A value counts for the time since the previous one,
// or, after a gap, for one interval. A value that is known already, or older,
// adds nothing.
func (n *integral) add(rate float64, at int64, interval time.Duration) float64 {
	seconds := (float64(at) - float64(n.at)) / 1e6
	if n.at != 0 && seconds > 0 && rate > 0 {
		if seconds > gapIntervals*interval.Seconds() {
			seconds = interval.Seconds()
		}
		n.total += rate * seconds
	}
	n.at = at
	return n.total
}
