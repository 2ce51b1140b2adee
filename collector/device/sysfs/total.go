package sysfs

import (
	"maps"
	"slices"
)

// Total adds up a counter over the parts of a device, such as the ports of an
// adapter. If the counter of a part is reset, or the part has no value any
// more, the sum does not decrease. It decreases only when the whole hardware
// was reset: when every part with a value decreased. The zero value is ready.
type Total struct {
	parts map[string]part
	sum   float64
}

// part is the last value of a part, and what the sum adds to it.
type part struct {
	last, base float64
}

// Sum applies the values of the parts that have one and returns the total. The
// total is unknown if no part has ever had a value.
func (t *Total) Sum(answered map[string]float64) (total float64, known bool) {
	if t.parts == nil {
		t.parts = make(map[string]part, len(answered))
	}
	if t.restarted(answered) {
		for name, p := range t.parts {
			// A part without a value counts from its last value on.
			t.parts[name] = part{last: p.last, base: -p.last}
		}
	}
	for name, value := range answered {
		p := t.parts[name]
		if value < p.last {
			p.base += p.last
		}
		t.parts[name] = part{last: value, base: p.base}
	}
	t.sum = 0
	// In a fixed order, because the rounding of large values depends on it.
	for _, name := range slices.Sorted(maps.Keys(t.parts)) {
		t.sum += t.parts[name].base + t.parts[name].last
	}
	return t.sum, len(t.parts) > 0
}

// restarted reports whether every part with a value decreased, except for those
// at zero, and the sum with them: readers of the sum take a decrease for a
// restart at zero.
func (t *Total) restarted(answered map[string]float64) bool {
	fell, sum := false, 0.0
	for name, value := range answered {
		last := t.parts[name].last
		if value >= last && value > 0 {
			return false
		}
		fell = fell || value < last
		sum += value
	}
	return fell && sum < t.sum
}
