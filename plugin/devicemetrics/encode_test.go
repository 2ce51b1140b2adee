package devicemetrics

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

func second(n int64) time.Time { return time.Unix(1_000_000+n, 0) }

// A counter never falls with the same start.
func TestCounterStarts(t *testing.T) {
	e, err := newEncoder(testDriver, []Extension{{Name: "resets", Counter: true}})
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		value       float64
		start, want time.Time
	}{
		{value: 10},
		{value: 20},
		{value: 5, want: second(1)},
		{value: 7, want: second(1)},
		{value: 8, start: second(-100), want: second(1)},
		{value: 1, start: second(5), want: second(5)},
		{value: 0, start: second(5), want: second(5).Add(1)},
	} {
		for _, r := range []Reading{{Quantity: Energy}, {Extension: "resets"}} {
			r.Value, r.Start = step.value, step.start
			_, report, err := e.encode([]Device{{Pool: "p", Name: "d", Readings: []Reading{r}}}, nil, second(int64(i)))
			if err != nil {
				t.Fatal(err)
			}
			got := report.GetReport().Devices[0].Readings[0].StartTime
			if r.Extension != "" || step.value == 0 {
				continue
			}
			if (got == nil) != step.want.IsZero() || got != nil && !got.AsTime().Equal(step.want) {
				t.Errorf("step %d: start %v, want %v", i, got.AsTime(), step.want)
			}
		}
	}
}

func TestDescriptionIsKept(t *testing.T) {
	e, err := newEncoder(testDriver, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := e.encode([]Device{{Pool: "p", Name: "d"}}, nil, second(0))
	same, _, _ := e.encode([]Device{{Pool: "p", Name: "d"}}, nil, second(1))
	failed, _, _ := e.encode(nil, errTest{}, second(2))
	other, _, _ := e.encode(nil, nil, second(3))
	if first != same || first != failed || first == other {
		t.Error("the description changes without a reason, or does not change with one")
	}
}

type errTest struct{}

func (errTest) Error() string { return "test" }

func TestViolations(t *testing.T) {
	half, two := 0.5, 2.0
	valid := Device{Pool: "p", Name: "d",
		Readings: []Reading{
			{Quantity: Temperature, Details: []string{"gpu"}, Value: -3},
			{Quantity: Temperature, Details: []string{"memory"}, Value: 3},
			{Quantity: NetworkLinks, Details: []string{"1", "active"}, Value: 1},
			{Extension: "fan_rpm", Value: -1},
		},
		Health:    []HealthSignal{{Name: "memory", State: Unhealthy, Reason: strings.Repeat("é", 500) + "\xff\n"}},
		Processes: []Process{{PID: 7, Utilization: &half}},
	}
	e, err := newEncoder(testDriver, []Extension{{Name: "fan_rpm"}})
	if err != nil {
		t.Fatal(err)
	}
	_, report, err := e.encode([]Device{valid}, nil, second(0))
	if err != nil {
		t.Fatal(err)
	}
	if reason := report.GetReport().Devices[0].Health[0].Reason; len(reason) != maxText {
		t.Errorf("a reason of %d bytes", len(reason))
	}
	reading := func(r Reading) func(*Device) { return func(d *Device) { d.Readings = append(d.Readings[:0:0], r) } }
	for name, change := range map[string]func(*Device){
		"no pool":           func(d *Device) { d.Pool = "" },
		"name":              func(d *Device) { d.Name = "A b" },
		"control character": func(d *Device) { d.Model = "a\nb" },
		"long":              func(d *Device) { d.UUID = strings.Repeat("a", 129) },
		"unknown":           reading(Reading{Quantity: "fan"}),
		"not declared":      reading(Reading{Extension: "fan"}),
		"both":              reading(Reading{Quantity: Power, Extension: "fan_rpm"}),
		"nothing":           reading(Reading{}),
		"no details":        reading(Reading{Quantity: Temperature}),
		"details":           reading(Reading{Quantity: Power, Details: []string{"a"}}),
		"empty detail":      reading(Reading{Quantity: Temperature, Details: []string{""}}),
		"NaN":               reading(Reading{Quantity: Power, Value: math.NaN()}),
		"infinite":          reading(Reading{Quantity: Power, Value: math.Inf(1)}),
		"negative":          reading(Reading{Quantity: Energy, Value: -1}),
		"ratio":             reading(Reading{Quantity: Utilization, Value: 1.5}),
		"gauge with start":  reading(Reading{Quantity: Power, Start: second(0)}),
		"twice":             func(d *Device) { d.Readings = append(d.Readings[:4:4], d.Readings[0]) },
		"too many readings": func(d *Device) { d.Readings = make([]Reading, maxDeviceReadings+1) },
		"health":            func(d *Device) { d.Health = []HealthSignal{{Name: "memory"}} },
		"pid":               func(d *Device) { d.Processes = []Process{{}} },
		"process":           func(d *Device) { d.Processes = []Process{{PID: 1, Utilization: &two}} },
	} {
		d := valid
		change(&d)
		if _, _, err := e.encode([]Device{d}, nil, second(1)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, _, err := e.encode(make([]Device, maxDevices+1), nil, second(1)); err == nil {
		t.Error("too many devices: no error")
	}
}

// The table of quantities is a part of the agent's catalogue.
func TestQuantitiesAreOfTheCatalogue(t *testing.T) {
	found := 0
	for _, want := range device.Specs() {
		got, known := specOf(Quantity(want.Name))
		if !known {
			continue
		}
		found++
		if got.details != len(want.Details) || got.counter != (want.Kind == device.Counter) || got.ratio != (want.Unit == "ratio") {
			t.Errorf("%s: %+v, but the catalogue has %+v", want.Name, got, want)
		}
	}
	if found != 20 {
		t.Errorf("%d quantities of the catalogue", found)
	}
}
