package device

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Libraries return success with values that cannot be true: a utilization of
// 808,334,905 % (NVIDIA/DCGM#199), a counter of energy that reads 0 while the GPU
// changes its power state. Such a value would stay in totals forever.
const (
	// A ratio whose two windows differ a little can be slightly above 1
	// (NVIDIA/DCGM#152). A value above this limit is no ratio.
	mostRatio = 1.5
	// counterNoise is how far a counter may fall, as a part of its value, without
	// having been reset: interpolated counters of energy fall by a little.
	counterNoise = 0.01
	// A value that contradicts the previous ones is believed once this many readings
	// in a row, over this long a time, agree with it.
	lastingReadings = 3
	// maxOrigins is how many origins a counter of one source has before their numbers
	// are used again; Merge uses the higher bits.
	maxOrigins  = 1 << 8
	lastingTime = 5 * time.Second
	// maxAccepted is the number of counters of a device whose last value a filter
	// keeps although they were not in the last read. Their details are external text,
	// which may change.
	maxAccepted = 256
)

// Implausible is the value of a reading if the source knows that the library
// returned nonsense. It is refused and counted like other impossible values.
func Implausible() float64 { return math.Inf(1) }

// Grown reports whether a counter of the quantity can have grown by an amount between
// two measurements.
func (b Bounds) Grown(amount float64, first, last Window) bool {
	return b.Rate == 0 || amount <= growthLimit(b.Rate, first, last)
}

// growthLimit returns the largest growth between two measurements of a counter that
// grows by at most rate a second. Hardware updates its counters now and then, so that
// measurements within a second may differ by the growth of a second.
func growthLimit(rate float64, first, last Window) float64 {
	return rate * max((last.To-first.From).Seconds(), 1)
}

// PlausibilityFilter refuses the readings of one device of one source that cannot be true:
// values outside of the bounds of their quantity, counters that fall or grow faster
// than hardware can, and properties that change, until that has lasted. It keeps
// the last value that it has let through of each counter and property.
type PlausibilityFilter struct {
	specs *[Quantities]Spec
	tiers [2][]accepted
	size  float64    // of the memory, bytes; 0: not known
	power [2]float64 // the last two limits, watts; 0: not known
}

// NewPlausibilityFilter returns a filter that has seen nothing.
func NewPlausibilityFilter() *PlausibilityFilter { return newPlausibilityFilter(nil) }

// newPlausibilityFilter returns a filter with the table of the quantities; nil: Specs.
func newPlausibilityFilter(specs *[Quantities]Spec) *PlausibilityFilter {
	if specs == nil {
		table := Specs()
		specs = &table
	}
	return &PlausibilityFilter{specs: specs}
}

// Refusal is a reading that was refused, and why.
type Refusal struct {
	Reading Reading
	Because string
}

// Apply returns the readings that can be true, and the others. The readings are those
// of one read of a tier, sorted, each with its time of measurement. The list is used
// again. Of a counter that was reset, the first value after the reset is let through
// once it has lasted, with its own time of measurement; none is let through meanwhile.
// Of one whose values were wrong until then, the newest is, with another origin. A value
// to which its source gives another origin contradicts nothing.
func (f *PlausibilityFilter) Apply(tier Tier, readings []Reading) (plausible []Reading, refused []Refusal) {
	plausible = readings[:0]
	known, at := f.tiers[tier], 0
	for _, r := range readings {
		spec := &f.specs[r.Quantity]
		if spec.Bounds.ZeroIsNone && r.Value == 0 {
			continue
		}
		if spec.Unit == "ratio" && r.Value > 1 && r.Value <= mostRatio {
			r.Value = 1
		}
		because := f.contradiction(spec, &r)
		if because == "" && (accrues(spec, &r) || spec.Bounds.Constant) {
			for at < len(known) && known[at].last.compare(r) < 0 {
				at++
			}
			if at == len(known) || known[at].last.compare(r) != 0 {
				known = slices.Insert(known, at, accepted{last: r, origin: r.Origin, count: 1})
			} else {
				r, because = known[at].apply(r, spec.Bounds.Constant, f.rate(spec))
			}
		}
		if because != "" {
			refused = append(refused, Refusal{r, because})
			continue
		}
		f.learn(&r)
		plausible = append(plausible, r)
	}
	if len(known) > len(plausible)+len(refused)+maxAccepted {
		known = nil // what was forgotten begins with its next value
	}
	f.tiers[tier] = known
	return plausible, refused
}

// accrues reports whether a reading is that of a counter.
func accrues(spec *Spec, r *Reading) bool {
	return spec.Kind == Counter || r.Quantity == Extension && r.Details[1] == ExtensionCounter
}

// contradiction returns why a value cannot be that of its quantity; empty if it can.
func (f *PlausibilityFilter) contradiction(spec *Spec, r *Reading) string {
	b := &spec.Bounds
	switch {
	case math.IsInf(r.Value, 0):
		return "the library returned what it cannot mean"
	case r.Quantity == Extension:
		return ""
	case r.Value < b.Least:
		return fmt.Sprintf("it is below %v", b.Least)
	case b.Most > 0 && r.Value > b.Most:
		return fmt.Sprintf("it is above %v", b.Most)
	case spec.Kind == Gauge && r.Value > f.limit(b):
		return fmt.Sprintf("it is above %v, by the %s of the device", f.limit(b), f.specs[b.Limit].Name)
	default:
		return ""
	}
}

