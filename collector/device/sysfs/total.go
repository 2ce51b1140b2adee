package sysfs

import (
	"maps"
	"slices"
)

// Total adds up a counter over the parts of a device, such as the ports of an
// adapter. A part that begins to count anew (one port's counters are cleared)
// counts on in the sum from where it was, and so does one that does not answer
// any more. The sum falls only when the whole hardware has begun anew: when
// every part that answers has. The zero value is ready.
type Total struct {
	parts map[string]part
	sum   float64
}

// part is what one part last said, and what is added to it in the sum.
type part struct {
	said, base float64
}

// Sum takes the values of the parts that have answered and returns the total.
// It is not known where no part has ever answered.
func (t *Total) Sum(answered map[string]float64) (total float64, known bool) {
	if t.parts == nil {
		t.parts = make(map[string]part, len(answered))
	}
	if t.restarted(answered) {
		for name, p := range t.parts {
			// Of one that is silent counts what it grows by from now on.
			t.parts[name] = part{said: p.said, base: -p.said}
		}
	}
	for name, value := range answered {
		p := t.parts[name]
		if value < p.said {
			p.base += p.said
		}
		t.parts[name] = part{said: value, base: p.base}
	}
	t.sum = 0
	// In a fixed order, because the rounding of large values depends on it.
	for _, name := range slices.Sorted(maps.Keys(t.parts)) {
		t.sum += t.parts[name].base + t.parts[name].said
	}
	return t.sum, len(t.parts) > 0
}

// restarted reports whether every part that answers has fallen, those aside
// that have not counted anything, and with them the sum: who reads it takes
// one that fell for one that began at zero.
func (t *Total) restarted(answered map[string]float64) bool {
	fell, sum := false, 0.0
	for name, value := range answered {
		said := t.parts[name].said
		if value >= said && value > 0 {
			return false
		}
		fell = fell || value < said
		sum += value
	}
	return fell && sum < t.sum
}
