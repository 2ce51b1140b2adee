package sysfs

import (
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Total adds up a counter over the parts of a device, such as the ports of an
// adapter. If the counter of a part is reset, or the part has no value any
// more, the sum does not decrease. It decreases only when the whole hardware
// was reset: when every part with a value decreased. The zero value is ready.
type Total struct {
	parts map[string]summedPart
	sum   float64
}

// summedPart is the counter of a part, and what the sum adds to it.
type summedPart struct {
	counter device.RawCounter
	base    float64
}

func (p summedPart) total() float64 {
	value, _ := p.counter.Value()
	return p.base + value
}

// Sum applies the values of the parts that have one and returns the total. The
// total is unknown if no part has ever had a value, and device.Implausible while it is
// not known whether the counter of a part was reset.
func (t *Total) Sum(answered map[string]float64) (total float64, known bool) {
	if t.parts == nil {
		t.parts = make(map[string]summedPart, len(answered))
	}
	resets, zeros, doubtful, sum := make(map[string]float64), 0, false, 0.0
	for name, value := range answered {
		p := t.parts[name]
		ended, ok := p.counter.Apply(value)
		doubtful = doubtful || !ok
		if ended > 0 {
			resets[name] = ended
		} else if value == 0 {
			zeros++
		}
		t.parts[name] = p
		sum += value
	}
	// Readers of the sum take a decrease for a restart at zero.
	restarted := len(resets) > 0 && len(resets)+zeros == len(answered) && sum < t.sum
	for name, p := range t.parts {
		_, ok := answered[name]
		switch value, _ := p.counter.Value(); {
		case !restarted:
			p.base += resets[name]
		case ok:
			p.base = 0
		default: // it counts from its last value on
			p.base = -value
		}
		t.parts[name] = p
	}
	if doubtful {
		return device.Implausible(), true
	}
	t.sum = 0
	// In a fixed order, because the rounding of large values depends on it.
	for _, name := range slices.Sorted(maps.Keys(t.parts)) {
		t.sum += t.parts[name].total()
	}
	return t.sum, len(t.parts) > 0
}
