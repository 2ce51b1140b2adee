// Package devicetest has tests that sources of hardware share.
package devicetest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Garbage is a library, or a tree of files, with two GPUs in the same state: 0, and 1 of
// which it returns a wrong value now and then, with success.
type Garbage struct {
	Wrong map[string][]string                       // what it returns instead, by what a test sets
	Truth func(second int) map[string]string        // the state of both
	Set   func(gpu int, values map[string]string)   // what is returned next
	Read  func(gpu int) (device.Observation, error) // with both tiers
}

// Run reads both GPUs once for each second, and fails the test if the filter lets
// something through of the second that differs from the first: there are only gaps. Each
// value is wrong once in a hundred times, once or twice in a row. DRA_EXPORTER_GARBAGE
// is how many seconds there are, with one wrong value in a thousand.
func (g Garbage) Run(t *testing.T) {
	t.Helper()
	seconds, rare := 300, 100
	if text := os.Getenv("DRA_EXPORTER_GARBAGE"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("DRA_EXPORTER_GARBAGE: %v", err)
		}
		seconds, rare = n, 1000
	}
	filters := []*device.PlausibilityFilter{device.NewPlausibilityFilter(), device.NewPlausibilityFilter()}
	random := rand.New(rand.NewPCG(uint64(seconds), 38))
	again, wrong, gaps := map[string]int{}, 0, 0
	for second := range seconds {
		truth := g.Truth(second)
		returned := maps.Clone(truth)
		for _, key := range slices.Sorted(maps.Keys(g.Wrong)) {
			begins := again[key] <= 0 && random.IntN(rare) == 0
			if again[key]--; second < 10 || !begins && again[key] < 0 {
				continue
			}
			returned[key] = g.Wrong[key][random.IntN(len(g.Wrong[key]))]
			if wrong++; begins {
				again[key] = random.IntN(2)
			}
		}
		g.Set(0, truth)
		g.Set(1, returned)
		shown := [2]map[string]float64{}
		for gpu, filter := range filters {
			o, err := g.Read(gpu)
			if err != nil {
				t.Fatalf("second %d: %v", second, err)
			}
			shown[gpu] = filtered(t, filter, o, time.Duration(second+1)*time.Second, gpu == 0)
		}
		for name, value := range shown[1] {
			if want, ok := shown[0][name]; !ok || value != want {
				t.Fatalf("second %d: %s is %v, want %v (%v)", second, name, value, want, ok)
			}
		}
		gaps += len(shown[0]) - len(shown[1])
	}
	if wrong < seconds/200 || gaps < wrong/2 {
		t.Errorf("%d wrong values, %d gaps: the test shows nothing", wrong, gaps)
	}
}

// filtered returns what the filter lets through of an observation. Of one without
// garbage, that is all.
func filtered(t *testing.T, filter *device.PlausibilityFilter, o device.Observation, at time.Duration, all bool) map[string]float64 {
	t.Helper()
	shown := map[string]float64{}
	for tier, readings := range [][]device.Reading{o.Readings, o.Slow} {
		for i := range readings {
			readings[i].Measured = device.Window{From: at, To: at}
		}
		slices.SortStableFunc(readings, func(a, b device.Reading) int {
			return cmp.Or(cmp.Compare(a.Quantity, b.Quantity), slices.Compare(a.Details[:], b.Details[:]))
		})
		plausible, refused := filter.Apply(device.Tier(tier), readings)
		if all && len(refused) > 0 {
			t.Fatalf("at %v: of the GPU without garbage %v is refused", at, refused)
		}
		for _, r := range plausible {
			shown[fmt.Sprint(device.Specs()[r.Quantity].Name, r.Details)] = r.Value
		}
	}
	return shown
}
