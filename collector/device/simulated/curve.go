package simulated

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
)

// turns is how often a random walk turns before it repeats itself. That it
// repeats keeps its integral, and so every counter, cheap at any time.
const turns = 64

// curve is a value over the time in seconds, at any time the same.
type curve struct {
	shape    string
	min, max float64
	period   float64
	noise    float64
	seed     uint64
	walk     []float64 // of random: where it turns
	walked   []float64 // of random: the integral, in periods, up to each turn
}

// curveFile is a curve as the file spells it.
type curveFile struct {
	Curve  string   `json:"curve"`
	Value  *float64 `json:"value"`
	Min    *float64 `json:"min"`
	Max    *float64 `json:"max"`
	Period duration `json:"period"`
	Noise  float64  `json:"noise"`
	Idle   *float64 `json:"idle"`
	Ready  *float64 `json:"ready"`
}

// compile checks the curve; seed makes random ones and noise its own.
func (f curveFile) compile(seed uint64) (curve, error) {
	if f.Noise < 0 {
		return curve{}, fmt.Errorf("noise: %g is negative", f.Noise)
	}
	switch f.Curve {
	case "", "constant":
		if f.Value == nil || f.Min != nil || f.Max != nil || f.Period != 0 {
			return curve{}, fmt.Errorf("a constant has a value, and no min, max or period")
		}
		return curve{shape: "constant", min: *f.Value, max: *f.Value, noise: f.Noise, seed: seed}, nil
	case "sine", "square", "ramp", "random":
		if f.Min == nil || f.Max == nil || *f.Min > *f.Max || f.Period <= 0 || f.Value != nil {
			return curve{}, fmt.Errorf("a %s has a min, a max that is not below it, a period, and no value", f.Curve)
		}
		c := curve{
			shape: f.Curve, min: *f.Min, max: *f.Max, noise: f.Noise,
			period: f.Period.seconds(), seed: seed,
		}
		c.plan()
		return c, nil
	default:
		return curve{}, fmt.Errorf("curve: %q is not constant, sine, square, ramp or random", f.Curve)
	}
}

// plan draws the turns of a random walk.
func (c *curve) plan() {
	if c.shape != "random" {
		return
	}
	c.walk, c.walked = make([]float64, turns+1), make([]float64, turns+1)
	for i := range turns {
		c.walk[i] = c.min + (c.max-c.min)*drawn(c.seed, uint64(i))
	}
	c.walk[turns] = c.walk[0]
	for i := range turns {
		c.walked[i+1] = c.walked[i] + (c.walk[i]+c.walk[i+1])/2
	}
}

// at is the value at t seconds, without noise.
func (c *curve) at(t float64) float64 {
	if c.shape == "constant" {
		return c.min
	}
	phase := t/c.period - math.Floor(t/c.period)
	switch c.shape {
	case "sine":
		return (c.min+c.max)/2 + (c.max-c.min)/2*math.Sin(2*math.Pi*phase)
	case "square":
		if phase < 0.5 {
			return c.max
		}
		return c.min
	case "ramp":
		return c.min + (c.max-c.min)*phase
	default:
		turn := int(math.Mod(math.Floor(t/c.period), turns))
		return c.walk[turn] + (c.walk[turn+1]-c.walk[turn])*phase
	}
}

// integral is the area under the curve from 0 to t seconds.
func (c *curve) integral(t float64) float64 {
	if c.shape == "constant" {
		return c.min * t
	}
	periods := math.Floor(t / c.period)
	phase := t/c.period - periods
	mean, swing := (c.min+c.max)/2, c.max-c.min
	switch c.shape {
	case "sine":
		return mean*t + swing/2*c.period/(2*math.Pi)*(1-math.Cos(2*math.Pi*phase))
	case "square":
		return c.period * (periods*mean + c.max*min(phase, 0.5) + c.min*max(phase-0.5, 0))
	case "ramp":
		return c.period * (periods*mean + c.min*phase + swing*phase*phase/2)
	default:
		rounds := math.Floor(periods / turns)
		turn := int(periods - rounds*turns)
		step := c.walk[turn+1] - c.walk[turn]
		return c.period * (rounds*c.walked[turns] + c.walked[turn] + c.walk[turn]*phase + step*phase*phase/2)
	}
}

// jitter is the noise at t seconds. It changes each second.
func (c *curve) jitter(t float64) float64 {
	if c.noise == 0 {
		return 0
	}
	return c.noise * (2*drawn(c.seed+1, uint64(math.Floor(t))) - 1)
}

// drawn is the n-th number between 0 and 1 that a seed draws.
func drawn(seed, n uint64) float64 {
	x := seed + (n+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// seeded derives a seed of its own for each thing that has a name.
func seeded(seed uint64, name ...string) uint64 {
	hash := fnv.New64a()
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], seed)
	_, _ = hash.Write(bytes[:]) // it never fails
	for _, part := range name {
		_, _ = hash.Write([]byte(part + "\x00"))
	}
	return hash.Sum64()
}
