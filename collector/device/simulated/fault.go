package simulated

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Fault is something that goes wrong for a time.
type Fault struct {
	Kind      string        // error, hang, disappear, lost, reset, set or xid
	After     time.Duration // since the fault was given to the source
	For       time.Duration // 0: for ever
	Quantity  string        // of an error: the only quantity that fails; of a set: the one that it sets
	Details   [2]string     // of a set: those of the quantity
	Value     float64       // of a set: what the quantity shows
	Code      int           // of an xid
	Every     time.Duration // of an xid: from one report to the next; 0: there is one
	Partition string        // of an xid: the UUID of the partition that it is of; empty: of the device
}

// UnmarshalJSON reads a fault with durations as people write them.
func (f *Fault) UnmarshalJSON(raw []byte) error {
	var file struct {
		Kind      string   `json:"kind"`
		After     duration `json:"after"`
		For       duration `json:"for"`
		Quantity  string   `json:"quantity"`
		Details   []string `json:"details"`
		Value     float64  `json:"value"`
		Code      int      `json:"code"`
		Every     duration `json:"every"`
		Partition string   `json:"partition"`
	}
	if err := strict(raw, &file); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	*f = Fault{
		Kind: file.Kind, After: time.Duration(file.After), For: time.Duration(file.For), Quantity: file.Quantity, Value: file.Value,
		Code: file.Code, Every: time.Duration(file.Every), Partition: file.Partition,
	}
	if len(file.Details) > len(f.Details) {
		return fmt.Errorf("faults: details: no quantity has %d", len(file.Details))
	}
	copy(f.Details[:], file.Details)
	return nil
}

// check says what is wrong with a fault of which only some kinds are possible.
func (f Fault) check(kinds ...string) error {
	specs := device.Specs()
	known := slices.ContainsFunc(specs[:], func(s device.Spec) bool { return s.Name == f.Quantity })
	switch {
	case !slices.Contains(kinds, f.Kind):
		return fmt.Errorf("kind: %q is not one of %q", f.Kind, kinds)
	case f.Quantity != "" && (!known || f.Kind != "error" && f.Kind != "set"):
		return fmt.Errorf("quantity: only an error has one, or what is set, and %q must be known", f.Quantity)
	case f.Kind != "set" && (f.Value != 0 || f.Details != [2]string{}):
		return errors.New("value: only what is set has one, and details")
	case f.Kind == "xid" && f.Code <= 0:
		return fmt.Errorf("code: %d is not that of an XID", f.Code)
	case f.Kind != "xid" && (f.Code != 0 || f.Every != 0 || f.Partition != ""):
		return errors.New("code: only an XID has a code, a partition and an interval")
	}
	return nil
}

// checkOn says what is wrong with a fault of this very device.
func (f Fault) checkOn(d Device) error {
	sets := func(s series) bool { return !s.counter && f.sets(s) }
	if f.Kind == "set" && !slices.ContainsFunc(d.series, sets) {
		return fmt.Errorf("quantity: the device has no gauge %s%q that could be set", f.Quantity, f.Details)
	}
	names := func(p Device) bool { return p.Identity.UUID == f.Partition }
	if f.Partition != "" && !slices.ContainsFunc(d.Partitions, names) {
		return fmt.Errorf("partition: the device has no %q", f.Partition)
	}
	if f.Kind == "xid" && d.Identity.UUID == "" {
		return errors.New("kind: an Xid needs a device with a UUID")
	}
	return nil
}

// sets reports whether a fault is about this series.
func (f Fault) sets(s series) bool { return f.Quantity == s.name && f.Details == s.details }

// reports is how often an XID has been reported some time after the fault was
// given to the source, and when last.
func (f Fault) reports(elapsed time.Duration) (count uint64, last time.Duration) {
	if f.Kind != "xid" || elapsed < f.After {
		return 0, 0
	}
	if f.Every == 0 {
		return 1, f.After
	}
	passed := elapsed - f.After
	if f.For > 0 {
		passed = min(passed, f.For-1)
	}
	return uint64(passed/f.Every) + 1, f.After + passed/f.Every*f.Every
}

// next is how long after the fault was given to the source the XID will be
// reported again; false: never.
func (f Fault) next(elapsed time.Duration) (time.Duration, bool) {
	count, last := f.reports(elapsed)
	switch at := last + f.Every; {
	case f.Kind != "xid":
		return 0, false
	case count == 0:
		return f.After, true
	case at <= last, f.For > 0 && at-f.After >= f.For: // there is one, or none within centuries
		return 0, false
	default:
		return at, true
	}
}

// faults are what goes wrong, counted in seconds from an origin.
type faults struct {
	list   []Fault
	origin float64
}

// set is what a series shows in place of its curve, if anything.
func (f faults) set(t float64, s *series) (value float64, there bool) {
	for _, fault := range f.list {
		if fault.Kind == "set" && fault.sets(*s) && f.lasts(fault, t) {
			value, there = fault.Value, true
		}
	}
	return value, there
}

// lasts reports whether a fault is there at t seconds.
func (f faults) lasts(fault Fault, t float64) bool {
	start, end := f.span(fault)
	return start <= t && t < end
}

// span is from when until when, in seconds, a fault is there.
func (f faults) span(fault Fault) (start, end float64) {
	start, end = f.origin+fault.After.Seconds(), math.Inf(1)
	if fault.For > 0 {
		end = start + fault.For.Seconds()
	}
	return start, end
}

// since is how much of the source's time has passed since the origin.
func (f faults) since(now time.Duration) time.Duration {
	return now - time.Duration(math.Round(f.origin*float64(time.Second)))
}

// at says whether a fault of this kind and quantity is there at t seconds,
// and until when; +Inf: for ever.
func (f faults) at(t float64, kind, quantity string) (stop float64, ok bool) {
	for _, fault := range f.list {
		if fault.Kind == kind && fault.Quantity == quantity && f.lasts(fault, t) {
			_, end := f.span(fault)
			stop, ok = max(stop, end), true
		}
	}
	return stop, ok
}

// resets are the times, in order, at which counters start again after start
// and no later than end.
func (f faults) resets(start, end float64) (times []float64) {
	for _, fault := range f.list {
		if at := f.origin + fault.After.Seconds(); fault.Kind == "reset" && start < at && at <= end {
			times = append(times, at)
		}
	}
	slices.Sort(times)
	return times
}
