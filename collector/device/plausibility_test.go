package device

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// none is the value of a reading that is not let through.
func none() float64 { return math.NaN() }

// values has one reading a second go through a filter and returns what it lets through.
func (f *PlausibilityFilter) values(tier Tier, q Quantity, values []float64) []float64 {
	var got []float64
	for second, value := range values {
		at := time.Duration(second+1) * time.Second
		plausible, _ := f.Apply(tier, []Reading{{Quantity: q, Value: value, Measured: Window{at, at}}})
		if len(plausible) == 0 {
			got = append(got, none())
		} else {
			got = append(got, plausible[0].Value)
		}
	}
	return got
}

func TestFilter(t *testing.T) {
	for _, test := range []struct {
		name     string
		quantity Quantity
		values   []float64 // one a second
		want     []float64
	}{
		{"a utilization of 808,334,905 %", Utilization, []float64{0.5, 8083349.05, 0.5}, []float64{0.5, none(), 0.5}},
		{"a ratio of windows that differ a little", EngineActive, []float64{1.29}, []float64{1}},
		{"below zero", MemoryUsed, []float64{-1}, []float64{none()}},
		{"frost", Temperature, []float64{-5, 0, 65535}, []float64{-5, none(), none()}},
		{"no memory of its own", MemorySize, []float64{0, 0}, []float64{none(), none()}},
		{"memory that changes once", MemorySize, []float64{80e9, 1e12, 80e9}, []float64{80e9, none(), 80e9}},
		{"memory that has changed", MemorySize, []float64{80e9, 40e9, 40e9, 40e9, 40e9, 40e9, 40e9, 40e9}, []float64{80e9, none(), none(), none(), none(), none(), 40e9, 40e9}},
		{"energy of 200 J, twice", Energy, []float64{22.5e6, 200, 200, 22.5003e6}, []float64{22.5e6, none(), none(), 22.5003e6}},
		{"energy of nothing", Energy, []float64{22.5e6, 0, 22.5001e6, 0, 0, 22.5004e6}, []float64{22.5e6, none(), 22.5001e6, none(), none(), 22.5004e6}},
		{"energy of everything", Energy, []float64{22.5e6, 1.8e16, 22.5002e6}, []float64{22.5e6, none(), 22.5002e6}},
		{"energy that falls by its noise", Energy, []float64{22.5e6, 22.4e6, 22.5001e6}, []float64{22.5e6, 22.5e6, 22.5001e6}},
		{"a reset", Energy, []float64{22.5e6, 22.5001e6, 22.5002e6, 100, 200, 300, 400, 500, 600, 700}, []float64{22.5e6, 22.5001e6, 22.5002e6, none(), none(), none(), none(), none(), 100, 700}},
		{"a reset after the first value", Energy, []float64{22.5e6, 100, 200, 300, 400, 500, 600, 700}, []float64{22.5e6, none(), none(), none(), none(), none(), 600, 700}},
		{"an origin that is wrong", Energy, []float64{9e18, 500, 600, 700, 800, 900, 1000, 1100}, []float64{9e18, none(), none(), none(), none(), none(), 1000, 1100}},
		{"wrong twice at first", NVLinkTransmit, []float64{9e18, 0, 5e9, 6e9, 7e9, 8e9, 9e9, 10e9}, []float64{9e18, none(), none(), none(), none(), none(), 9e9, 10e9}},
		{"a blank count of errors", ECCErrors, []float64{5, 0, 5}, []float64{5, none(), 5}},
		{"a count that cannot be", ECCErrors, []float64{5, 4294967295, 5}, []float64{5, none(), 5}},
		{"a count that grew", ECCErrors, []float64{5, 6}, []float64{5, 6}},
		{"time that passes twice as fast", Throttled, []float64{10, 11, 100, 13}, []float64{10, 11, none(), 13}},
		{"a flag that is a number", RowRemapPending, []float64{0, 2, 0}, []float64{0, none(), 0}},
		{"what the source knows to be wrong", Power, []float64{Implausible()}, []float64{none()}},
	} {
		t.Run(test.name, func(t *testing.T) {
			same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
			if got := NewPlausibilityFilter().values(Fast, test.quantity, test.values); !slices.EqualFunc(got, test.want, same) {
				t.Errorf("%v lets through %v, want %v", test.values, got, test.want)
			}
		})
	}
}

