package simulated

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Fault is something that goes wrong for a time.
type Fault struct {
	Kind     string        // error, hang, disappear or reset
	After    time.Duration // since the fault was told to the source
	For      time.Duration // 0: for ever
	Quantity string        // of an error: the only quantity that fails
}

// UnmarshalJSON reads a fault with durations as people write them.
func (f *Fault) UnmarshalJSON(raw []byte) error {
	var file struct {
		Kind     string   `json:"kind"`
		After    duration `json:"after"`
		For      duration `json:"for"`
		Quantity string   `json:"quantity"`
	}
	if err := strict(raw, &file); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	*f = Fault{file.Kind, time.Duration(file.After), time.Duration(file.For), file.Quantity}
	return nil
}

// check says what is wrong with a fault of which only some kinds are possible.
func (f Fault) check(kinds ...string) error {
	if !slices.Contains(kinds, f.Kind) {
		return fmt.Errorf("kind: %q is not one of %q", f.Kind, kinds)
	}
	if f.Quantity == "" {
		return nil
	}
	specs := device.Specs()
	if f.Kind != "error" || !slices.ContainsFunc(specs[:], func(s device.Spec) bool { return s.Name == f.Quantity }) {
		return fmt.Errorf("quantity: only an error has one, and %q must be known", f.Quantity)
	}
	return nil
}

// faults are what goes wrong, counted in seconds from an origin.
type faults struct {
	list   []Fault
	origin float64
}

// at says whether a fault of this kind and quantity is there at t seconds,
// and until when; +Inf: for ever.
func (f faults) at(t float64, kind, quantity string) (until float64, there bool) {
	for _, fault := range f.list {
		from := f.origin + fault.After.Seconds()
		to := math.Inf(1)
		if fault.For > 0 {
			to = from + fault.For.Seconds()
		}
		if fault.Kind == kind && fault.Quantity == quantity && from <= t && t < to {
			until, there = max(until, to), true
		}
	}
	return until, there
}

// resets are the times, in order, at which counters start again after from
// and no later than to.
func (f faults) resets(from, to float64) (times []float64) {
	for _, fault := range f.list {
		if at := f.origin + fault.After.Seconds(); fault.Kind == "reset" && from < at && at <= to {
			times = append(times, at)
		}
	}
	slices.Sort(times)
	return times
}
