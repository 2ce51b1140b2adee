package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func compareNumbers(a, b *int) int { return cmp.Compare(*a, *b) }

// TestOrdered compares the list with a sort of all, after random changes.
func TestOrdered(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	list, present := ordered[int]{compare: compareNumbers}, map[int]*int{}
	for range 5_000 {
		for range random.IntN(12) {
			number := random.IntN(300)
			if thing := present[number]; thing != nil {
				list.remove(thing)
				delete(present, number)
				continue
			}
			present[number] = &number
			list.add(&number)
		}
		want := slices.SortedFunc(maps.Values(present), compareNumbers)
		if got := list.sorted(); !slices.Equal(got, want) {
			t.Fatalf("%d things, want %d, or in another order", len(got), len(want))
		}
	}
}

// BenchmarkOrdered replaces ten of many things.
func BenchmarkOrdered(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			list, all := ordered[int]{compare: compareNumbers}, make([]*int, size)
			add := func(i int) {
				number := random.Int()
				all[i] = &number
				list.add(&number)
			}
			for i := range all {
				add(i)
			}
			list.sorted()
			for b.Loop() {
				for range 10 {
					i := random.IntN(size)
					list.remove(all[i])
					add(i)
				}
				list.sorted()
			}
		})
	}
}
