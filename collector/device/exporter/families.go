package exporter

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/exposition"
)

// The families of a driver's page that are of no quantity.
const (
	infoFamily          = device.FamilyPrefix + "info"
	processesFamily     = device.FamilyPrefix + "processes"
	processMemoryFamily = device.FamilyPrefix + "process_memory_bytes"
	processRatioFamily  = device.FamilyPrefix + "process_utilization_ratio"
	extensionPrefix     = device.FamilyPrefix + "ext_"
)

// healthStates are the states of a driver's health signals.
func healthStates() []string { return []string{"healthy", "degraded", "unhealthy"} }

// decoder decodes the pages of one DRA driver, whose series are of the project's own
// families. docs/plugins.md is the specification. It is safe for concurrent use.
type decoder struct {
	driver     string
	quantities map[string]device.Quantity // by the names of their families
	specs      [device.Quantities]device.Spec
	extensions map[string]bool // names after extensionPrefix that are returned; nil: all
}

// newDecoder returns a decoder of a driver's pages, which returns these extensions.
func newDecoder(driver string, extensions map[string]bool) *decoder {
	d := &decoder{driver: driver, quantities: make(map[string]device.Quantity), specs: device.Specs(), extensions: extensions}
	for q, spec := range d.specs {
		if device.Quantity(q) != device.Extension {
			d.quantities[spec.Family()] = device.Quantity(q)
		}
	}
	return d
}

// labels returns which labels the series of a family have, beside those of the device;
// false if the specification does not have the family.
func (d *decoder) labels(family string) (names []string, ok bool) {
	if q, ok := d.quantities[family]; ok {
		return d.specs[q].Details, true
	}
	switch family {
	case infoFamily:
		return []string{"vendor", "model", "driver_version", "parent"}, true
	case processMemoryFamily, processRatioFamily:
		return []string{"pid"}, true
	}
	return nil, family == processesFamily || strings.HasPrefix(family, extensionPrefix)
}

// decoding is the state of decoding one page.
type decoding struct {
	*decoder
	window     device.Window // of the values without a time stamp
	now        clock.Instant
	devices    []device.Observation
	states     []pageDevice // of the devices
	indexes    map[device.PublishedName]int
	violations violations
}

// pageDevice is what a page has of a device that its observation does not have yet.
type pageDevice struct {
	described bool
	signals   map[string]string // the state of each that is 1; empty: none so far
	processes map[int]int       // where each process is in the observation
	count     float64           // of the processes; below 0: the page does not say
}

// decode returns the devices of a page with what it has of them. Series that violate
// the specification are left out; an error means that nothing of the page is used.
func (d *decoder) decode(text []byte, window device.Window, now clock.Instant) ([]device.Observation, violations, error) {
	p := &decoding{decoder: d, window: window, now: now, indexes: make(map[device.PublishedName]int)}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return nil, violations{}, invalid("the page ends within a line")
	}
	number, count := 0, 0
	for line := range strings.Lines(string(text)) {
		number++
		name := exposition.Name(line)
		if name == "" {
			continue
		}
		if count++; count > maxSeries {
			return nil, violations{}, invalid("the page has more than %d series", maxSeries)
		}
		if _, ok := d.labels(name); !ok {
			continue
		}
		s, err := exposition.Parse(line)
		if err != nil {
			return nil, violations{}, invalid("parse the page: line %d: %w", number, err)
		}
		if !math.IsNaN(s.Value) {
			p.apply(s)
		}
	}
	p.finish()
	return p.devices, p.violations, nil
}

