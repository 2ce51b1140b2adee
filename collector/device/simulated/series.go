package simulated

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// series is what one quantity with certain details shows: of a gauge its
// value, of a counter its rate.
type series struct {
	quantity device.Quantity
	name     string // of the quantity
	details  [2]string
	counter  bool
	start    float64 // of a counter
	curve    curve
	idle     float64
	scaled   bool    // by the load, down to idle
	ready    float64 // instead of idle under any load; 0: idle
	ratio    bool    // never above 1
	signed   bool    // may be below 0
	sampled  float64 // seconds from one sample to the next; 0: each read measures it
}

// activity reports whether a quantity is by itself scaled by the load.
func activity(q device.Quantity) bool {
	switch q {
	case device.Utilization, device.EngineActive, device.SMOccupancy, device.MemoryActivity,
		device.MemoryUsed, device.Throttled,
		device.NVLinkTransmit, device.NVLinkReceive, device.NVLinkLinkTransmit, device.NVLinkLinkReceive,
		device.PCIeTransmit, device.PCIeReceive, device.NetworkTransmit, device.NetworkReceive:
		return true
	}
	return false
}

// tier says how often hardware is asked for a quantity. What shows at once that
// a device is unhealthy is read often.
func tier(q device.Quantity) device.Tier {
	switch q {
	case device.MemorySize, device.MemoryReserved, device.PowerLimit, device.RemappedRows, device.RetiredPages,
		device.PCIeReplays, device.NVLinkErrors, device.FabricState, device.HealthCheck, device.NetworkErrors:
		return device.Slow
	}
	return device.Fast
}

// parseQuantities reads the quantities of the device with the given name.
func parseQuantities(raw map[string]json.RawMessage, seed uint64, name string) ([]series, error) {
	specs := device.Specs()
	var all []series
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		q := slices.IndexFunc(specs[:], func(s device.Spec) bool { return s.Name == key })
		if q < 0 {
			return nil, fmt.Errorf("quantities: %q is not a quantity", key)
		}
		p := seriesParser{spec: specs[q], quantity: device.Quantity(q), seed: seeded(seed, name, key)}
		if err := p.parse(raw[key], nil); err != nil {
			return nil, fmt.Errorf("quantities: %s: %w", key, err)
		}
		all = append(all, p.found...)
	}
	slices.SortFunc(all, func(a, b series) int {
		return cmp.Or(
			cmp.Compare(a.quantity, b.quantity),
			strings.Compare(a.details[0], b.details[0]),
			strings.Compare(a.details[1], b.details[1]),
		)
	})
	return all, nil
}

// seriesParser reads one quantity into a series for each of its details.
type seriesParser struct {
	spec     device.Spec
	quantity device.Quantity
	seed     uint64
	found    []series
}

// parse walks down the details; below the last of them is what shows.
func (p *seriesParser) parse(raw json.RawMessage, details []string) error {
	if len(details) < len(p.spec.Details) {
		var inner map[string]json.RawMessage
		if err := json.Unmarshal(raw, &inner); err != nil {
			return fmt.Errorf("is not a map with a key for each %s", p.spec.Details[len(details)])
		}
		for _, detail := range slices.Sorted(maps.Keys(inner)) {
			if err := p.parse(inner[detail], append(slices.Clone(details), detail)); err != nil {
				return fmt.Errorf("%s: %w", detail, err)
			}
		}
		return nil
	}
	s := series{
		quantity: p.quantity,
		name:     p.spec.Name,
		counter:  p.spec.Kind == device.Counter,
		scaled:   activity(p.quantity),
		ratio:    p.spec.Unit == "ratio",
		signed:   p.spec.Unit == "celsius",
	}
	copy(s.details[:], details)
	read := s.readGauge
	if s.counter {
		read = s.readCounter
	}
	if err := read(raw, seeded(p.seed, details...)); err != nil {
		return err
	}
	p.found = append(p.found, s)
	return nil
}

func (s *series) readGauge(raw json.RawMessage, seed uint64) error {
	var f struct {
		curveFile
		Sampled duration `json:"sampled"`
	}
	if err := parseCurve(raw, &f, &f.curveFile); err != nil {
		return err
	}
	s.idleAt(f.Idle, f.Ready)
	s.sampled = f.Sampled.seconds()
	var err error
	s.curve, err = f.compile(seed)
	return err
}

func (s *series) readCounter(raw json.RawMessage, seed uint64) (err error) {
	var stands *float64
	if json.Unmarshal(raw, &stands) == nil && stands != nil {
		s.start = *stands
		s.curve, err = curveFile{Value: new(float64)}.compile(seed)
		return err
	}
	var f struct {
		Rate    json.RawMessage `json:"rate"`
		Start   float64         `json:"start"`
		Idle    *float64        `json:"idle"`
		Sampled duration        `json:"sampled"`
	}
	if err := strict(raw, &f); err != nil {
		return err
	}
	if f.Rate == nil {
		return errors.New("a counter has a rate")
	}
	var rate curveFile
	if err := parseCurve(f.Rate, &rate, &rate); err != nil {
		return fmt.Errorf("rate: %w", err)
	}
	if s.curve, err = rate.compile(seed); err != nil {
		return fmt.Errorf("rate: %w", err)
	}
	s.start, s.sampled = f.Start, f.Sampled.seconds()
	s.idleAt(cmp.Or(f.Idle, rate.Idle), rate.Ready)
	if s.curve.noise != 0 || s.curve.min < 0 || s.start < 0 || s.idle < 0 || s.ready < 0 {
		return errors.New("a counter only counts up: its rate is neither noisy nor negative, nor is its start")
	}
	return nil
}

// idleAt takes the values that show without load, and under the least load, where the
// file has them.
func (s *series) idleAt(idle, ready *float64) {
	if idle != nil {
		s.idle, s.scaled = *idle, true
	}
	if ready != nil {
		s.ready, s.scaled = *ready, true
	}
}

// least is what shows, of what is scaled, under a load that is nearly nothing.
func (s *series) least(load float64) float64 {
	if load > 0 && s.ready != 0 {
		return s.ready
	}
	return s.idle
}

// parseCurve reads what has a curve in it, or the number that stands for a
// constant.
func parseCurve(raw json.RawMessage, target any, f *curveFile) error {
	var constant *float64
	if json.Unmarshal(raw, &constant) == nil && constant != nil {
		f.Value = constant
		return nil
	}
	return strict(raw, target)
}

// strict decodes JSON that has no unknown keys.
func strict(raw json.RawMessage, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// gauge is what the series shows at t seconds under a load.
func (s *series) gauge(t, load float64) float64 {
	value, noise := s.curve.at(t), s.curve.jitter(t)
	if s.scaled {
		least := s.least(load)
		value, noise = least+load*(value-least), load*noise
	}
	value += noise
	if !s.signed {
		value = max(value, 0)
	}
	if s.ratio {
		value = min(value, 1)
	}
	return value
}

// counted is how much a counter rises between two times under one load.
func (s *series) counted(start, end, load float64) float64 {
	rise := s.curve.integral(end) - s.curve.integral(start)
	if s.scaled {
		rise = s.least(load)*(1-load)*(end-start) + load*rise
	}
	return max(rise, 0)
}
