package sysfs

import (
	"maps"
	"slices"
)

// Total adds up a counter over the parts of a device, such as the ports of an
// adapter, so that the sum falls only when the hardware has begun to count
// anew. A part that does not answer any more counts on with its last value
// until another part has fallen. The zero value is ready.
type Total struct {
	last map[string]float64
}

// Sum takes the values of the parts that have answered and returns the total.
// It is not known where no part has ever answered.
func (t *Total) Sum(answered map[string]float64) (total float64, known bool) {
	for part, value := range answered {
		if value < t.last[part] {
			clear(t.last)
			break
		}
	}
	if t.last == nil {
		t.last = make(map[string]float64, len(answered))
	}
	maps.Copy(t.last, answered)
	// In a fixed order, because the rounding of large values depends on it.
	for _, part := range slices.Sorted(maps.Keys(t.last)) {
		total += t.last[part]
	}
	return total, len(t.last) > 0
}