// apply applies one series.
func (p *decoding) apply(s exposition.Series) {
	names, ok := p.labels(s.Name) // a line can begin with a label of that name
	if !ok {
		return
	}
	details, ok := p.details(s, names)
	if !ok {
		return
	}
	at, ok := p.device(s)
	if !ok {
		return
	}
	q, isQuantity := p.quantities[s.Name]
	extension, isExtension := strings.CutPrefix(s.Name, extensionPrefix)
	switch {
	case s.Name == infoFamily:
		p.describe(at, s)
	case math.IsInf(s.Value, 0):
		p.violations.add(ruleValue, s, "%v is not finite", s.Value)
	case s.Name == processesFamily:
		if p.states[at].count >= 0 {
			p.violations.add(ruleOnce, s, "it is there twice")
		}
		p.states[at].count = max(s.Value, 0)
	case s.Name == processMemoryFamily, s.Name == processRatioFamily:
		p.process(at, s, details[0])
	case isQuantity && q == device.DriverHealth:
		p.signal(at, s, details)
	case isQuantity:
		p.read(at, s, device.Reading{Quantity: q, Details: details})
	case isExtension && (p.extensions == nil || p.extensions[extension]):
		details, err := device.ParseExtension(extension)
		if err != nil {
			p.violations.add(ruleExtension, s, "%v", err)
			return
		}
		p.read(at, s, device.Reading{Quantity: device.Extension, Details: details})
	}
}

// details returns the values of the labels that the table has for a family.
func (p *decoding) details(s exposition.Series, names []string) (details [2]string, ok bool) {
	if s.Name == infoFamily {
		return details, true
	}
	for i, name := range names {
		details[i] = s.Labels.Get(name)
		switch {
		case details[i] == "":
			p.violations.add(ruleDetails, s, "it has no label %s", name)
			return details, false
		case !isText(details[i], maxDetail):
			p.violations.add(ruleText, s, "the label %s is not text of at most %d bytes", name, maxDetail)
			return details, false
		}
	}
	return details, true
}

// device returns the index of the device of a series. It is a device of the driver.
func (p *decoding) device(s exposition.Series) (int, bool) {
	name := device.PublishedName{Driver: s.Labels.Get("driver"), Pool: s.Labels.Get("pool"), Device: s.Labels.Get("device")}
	switch {
	case name.Driver != p.driver:
		p.violations.add(ruleOwn, s, "the label driver is %q, and not %q", clip(name.Driver), p.driver)
		return 0, false
	case name.Pool == "" || !isLabel(name.Device):
		p.violations.add(ruleDevice, s, "pool %q and device %q are not the names of a published device", clip(name.Pool), clip(name.Device))
		return 0, false
	case !isText(name.Pool, maxPool):
		p.violations.add(ruleText, s, "the label pool is not text of at most %d bytes", maxPool)
		return 0, false
	}
	at, ok := p.indexes[name]
	if ok {
		return at, true
	}
	if at = len(p.devices); at == maxDevices {
		p.violations.add(rulePage, s, "the page has more than %d devices", maxDevices)
		return 0, false
	}
	// The texts are parts of the page, and would keep all of it in memory.
	name = device.PublishedName{Driver: p.driver, Pool: strings.Clone(name.Pool), Device: strings.Clone(name.Device)}
	p.indexes[name] = at
	p.states = append(p.states, pageDevice{count: -1})
	p.devices = append(p.devices, device.Observation{Device: device.Device{
		Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown,
		GPUInstance: device.Unknown, ComputeInstance: device.Unknown, Published: name,
	}})
	return at, true
}

// describe applies the series of a device's identity.
func (p *decoding) describe(at int, s exposition.Series) {
	vendor, model, version, parent := s.Labels.Get("vendor"), s.Labels.Get("model"), s.Labels.Get("driver_version"), s.Labels.Get("parent")
	d, state := &p.devices[at].Device, &p.states[at]
	switch {
	case s.Value != 1:
		p.violations.add(ruleInfo, s, "the value is %v", s.Value)
	case !isText(vendor, maxDetail) || !isText(version, maxDetail) || !isText(model, maxIdentity):
		p.violations.add(ruleText, s, "vendor and driver_version are not text of at most %d bytes, or model of %d", maxDetail, maxIdentity)
	case parent != "" && (!isLabel(parent) || parent == d.Published.Device):
		p.violations.add(ruleParent, s, "the parent %q is not the name of another device", clip(parent))
	case state.described:
		p.violations.add(ruleOnce, s, "the device is described twice")
	default:
		state.described = true
		d.Vendor, d.Model, d.DriverVersion, d.PublishedParent = vendor, model, version, parent
		keep(d)
	}
}

