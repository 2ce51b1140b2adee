package sysfs

import "testing"

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
		{"a part that comes later", []parts{{"a": 5}, {"a": 5, "b": 3}}, []float64{5, 8}},
		{"the hardware began anew", []parts{{"a": 5, "b": 10}, {"a": 1, "b": 2}}, []float64{15, 3}},
		{"it began anew with one part less", []parts{{"a": 5, "b": 10}, {"a": 1}}, []float64{15, 1}},
		{"beyond 2⁵³ it does not fall", []parts{{"a": 1 << 60, "b": 3, "c": 1 << 53}, {"a": 1 << 60, "b": 3, "c": 1 << 53}}, []float64{1<<60 + 1<<53 + 3, 1<<60 + 1<<53 + 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var total Total
			for i, read := range test.reads {
				got, known := total.Sum(read)
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
