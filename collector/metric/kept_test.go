package metric

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestKept compares random snapshots with the rows that they were made of, also
// after later ones, and checks that equal parts are shared.
func TestKept(t *testing.T) {
	families := []*Family{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	labels := make([]*Labels, 300)
	for i := range labels {
		labels[i] = NewLabels([]string{"i"}, fmt.Sprint(i))
	}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 7))
		var (
			kept      Kept
			table     [3][]Row
			scratch   []Row
			snapshots []*Snapshot
			want      [][]Row
		)
		for range 40 {
			of := random.IntN(3)
			switch at := random.IntN(len(table[of]) + 1); random.IntN(4) {
			case 0:
				table[of] = slices.Insert(table[of], at, Row{Family: families[of], Labels: labels[random.IntN(len(labels))]})
			case 1:
				for range random.IntN(200) {
					table[of] = append(table[of], Row{Family: families[of], Labels: labels[random.IntN(len(labels))], Value: float64(random.IntN(3))})
				}
			case 2:
				table[of] = table[of][:at]
			default:
				if at < len(table[of]) {
					table[of][at].Value++
				}
			}
			scratch = append(scratch[:0], slices.Concat(table[:]...)...)
			snapshots, want = append(snapshots, kept.Keep(scratch)), append(want, slices.Clone(scratch))
		}
		for i, snapshot := range snapshots {
			if got := snapshot.Rows(); !slices.Equal(got, want[i]) {
				t.Fatalf("seed %d: snapshot %d has %d rows, want %d, or others", seed, i, len(got), len(want[i]))
			}
		}
	}
}

func TestKeptShares(t *testing.T) {
	family, labels := &Family{Name: "a"}, NewLabels(nil)
	rows := make([]Row, 10*keptRows)
	for i := range rows {
		rows[i] = Row{Family: family, Labels: labels, Value: float64(i)}
	}
	var kept Kept
	before := kept.Keep(rows)
	if kept.Keep(rows) != before {
		t.Error("the snapshot of the same rows is another")
	}
	rows[3*keptRows].Value = -1
	after := kept.Keep(rows)
	shared := 0
	for i := range after.parts {
		if samePart(before.parts[i], after.parts[i]) {
			shared++
		}
	}
	if shared != 9 || before.Rows()[3*keptRows].Value != float64(3*keptRows) || after.Rows()[3*keptRows].Value != -1 {
		t.Errorf("%d of 10 parts are shared", shared)
	}
	if none := (*Snapshot)(nil).Rows(); none != nil {
		t.Errorf("no snapshot has the rows %v", none)
	}
}