// read applies a value. What is impossible for its quantity, device.PlausibilityFilter refuses.
func (p *decoding) read(at int, s exposition.Series, r device.Reading) {
	o := &p.devices[at]
	isSame := func(other device.Reading) bool { return other.Quantity == r.Quantity && other.Details == r.Details }
	window, fresh := measured(s, p.window, p.now)
	switch {
	case !fresh:
		p.violations.add(ruleAge, s, "its time stamp is older than %v", maxAge)
	case r.Quantity == device.Extension && r.Details[1] == device.ExtensionCounter && s.Value < 0:
		p.violations.add(ruleValue, s, "the counter is negative")
	case len(o.Readings) == maxReadings:
		p.violations.add(ruleReadings, s, "the device has more than %d values", maxReadings)
	case slices.ContainsFunc(o.Readings, isSame):
		p.violations.add(ruleOnce, s, "it is there twice")
	default:
		r.Value, r.Measured = s.Value, window
		for i := range r.Details {
			r.Details[i] = strings.Clone(r.Details[i])
		}
		o.Readings = append(o.Readings, r)
	}
}

// signal applies one state of a health signal.
func (p *decoding) signal(at int, s exposition.Series, details [2]string) {
	state := &p.states[at]
	name := details[0]
	current, ok := state.signals[name]
	switch {
	case !isLabel(name):
		p.violations.add(ruleSignal, s, "%q is not a DNS label", name)
	case !slices.Contains(healthStates(), details[1]):
		p.violations.add(ruleSignal, s, "the state is none of %s", strings.Join(healthStates(), ", "))
	case s.Value != 0 && s.Value != 1:
		p.violations.add(ruleSignal, s, "the value is %v", s.Value)
	case !ok && len(state.signals) == maxSignals:
		p.violations.add(ruleReadings, s, "the device has more than %d signals", maxSignals)
	case s.Value == 1 && current != "":
		p.violations.add(ruleSignal, s, "the signal is %s too", current)
	default:
		if state.signals == nil {
			state.signals = make(map[string]string)
		}
		if s.Value == 1 {
			current = strings.Clone(details[1])
		}
		state.signals[strings.Clone(name)] = current
	}
}

// process applies a value of a process.
func (p *decoding) process(at int, s exposition.Series, pid string) {
	o, state := &p.devices[at], &p.states[at]
	number, err := strconv.ParseInt(pid, 10, 32)
	if err != nil || number <= 0 {
		p.violations.add(rulePID, s, "%q is no process ID", pid)
		return
	}
	index, ok := state.processes[int(number)]
	if !ok {
		if len(o.Processes) == maxProcesses {
			p.violations.add(ruleReadings, s, "the device has more than %d processes", maxProcesses)
			return
		}
		if state.processes == nil {
			state.processes = make(map[int]int)
		}
		index = len(o.Processes)
		state.processes[int(number)] = index
		o.Processes = append(o.Processes, device.Process{PID: int(number), Memory: device.Unknown, Utilization: device.Unknown})
	}
	value := &o.Processes[index].Memory
	if s.Name == processRatioFamily {
		value = &o.Processes[index].Utilization
	}
	switch {
	case s.Value < 0:
		p.violations.add(ruleValue, s, "%v is negative", s.Value)
	case *value != device.Unknown:
		p.violations.add(ruleOnce, s, "it is there twice")
	default:
		*value = s.Value
	}
}

// finish adds what several series say together: a reading for each state of each
// health signal, as metrics have them, and whether the processes are known.
func (p *decoding) finish() {
	for at := range p.devices {
		o, state := &p.devices[at], &p.states[at]
		name := o.Device.Published.Device
		for _, signal := range slices.Sorted(maps.Keys(state.signals)) {
			current := state.signals[signal]
			if current == "" {
				p.violations.add(ruleSignal, exposition.Series{}, "no state of the signal %s of %s is 1", signal, name)
				continue
			}
			for _, text := range healthStates() {
				reading := device.Reading{Quantity: device.DriverHealth, Details: [2]string{signal, text}, Measured: p.window}
				if text == current {
					reading.Value = 1
				}
				o.Readings = append(o.Readings, reading)
			}
		}
		switch {
		case state.count >= 0 && state.count != float64(len(o.Processes)):
			p.violations.add(ruleProcesses, exposition.Series{}, "%s has %v processes, and series of %d", name, state.count, len(o.Processes))
			o.Processes = nil
		case state.count == 0:
			o.Processes = []device.Process{}
		}
	}
}