// What a device can is a bound for what it does. A limit that was wrong once is none.
func TestFilterByLimitsOfTheDevice(t *testing.T) {
	f := NewPlausibilityFilter()
	read := func(readings ...Reading) string {
		slices.SortFunc(readings, Reading.compare)
		plausible, refused := f.Apply(Fast, readings)
		return fmt.Sprint(len(plausible), " let through, ", len(refused), " refused")
	}
	size := func(bytes float64) Reading { return Reading{Quantity: MemorySize, Value: bytes} }
	used := func(bytes float64) Reading { return Reading{Quantity: MemoryUsed, Value: bytes} }
	limit := func(watts float64) Reading { return Reading{Quantity: PowerLimit, Value: watts} }
	for _, step := range []struct {
		name     string
		readings []Reading
		want     string
	}{
		{"nothing is known", []Reading{used(2e12), power(5000)}, "2 let through, 0 refused"},
		{"the limits", []Reading{size(80e9), limit(700)}, "2 let through, 0 refused"},
		{"within them", []Reading{used(80e9), power(1200)}, "2 let through, 0 refused"},
		{"beyond them", []Reading{used(90e9), power(5000)}, "0 let through, 2 refused"},
		{"a limit that is wrong", []Reading{limit(0.08)}, "1 let through, 0 refused"},
		{"is no bound", []Reading{power(1200)}, "1 let through, 0 refused"},
		{"no limit", []Reading{limit(0)}, "0 let through, 0 refused"},
	} {
		if got := read(step.readings...); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
}

func TestFilterOfProcesses(t *testing.T) {
	f := NewPlausibilityFilter()
	f.Apply(Fast, []Reading{{Quantity: MemorySize, Value: 80e9}})
	got, refused := f.ApplyProcesses([]Process{
		{PID: 1, Utilization: 0.5, Memory: 1e9},
		{PID: 2, Utilization: 1.1, Memory: Unknown},
		{PID: 3, Utilization: 8083349.05, Memory: 18446744073709551615},
		{PID: 4, Utilization: Unknown, Memory: 90e9},
	})
	want := []Process{
		{PID: 1, Utilization: 0.5, Memory: 1e9},
		{PID: 2, Utilization: 1, Memory: Unknown},
		{PID: 3, Utilization: Unknown, Memory: Unknown},
		{PID: 4, Utilization: Unknown, Memory: Unknown},
	}
	if !slices.Equal(got, want) || len(refused) != 3 {
		t.Errorf("%v with %d refused, want %v with 3", got, len(refused), want)
	}
}

// Counters whose details change with each read do not fill the memory.
func TestFilterIsBounded(t *testing.T) {
	f := NewPlausibilityFilter()
	for i := range 10_000 {
		at := time.Duration(i+1) * time.Second
		f.Apply(Fast, []Reading{{Quantity: Throttled, Details: [2]string{fmt.Sprint("reason-", i)}, Value: 1, Measured: Window{at, at}}})
	}
	if n := len(f.tiers[Fast]); n > maxAccepted+1 {
		t.Errorf("%d counters are kept", n)
	}
}

// Every quantity has a bound, or a reason why it has none.
func TestBounds(t *testing.T) {
	for q, spec := range Specs() {
		b := spec.Bounds
		switch {
		case Quantity(q) == Extension:
		case spec.Kind == Counter && b.Rate <= 0, spec.Kind == Gauge && (b.Most <= b.Least || b.Rate != 0):
			t.Errorf("%s has the bounds %+v", spec.Name, b)
		case b.LimitFactor > 0 && b.Limit != MemorySize && b.Limit != PowerLimit:
			t.Errorf("%s is bound by %s, which no filter keeps", spec.Name, Specs()[b.Limit].Name)
		}
	}
}

// A source that returns nonsense is up; what is refused is counted, and logged once for
// each quantity of a device.
func TestRefusedReadingsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sampleEvery(t, time.Second, &fakeSource{name: "fake", readers: []Reader{nonsense{}}})
		time.Sleep(10*time.Second + 500*time.Millisecond)
		status := s.Statuses()[0]
		if !status.Up || !status.Measures || status.Refused < 10 || status.Errors != 0 {
			t.Errorf("the status is %+v", status)
		}
		if lines := s.logged.count.Load(); lines != 1 {
			t.Errorf("%d lines in the log", lines)
		}
		if samples := s.Latest(); len(samples) != 1 || len(samples[0].Readings) != 1 {
			t.Errorf("the samples are %v", samples)
		}
	})
}

// nonsense is a GPU whose utilization cannot be true.
type nonsense struct{}

func (nonsense) Key() string { return "GPU-1" }

func (nonsense) Read(context.Context, Tier) ([]Observation, error) {
	return []Observation{{Device: Device{UUID: "GPU-1"}, Readings: []Reading{power(70), utilization(8083349.05)}}}, nil
}

// A source that reads a counter or a property elsewhere says so by another origin: the
// value is let through, and what follows it is compared with it.
func TestFilterFollowsAnotherOrigin(t *testing.T) {
	for _, q := range []Quantity{Energy, MemorySize} {
		f := NewPlausibilityFilter()
		var got []string
		for second, r := range []Reading{{Value: 22.5e6}, {Value: 300, Origin: 1}, {Value: 300, Origin: 1}, {Value: 9, Origin: 1}, {Value: 22.5e6}} {
			r.Quantity, r.Measured = q, Window{time.Duration(second) * time.Second, time.Duration(second) * time.Second}
			plausible, _ := f.Apply(Fast, []Reading{r})
			for _, p := range plausible {
				got = append(got, fmt.Sprintf("%v@%d", p.Value, p.Origin))
			}
		}
		if want := []string{"2.25e+07@0", "300@1", "300@1", "2.25e+07@2"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", Specs()[q].Name, got, want)
		}
	}
}
