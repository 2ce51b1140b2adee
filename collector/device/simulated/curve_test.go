package simulated

import (
	"math"
	"testing"
	"time"
)

func compiled(t *testing.T, shape string, seed uint64) curve {
	t.Helper()
	low, high := 2.0, 10.0
	f := curveFile{Curve: shape, Min: &low, Max: &high, Period: duration(7 * time.Second)}
	if shape == "constant" {
		f = curveFile{Value: &low}
	}
	c, err := f.compile(seed)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The integral is the area under the curve, summed in small steps.
func TestIntegral(t *testing.T) {
	for _, shape := range []string{"constant", "sine", "square", "ramp", "random"} {
		c := compiled(t, shape, 7)
		const step = 0.001
		area, highest, lowest := 0.0, math.Inf(-1), math.Inf(1)
		for i := range 1_000_000 { // more than two rounds of a random walk
			at := c.at((float64(i) + 0.5) * step)
			area, highest, lowest = area+at*step, max(highest, at), min(lowest, at)
			if i%100_000 == 33_333 {
				if got, want := c.integral(float64(i+1)*step), area; math.Abs(got-want) > 0.05 {
					t.Errorf("%s: the integral to %g s is %g, want %g", shape, float64(i+1)*step, got, want)
				}
			}
		}
		if lowest < c.min || highest > c.max {
			t.Errorf("%s goes from %g to %g", shape, lowest, highest)
		}
	}
}

func TestRandomIsTheSameUnderTheSameSeed(t *testing.T) {
	one, same, other := compiled(t, "random", 7), compiled(t, "random", 7), compiled(t, "random", 8)
	different := false
	for i := range 100 {
		at := float64(i) * 3.3
		if one.at(at) != same.at(at) {
			t.Fatalf("at %g s: %g and %g under the same seed", at, one.at(at), same.at(at))
		}
		different = different || one.at(at) != other.at(at)
	}
	if !different {
		t.Error("another seed gives the same walk")
	}
}

func TestJitterStaysWithinItsBounds(t *testing.T) {
	c := curve{noise: 0.5, seed: 3}
	seen := make(map[float64]bool)
	for i := range 1000 {
		jitter := c.jitter(float64(i))
		if math.Abs(jitter) > 0.5 {
			t.Fatalf("noise of 0.5 gives %g", jitter)
		}
		seen[jitter] = true
	}
	if len(seen) < 900 {
		t.Errorf("%d values in a thousand seconds", len(seen))
	}
}

// Floating-point numbers lose a little of a counter; it does not fall.
func TestCounterNeverFalls(t *testing.T) {
	config := parsed(t, `
devices:
- uuid: GPU-a
  quantities:
    energy: {rate: {curve: sine, min: 0, max: 1000, period: 10s}}
    nvlink_transmit: {rate: {curve: random, min: 0, max: 2e9, period: 7s}}
    nvlink_receive: {rate: {curve: square, min: 0, max: 2e9, period: 3s}}
`)
	u := newUnit(config.Devices[0], 0.3, 0)
	last := make([]float64, len(u.series))
	for i := range 1_000_000 {
		now := 1e6 + 7.4 + float64(i)*1e-6
		for j := range u.series {
			value := u.value(j, now)
			if value < last[j] {
				t.Fatalf("%s fell from %g to %g", u.series[j].name, last[j], value)
			}
			last[j] = value
		}
	}
}