// learn keeps the values that bound other quantities.
func (f *PlausibilityFilter) learn(r *Reading) {
	switch r.Quantity {
	case MemorySize:
		f.size = r.Value
	case PowerLimit:
		f.power = [2]float64{r.Value, f.power[0]} // one of them may be wrong
	}
}

// limit returns the bound that another quantity of the device sets; infinite if none
// does.
func (f *PlausibilityFilter) limit(b *Bounds) float64 {
	known := max(f.power[0], f.power[1])
	if b.Limit == MemorySize {
		known = f.size
	}
	if b.LimitFactor == 0 || known == 0 {
		return math.Inf(1)
	}
	return max(b.LimitFactor*known, b.LimitFloor)
}

// rate returns the largest growth in a second of a counter of the device; 0: not
// known.
func (f *PlausibilityFilter) rate(spec *Spec) float64 {
	return min(f.limit(&spec.Bounds), spec.Bounds.Rate)
}

// ApplyProcesses sets values of the use of processes that cannot be true to Unknown,
// and returns them as refused. It changes the list.
func (f *PlausibilityFilter) ApplyProcesses(processes []Process) (plausible []Process, refused []Refusal) {
	examine := func(q Quantity, value *float64) {
		r := Reading{Quantity: q, Value: *value}
		if q == Utilization && r.Value > 1 && r.Value <= mostRatio {
			*value = 1
		} else if because := f.contradiction(&f.specs[q], &r); *value != Unknown && because != "" {
			*value, refused = Unknown, append(refused, Refusal{r, "of a process: " + because})
		}
	}
	for i := range processes {
		examine(Utilization, &processes[i].Utilization)
		examine(MemoryUsed, &processes[i].Memory)
	}
	return processes, refused
}

// accepted is the last reading of a counter or a property that was let through, and
// those since then that contradict it.
type accepted struct {
	last     Reading
	origin   uint16 // that the source gave it
	count    int    // readings that were let through, up to lastingReadings
	doubtful *doubt
}

// doubt is a row of readings that agree with each other, but not with the last
// accepted reading.
type doubt struct {
	first, last Reading
	count       int
}

// apply returns the reading to let through, or why there is none. A value that
// continues what was let through ends every doubt.
func (a *accepted) apply(r Reading, constant bool, rate float64) (Reading, string) {
	if r.Origin != a.origin {
		a.origin, r.Origin = r.Origin, a.nextOrigin()
		a.last, a.count, a.doubtful = r, 1, nil
		return r, ""
	}
	because := contradicts(&a.last, &r, constant, rate)
	if because == "" {
		if !constant {
			r.Value = max(r.Value, a.last.Value)
		}
		r.Origin = a.last.Origin
		if r.Measured.To > a.last.Measured.To {
			a.count = min(a.count+1, lastingReadings)
		}
		a.last, a.doubtful = r, nil
		return r, ""
	}
	d := a.doubtful
	if d == nil || contradicts(&d.last, &r, constant, rate) != "" {
		a.doubtful = &doubt{first: r, last: r, count: 1}
		return r, because
	}
	if r.Measured.To > d.last.Measured.To {
		d.count++
	}
	d.last = r
	if d.count < lastingReadings || r.Measured.To-d.first.Measured.To < lastingTime {
		return r, because
	}
	now := r
	if reset := d.first.Value < a.last.Value && (rate == 0 || d.first.Value <= growthLimit(rate, a.last.Measured, d.first.Measured)); reset && a.count >= lastingReadings {
		now, now.Origin = d.first, a.last.Origin
	} else { // the accepted value was wrong; so may be the first of those that contradict it
		now.Origin = a.nextOrigin()
	}
	a.last, a.count, a.doubtful = now, lastingReadings, nil
	return now, ""
}

// nextOrigin is an origin that differs from that of the last reading.
func (a *accepted) nextOrigin() uint16 { return (a.last.Origin + 1) % maxOrigins }

// contradicts returns why a reading cannot follow another one of the same counter or
// property; empty if it can. A counter may fall by the noise.
func contradicts(first, second *Reading, constant bool, rate float64) string {
	switch {
	case constant:
		if second.Value != first.Value {
			return fmt.Sprintf("it was %v before, which does not change", first.Value)
		}
	case second.Value < first.Value*(1-counterNoise):
		return fmt.Sprintf("it was %v before, and a reset has to last", first.Value)
	case rate > 0 && second.Value-first.Value > growthLimit(rate, first.Measured, second.Measured):
		return fmt.Sprintf("it was %v before, and grows by at most %v per second", first.Value, rate)
	}
	return ""
}

// RawCounter is one of several counters that a source adds up itself, such as those of
// the links of a device. A source must not add up values that a PlausibilityFilter would
// refuse, because they would stay in the sum. The zero value has not been read.
type RawCounter struct {
	value, before float64 // the last two that were believed
	known         bool
	fell          int // readings in a row that were below both
}

// Value returns the last value that was believed.
func (c *RawCounter) Value() (value float64, known bool) { return c.value, c.known }

// Apply applies a value. It is not believed, and ok is false, until a fall has lasted
// for some readings; then the counter was reset, and ended is what it had counted. A
// value that rose and falls back at once was wrong.
func (c *RawCounter) Apply(value float64) (ended float64, ok bool) {
	switch {
	case !c.known, value >= c.value:
		c.before, c.value = c.value, value
	case value >= c.before && c.before > 0:
		c.value = value
	case c.fell+1 < lastingReadings:
		c.fell++
		return 0, false
	default:
		ended = c.value
		c.before, c.value = 0, value
	}
	c.known, c.fell = true, 0
	return ended, true
}
