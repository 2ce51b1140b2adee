package cluster

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// changePools returns the supply after a random change: pools come, go, move to
// another node, or have other devices. Those that do not change stay the same
// objects, as the inventory has it.
func (o *randomCluster) changePools(before *dra.Supply) *dra.Supply {
	after := &dra.Supply{Pools: slices.Clone(before.Pools)}
	for range o.random.IntN(4) {
		n := o.random.IntN(300)
		changed := poolOf(n, o.random.IntN(8))
		at, found := slices.BinarySearchFunc(after.Pools, changed, comparePools)
		switch kind := o.random.IntN(6); {
		case !found:
			after.Pools = slices.Insert(after.Pools, at, changed)
			continue
		case kind == 0:
			after.Pools = slices.Delete(after.Pools, at, at+1)
			continue
		case kind == 1:
			changed.Node = "elsewhere"
		case kind == 2:
			changed.Capacity = nil
		case kind == 3:
			changed.Partitions = []dra.PartitionSupply{{Type: o.oneOf("1g", "2g")}}
		case kind == 4:
			changed.Slices, changed.Complete = 0, false
		}
		after.Pools[at] = changed
	}
	return after
}

func comparePools(a, b *dra.PoolSupply) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool))
}

// TestKeptRowsEqualRebuiltRows compares the rows that steps keep from one another
// with those of an exporter that starts at the time of the step and makes all of
// them. They are read after the last step, so that a step that changes rows of
// an earlier snapshot is found, too.
func TestKeptRowsEqualRebuiltRows(t *testing.T) {
	families := []string{"dra_claim_pending_", "dra_claims", "dra_claim_terminating", "dra_claim_orphaned", "dra_device", "dra_pool_", "dra_capacity", "dra_partition_"}
	for seed := range uint64(10) {
		o := newRandomCluster(seed, 3)
		h := newHarness(t)
		h.facts.Supply = &dra.Supply{}
		for n := range 200 {
			h.facts.Supply.Pools = append(h.facts.Supply.Pools, poolOf(n, n%8))
		}
		var want []string
		var got []Snapshot
		for range 40 {
			for range o.random.IntN(4) {
				o.change(h)
			}
			if o.random.IntN(2) == 0 {
				h.facts.Supply = o.changePools(h.facts.Supply)
			}
			h.facts.Diagnoses = o.diagnoses()
			h.step(time.Duration(o.random.IntN(3000)) * time.Millisecond)
			got = append(got, h.last)
			want = append(want, o.relist(t, h).lines(families))
		}
		for i := range got {
			h.last = got[i]
			if lines := h.lines(families); lines != want[i] {
				t.Fatalf("seed %d: step %d has kept\n%s\ninstead of\n%s", seed, i, linesOnlyIn(lines, want[i]), linesOnlyIn(want[i], lines))
			}
		}
	}
}
