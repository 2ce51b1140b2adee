package diagnosis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// TestSameTraits compares attempts that search one of several nodes with the
// same traits with attempts that search all, in random clusters in which many
// nodes have the same devices, some of them allocated.
func TestSameTraits(t *testing.T) {
	skipped := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 11))
		w := randomCluster(t, random)
		for i := range 8 {
			name := fmt.Sprintf("same-%d", i)
			w.node(name, nil)
			w.randomPool(rand.New(rand.NewPCG(seed, uint64(i%2))), "d", name, &name)
		}
		for i := range 4 {
			w.allocate(w.claim(fmt.Sprintf("same-%d", i), w.randomSpec(random)), fmt.Sprintf("same-%d", random.IntN(8)))
		}
		for range 6 {
			question, claims := w.randomQuestion(random)
			q := &query{nodeCache: w.diagnoser().newNodeCache(), inventory: w.inventory, pod: resolve(w.inventory, question)}
			q.counts, q.found = make([][]inventory.Count, len(q.pod.claims)), make([]claimDiagnosis, len(q.pod.claims))
			open, err := q.count(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(open) > 0 && len(q.pod.selectors()) == 0 {
				skipped += q.compareAttempts(t, fmt.Sprintf("seed %d", seed), open)
			}
			w.forget(claims)
		}
	}
	if skipped < 200 {
		t.Errorf("%d nodes were not searched: the test compares nothing", skipped)
	}
}

// compareAttempts returns how many nodes need no search.
func (q *query) compareAttempts(t *testing.T, name string, open []int) (skipped int) {
	t.Helper()
	for _, constrained := range []bool{true, false} {
		for _, all := range []bool{true, false} {
			a := attempt{nodes: q.inventory.Nodes(), claims: q.pod.forAllocator(open, constrained), all: all}
			want, err := q.attempt(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			a.traits = q.traits(open, constrained)
			got, err := q.attempt(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if got.fits != want.fits || got.failed != want.failed || fmt.Sprint(got.fatal) != fmt.Sprint(want.fatal) || !slices.Equal(got.tried, want.tried) || got.left != want.left {
				t.Fatalf("%s, constraints %v, all %v: %+v, want %+v", name, constrained, all, got, want)
			}
			known := make(map[inventory.TraitsKey]bool)
			for _, node := range got.tried {
				if key, is := a.traits.NodeKey(q.inventory, node); is {
					if known[key] {
						skipped++
					}
					known[key] = true
				}
			}
		}
	}
	return skipped
}
