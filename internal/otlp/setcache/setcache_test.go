package setcache

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestComputedOnce: most values are computed once, whatever keys are added or
// removed, and what a push does not use is evicted.
func TestComputedOnce(t *testing.T) {
	computed := 0
	c := New(func(key int) string { computed++; return strconv.Itoa(key) })
	push := func(keys []int, most int) {
		t.Helper()
		c.NextPush()
		computed = 0
		for _, key := range keys {
			if got := c.Get(key); got != strconv.Itoa(key) {
				t.Fatalf("%q for %d", got, key)
			}
		}
		if computed > most {
			t.Errorf("%d of %d computed, want %d at most", computed, len(keys), most)
		}
	}
	all := rand.New(rand.NewPCG(1, 2)).Perm(1000)
	push(all, 1000)
	push(all, 0)
	push(slices.Concat([]int{-1}, all), indexAfter+1)
	push(slices.Concat([]int{-2}, all), 1)
	push(all[100:], indexAfter)
	push(all, 100+indexAfter)
	push(slices.Concat(all, all), 1000) // those of the first half are behind themselves
	push(nil, 0)
	push(all, 1000)
	if computed != 1000 {
		t.Errorf("%d computed after the eviction", computed)
	}
	c.NextPush()
	c.NextPush()
	if left := c.entries[:cap(c.entries)]; len(c.entries) > 0 || c.index != nil || left[0].value != "" {
		t.Errorf("%v is left of no push", left)
	}
}
