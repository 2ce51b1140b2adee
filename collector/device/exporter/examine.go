package exporter

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/exposition"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// ExamineOptions configure Examine.
type ExamineOptions struct {
	Driver   string        // empty: the one that the socket is named after
	Duration time.Duration // in which the page is read, twice at least
	Interval time.Duration // between two reads
	Clock    clock.Clock
}

// Examination is what a driver served.
type Examination struct {
	Driver     string
	Failed     error         // why nothing could be examined, if it is no violation
	Reads      int           // of the page
	Slowest    time.Duration // of them
	Devices    int           // of the newest page
	Readings   int           // of the newest page
	Violations []Violation   // the first of each rule
	Notes      []string      // what is allowed, and looks like a mistake
}

// Examine reads the page at a URL as the agent does, for a bounded time, and compares it
// with docs/plugins.md. An error means that the URL or the driver's name is wrong.
func Examine(ctx context.Context, url string, o ExamineOptions) (Examination, error) {
	url, err := parseURL(url)
	if err != nil {
		return Examination{}, err
	}
	x := &examiner{options: o, result: Examination{Driver: o.Driver}, readings: make(map[string]float64), filters: make(map[device.PublishedName]*device.PlausibilityFilter)}
	if socket, ok := strings.CutPrefix(url, "unix://"); ok && o.Driver == "" {
		x.result.Driver, ok = strings.CutSuffix(filepath.Base(socket), suffix)
		if !ok || !isDriver(x.result.Driver) {
			x.violations.add(rulePlace, exposition.Series{}, "%s is not named after a driver", socket)
		}
	} else if !isDriver(o.Driver) {
		return Examination{}, fmt.Errorf("%q is not the name of a DRA driver", o.Driver)
	}
	x.decoder = newDecoder(x.result.Driver, nil)
	x.read(ctx, newClient(url))
	x.result.Violations = x.violations.list
	return x.result, nil
}

// examiner is the state of Examine.
type examiner struct {
	options    ExamineOptions
	decoder    *decoder
	result     Examination
	violations violations
	readings   map[string]float64 // of the last page, by device and name
	filters    map[device.PublishedName]*device.PlausibilityFilter
}

// read reads the page again and again until the time is over, or it cannot be read.
func (x *examiner) read(ctx context.Context, client *client) {
	first := x.options.Clock()
	for {
		began := x.options.Clock()
		text, err := client.read(ctx, func(int) error { return nil })
		now := x.options.Clock()
		if err == nil {
			err = x.page(text, device.Window{From: began.Elapsed, To: now.Elapsed}, now)
		}
		switch reason := source.ReasonOf(err); {
		case err == nil:
		case reason == source.ReasonInvalid || reason == source.ReasonTimeout:
			x.violations.add(rulePage, exposition.Series{}, "%v", err)
			return
		default:
			x.result.Failed = err
			return
		}
		x.result.Reads++
		x.result.Slowest = max(x.result.Slowest, now.Since(began))
		if x.result.Reads > 1 && now.Since(first)+x.options.Interval > x.options.Duration {
			return
		}
		timer := time.NewTimer(x.options.Interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			x.result.Failed = context.Cause(ctx)
			return
		case <-timer.C:
		}
	}
}

// page examines one page.
func (x *examiner) page(text []byte, window device.Window, now clock.Instant) error {
	devices, found, err := x.decoder.decode(text, window, now)
	if err != nil {
		return err
	}
	for _, violation := range found.list {
		x.violations.add(violation.Rule, exposition.Series{}, "%s", violation.Text)
	}
	x.examineLines(string(text))
	readings := make(map[string]float64)
	for i := range devices {
		x.device(&devices[i], readings)
	}
	x.readings = readings
	x.result.Devices, x.result.Readings = len(devices), len(readings)
	return nil
}

// device examines the values of a device, and adds them to those of the page.
func (x *examiner) device(o *device.Observation, readings map[string]float64) {
	name := o.Device.Published
	if x.filters[name] == nil {
		x.filters[name] = device.NewPlausibilityFilter()
	}
	var possible []device.Reading
	for _, r := range o.Readings {
		key := fmt.Sprint(name, readingName(r))
		spec := &x.decoder.specs[r.Quantity]
		counts := spec.Kind == device.Counter || r.Quantity == device.Extension && r.Details[1] == device.ExtensionCounter
		previous, ok := x.readings[key]
		readings[key] = r.Value
		switch {
		case spec.Unit == "ratio" && r.Value > 1:
			x.violations.add(ruleValue, exposition.Series{}, "%s of %s is %v", readingName(r), name.Device, r.Value)
		case counts && ok && r.Value < previous:
			x.violations.add(ruleFell, exposition.Series{}, "%s of %s fell from %v to %v", readingName(r), name.Device, previous, r.Value)
		default:
			possible = append(possible, r)
		}
	}
	slices.SortFunc(possible, func(a, b device.Reading) int {
		return cmp.Or(cmp.Compare(a.Quantity, b.Quantity), slices.Compare(a.Details[:], b.Details[:]))
	})
	_, refused := x.filters[name].Apply(device.Fast, possible)
	_, ofProcesses := x.filters[name].ApplyProcesses(o.Processes)
	for _, refusal := range append(refused, ofProcesses...) {
		x.violations.add(ruleValue, exposition.Series{}, "%s of %s is %v: %s", readingName(refusal.Reading), name.Device, refusal.Reading.Value, refusal.Because)
	}
}

// readingName is the family of a reading with its details.
func readingName(r device.Reading) string {
	if r.Quantity == device.Extension {
		return extensionPrefix + device.ExtensionMetric(r.Details)
	}
	name := device.Specs()[r.Quantity].Family()
	for _, detail := range r.Details {
		if detail != "" {
			name += " " + detail
		}
	}
	return name
}

// examineLines notes what the agent ignores.
func (x *examiner) examineLines(text string) {
	known := []string{"driver", "pool", "device"}
	for line := range strings.Lines(text) {
		s, err := exposition.Parse(line)
		if err != nil || !strings.HasPrefix(s.Name, device.FamilyPrefix) {
			continue
		}
		labels, ok := x.decoder.labels(s.Name)
		if !ok {
			if !strings.HasSuffix(s.Name, "_created") { // which Python's library adds to counters
				x.note(fmt.Sprintf("the agent ignores %s, which the specification does not have", clip(s.Name)))
			}
			continue
		}
		if math.IsNaN(s.Value) {
			x.violations.add(ruleLeftOut, s, "it is NaN")
		}
		for _, label := range s.Labels {
			if !slices.Contains(known, label.Name) && !slices.Contains(labels, label.Name) {
				x.note(fmt.Sprintf("the agent ignores the label %s of %s", clip(label.Name), clip(s.Name)))
			}
		}
	}
}

// note keeps each note once.
func (x *examiner) note(text string) {
	if !slices.Contains(x.result.Notes, text) && len(x.result.Notes) < 20 {
		x.result.Notes = append(x.result.Notes, text)
	}
}
