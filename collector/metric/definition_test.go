package metric_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

func TestDefinitions(t *testing.T) {
	plain := metric.NewLabels(nil)
	list := metric.Definitions[[]float64]{
		{Family: metric.Family{Name: "dra_first"}, Fill: func(values []float64, b *metric.Builder) {
			for _, value := range values {
				b.Add(plain, value)
			}
		}},
		{Family: metric.Family{Name: "dra_durations", Type: metric.Histogram}},
		{Family: metric.Family{Name: "dra_count"}, Fill: func(values []float64, b *metric.Builder) {
			b.Add(plain, float64(len(values)))
		}},
	}
	b := metric.NewBuilder(0, nil)
	list.Fill([]float64{3, 4}, b)
	var rows []float64
	for _, row := range b.Finish().Rows() {
		rows = append(rows, row.Value)
	}
	if want := []float64{3, 4, 2}; !slices.Equal(rows, want) {
		t.Errorf("rows are %v, want %v", rows, want)
	}
	if families := list.Families(); len(families) != 3 || families[1].Name != "dra_durations" {
		t.Errorf("families are %v", families)
	}
}

// TestLabelCache changes lists at random: labels belong to keys, and those of a key that
// stays are the same.
func TestLabelCache(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 7))
	var cache metric.LabelCache[int, struct{ key int }]
	previous := map[int]*struct{ key int }{}
	const most = 150 // far more records than are looked through in one place
	for step := range 4000 {
		keys := random.Perm(most)[:random.IntN(most)]
		switch step % 4 {
		case 0: // a sorted list without a stretch of it
			slices.Sort(keys)
			first := random.IntN(len(keys) + 1)
			keys = slices.Delete(keys, first, first+random.IntN(len(keys)+1-first))
		case 1: // the same list with one record more
			keys = slices.Sorted(maps.Keys(previous))
			if key := random.IntN(most); previous[key] == nil {
				keys = slices.Insert(keys, random.IntN(len(keys)+1), key)
			}
		case 2:
			slices.Sort(keys)
		}
		labels := cache.Align(len(keys), func(i int) int { return keys[i] })
		if len(labels) != len(keys) {
			t.Fatalf("%d keys have %d labels", len(keys), len(labels))
		}
		next := map[int]*struct{ key int }{}
		for i, key := range keys {
			if labels[i].key == 0 {
				labels[i].key = key + 1
			}
			if old := previous[key]; labels[i].key != key+1 || old != nil && labels[i] != old {
				t.Fatalf("key %d has the labels of %d", key, labels[i].key-1)
			}
			next[key] = labels[i]
		}
		previous = next
	}
}
