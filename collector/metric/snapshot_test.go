package metric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// build makes the snapshot of the rows.
func build(b *Builder, rows []Row) *Snapshot {
	for family, run := range Runs(rows) {
		b.In(family)
		for _, row := range run {
			b.add(series{row.Labels, row.Start, row.Past}, row.Value)
		}
	}
	return b.Finish()
}

// sameRow compares rows to the bit: NaN is the same as NaN, and 0 is another value
// than -0.
func sameRow(a, b Row) bool {
	same := math.Float64bits(a.Value) == math.Float64bits(b.Value)
	a.Value, b.Value = 0, 0
	return same && a == b
}

// randomTable is rows of three families that change a little from snapshot to
// snapshot.
type randomTable struct {
	random   *rand.Rand
	families []*Family
	labels   []*Labels
	rows     [3][]Row
}

func newRandomTable(seed uint64) *randomTable {
	table := &randomTable{random: rand.New(rand.NewPCG(seed, 7)), families: []*Family{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	for i := range 300 {
		table.labels = append(table.labels, NewLabels([]string{"i"}, fmt.Sprint(i)))
	}
	return table
}

func (r *randomTable) row(family int) Row {
	row := Row{Family: r.families[family], Labels: r.labels[r.random.IntN(len(r.labels))], Value: float64(r.random.IntN(3)), Past: r.random.IntN(9) == 0}
	if r.random.IntN(2) == 0 {
		row.Start = time.Unix(int64(r.random.IntN(2)), 0)
	}
	return row
}

func (r *randomTable) change() {
	of := r.random.IntN(len(r.rows))
	rows := r.rows[of]
	at := r.random.IntN(len(rows) + 1)
	switch kind := r.random.IntN(10); {
	case kind == 0:
		rows = slices.Insert(rows, at, r.row(of))
	case kind == 1:
		for range r.random.IntN(200) {
			rows = append(rows, r.row(of))
		}
	case kind == 2:
		rows = rows[:at]
	case kind == 3:
		r.families[of], r.families[0] = r.families[0], r.families[of]
		r.rows[of], r.rows[0] = r.rows[0], r.rows[of]
		return
	case at == len(rows):
	case kind == 4:
		rows[at].Start = rows[at].Start.Add(time.Second)
	case kind == 5:
		rows[at].Past = !rows[at].Past
	case kind == 6:
		rows[at].Labels = r.labels[r.random.IntN(len(r.labels))]
	default:
		rows[at].Value = []float64{0, math.Copysign(0, -1), math.NaN(), 1}[r.random.IntN(4)]
	}
	r.rows[of] = rows
}

// TestSnapshots compares random snapshots with the rows that they were made of,
// after all of them have been made.
func TestSnapshots(t *testing.T) {
	for seed := range uint64(100) {
		table, builder := newRandomTable(seed), NewBuilder(0, nil)
		var (
			snapshots []*Snapshot
			want      [][]Row
		)
		for range 60 {
			for range table.random.IntN(4) {
				table.change()
			}
			rows := slices.Concat(table.rows[:]...)
			snapshots, want = append(snapshots, build(builder, rows)), append(want, rows)
		}
		for i, snapshot := range snapshots {
			if got := snapshot.Rows(); !slices.EqualFunc(got, want[i], sameRow) {
				t.Fatalf("seed %d: snapshot %d has %d rows, want %d, or others", seed, i, len(got), len(want[i]))
			}
			if i > 0 && (snapshot == snapshots[i-1]) != slices.EqualFunc(want[i], want[i-1], sameRow) {
				t.Fatalf("seed %d: snapshot %d is the same as the one before: %v", seed, i, snapshot == snapshots[i-1])
			}
		}
	}
}

// TestSnapshotsShare checks what a snapshot shares with the one before.
func TestSnapshotsShare(t *testing.T) {
	family, labels := &Family{Name: "a"}, NewLabels(nil)
	other := Row{Family: &Family{Name: "b"}, Labels: labels}
	rows := make([]Row, 10*partRows, 10*partRows+1)
	for i := range rows {
		rows[i] = Row{Family: family, Labels: labels, Value: float64(i)}
	}
	builder := NewBuilder(0, nil)
	before := build(builder, append(rows, other))
	sharedWith := func(rows []Row) (whole, layouts int) {
		after := build(builder, rows)
		for i := range after.parts {
			for _, old := range before.parts {
				switch {
				case samePart(old, after.parts[i]):
					whole++
				case &old.series[0] == &after.parts[i].series[0]:
					layouts++
				}
			}
		}
		before = after
		return whole, layouts
	}
	if whole, _ := sharedWith(append(rows, other)); whole != 11 {
		t.Errorf("the same rows share %d parts of 11", whole)
	}
	rows[3*partRows].Value = -1
	if whole, layouts := sharedWith(append(rows, other)); whole != 10 || layouts != 1 {
		t.Errorf("after a change of a value, %d parts of 11 are shared, and the series of %d", whole, layouts)
	}
	rows[3*partRows].Past = true
	if whole, layouts := sharedWith(append(rows, other)); whole != 10 || layouts != 0 {
		t.Errorf("after a change of a series, %d parts of 11 are shared, and the series of %d", whole, layouts)
	}
	if whole, _ := sharedWith(slices.Concat([]Row{other}, rows[:9*partRows])); whole != 10 {
		t.Errorf("in another order, %d parts of 10 are shared", whole)
	}
	if none := (*Snapshot)(nil).Rows(); none != nil {
		t.Errorf("no snapshot has the rows %v", none)
	}
}

// TestBuilderLimit checks that a family has at most limit rows, except for the one
// that is not limited, and that what is dropped is counted.
func TestBuilderLimit(t *testing.T) {
	limited, uncapped, labels := &Family{Name: "a"}, &Family{Name: "b"}, NewLabels(nil)
	builder := NewBuilder(2, uncapped)
	for range 2 {
		for _, family := range []*Family{limited, uncapped} {
			builder.In(family)
			for i := range 3 {
				builder.Add(labels, float64(i))
			}
		}
		want := []Row{
			{Family: limited, Labels: labels}, {Family: limited, Labels: labels, Value: 1},
			{Family: uncapped, Labels: labels}, {Family: uncapped, Labels: labels, Value: 1}, {Family: uncapped, Labels: labels, Value: 2},
		}
		if got := builder.Finish().Rows(); !slices.Equal(got, want) {
			t.Errorf("rows are %v, want %v", got, want)
		}
	}
	if dropped := builder.Dropped()[limited]; dropped != 2 || len(builder.Dropped()) != 1 {
		t.Errorf("%v rows were dropped of the limited family in two snapshots", dropped)
	}
}

// BenchmarkBuilder is a snapshot of 8,192 rows of which all values have changed, and
// its list of rows.
func BenchmarkBuilder(b *testing.B) {
	labels, start := NewLabels(nil), time.Unix(1e9, 0)
	families := make([]*Family, 64)
	for i := range families {
		families[i] = &Family{}
	}
	builder, value := NewBuilder(100000, nil), 0.0
	build := func() *Snapshot {
		value++
		for _, family := range families {
			builder.In(family)
			for range 128 {
				builder.AddFrom(labels, value, start)
			}
		}
		return builder.Finish()
	}
	b.Run("snapshot", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			build()
		}
	})
	b.Run("rows", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			joinParts(build().parts)
		}
	})
}
