package sysfs

import (
	"math"
	"slices"
	"testing"
)

func TestTotal(t *testing.T) {
	type parts = map[string]float64
	for _, test := range []struct {
		name  string
		reads []parts
		want  []float64 // -1: not known
	}{
		{"one part", []parts{{"a": 5}, {"a": 7}}, []float64{5, 7}},
		{"two parts", []parts{{"a": 5, "b": 10}, {"a": 6, "b": 12}}, []float64{15, 18}},
		{"nothing yet", []parts{{}, {"a": 5}}, []float64{-1, 5}},
		{"a part that does not answer keeps its value", []parts{{"a": 5, "b": 10}, {"b": 12}, {"a": 9, "b": 12}}, []float64{15, 17, 21}},
		{"also beside one that stands still", []parts{{"a": 5, "b": 10}, {"b": 10}}, []float64{15, 15}},
		{"also beside one that never counted", []parts{{"a": 5, "b": 0}, {"b": 0}}, []float64{5, 5}},
		{"a part that comes later", []parts{{"a": 5}, {"a": 5, "b": 3}}, []float64{5, 8}},
		{"the hardware was reset", []parts{{"a": 5, "b": 10}, {"a": 1, "b": 2}}, []float64{15, 3}},
		{"it was reset with one part less", []parts{{"a": 5, "b": 10}, {"a": 1}}, []float64{15, 1}},
		{"which has kept what it counted", []parts{{"a": 5, "b": 10}, {"a": 1}, {"a": 2, "b": 13}}, []float64{15, 1, 5}},
		{"which was reset, too", []parts{{"a": 5, "b": 10}, {"a": 1}, {"a": 2, "b": 4}}, []float64{15, 1, 6}},
		{"it was reset beside a part that never counted", []parts{{"a": 5, "b": 0}, {"a": 1, "b": 0}}, []float64{5, 1}},
		{"it was reset to zero", []parts{{"a": 5, "b": 10}, {"a": 0, "b": 0}, {"a": 0, "b": 1}}, []float64{15, 0, 1}},
		{"one part is cleared", []parts{{"a": 1e12, "b": 5000}, {"a": 1e12, "b": 100}, {"a": 1e12 + 1, "b": 101}}, []float64{1e12 + 5000, 1e12 + 5100, 1e12 + 5102}},
		{"one part is cleared, and again", []parts{{"a": 5, "b": 10}, {"a": 6, "b": 2}, {"a": 7, "b": 1}}, []float64{15, 18, 20}},
		{"one is cleared while the other one is silent", []parts{{"a": 5, "b": 10}, {"a": 6}, {"a": 6, "b": 3}}, []float64{15, 16, 19}},
		{"all are cleared, but what one has counted since is more than all before", []parts{{"a": 5, "b": 0}, {"a": 1, "b": 100}}, []float64{5, 106}},
		{"after all one", []parts{{"a": 5, "b": 10}, {"a": 1, "b": 2}, {"a": 3, "b": 1}}, []float64{15, 3, 6}},
		{"both fell, and yet there is more than before", []parts{{"a": 3, "b": 10}, {"a": 2}, {"a": 3, "b": 12}, {"a": 1, "b": 11}}, []float64{13, 2, 5, 17}},
		{"beyond 2⁵³ it does not fall", []parts{{"a": 1 << 60, "b": 3, "c": 1 << 53}, {"a": 1 << 60, "b": 3, "c": 1 << 53}}, []float64{1<<60 + 1<<53 + 3, 1<<60 + 1<<53 + 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var total Total
			for i, read := range test.reads {
				var got float64
				var known bool
				for range 3 { // a decrease has to last
					got, known = total.Sum(read)
				}
				if !known {
					got = -1
				}
				if got != test.want[i] {
					t.Errorf("read %d gives %v, want %v", i, got, test.want[i])
				}
			}
		})
	}
}

// A value that is wrong once or twice changes nothing that comes later.
func TestTotalOfWrongValues(t *testing.T) {
	doubt := math.Inf(1)
	for _, test := range []struct {
		name  string
		reads []float64 // of one of two parts; the other one has counted 1000
		want  []float64
	}{
		{"zero once", []float64{50, 0, 52}, []float64{1050, doubt, 1052}},
		{"zero twice", []float64{50, 0, 0, 53}, []float64{1050, doubt, doubt, 1053}},
		{"a fall that lasts is a reset", []float64{50, 1, 2, 3, 4}, []float64{1050, doubt, doubt, 1053, 1054}},
		{"a rise that does not last", []float64{50, 1e15, 52, 53}, []float64{1050, 1e15 + 1000, 1052, 1053}},
		{"a rise, then zero", []float64{50, 1e15, 0, 52, 53}, []float64{1050, 1e15 + 1000, doubt, 1052, 1053}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var total Total
			var got []float64
			for _, value := range test.reads {
				sum, _ := total.Sum(map[string]float64{"a": value, "b": 1000})
				got = append(got, sum)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the sums are %v, want %v", got, test.want)
			}
		})
	}
}
