package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

// maxAge is how old a reading may be: as old as a slow reading of another source.
const maxAge = 90 * time.Second

// Decoder decodes the messages of one driver, over any number of its streams:
// what counters have reached is kept. It is not safe for concurrent use. After an
// error, the stream must be ended.
type Decoder struct {
	driver     string
	catalog    map[string]device.Quantity
	specs      [device.Quantities]device.Spec
	exported   map[[2]string]bool       // details of the extensions that are returned
	extensions map[string]v1alpha1.Kind // of the newest Description
	devices    []*described             // of the newest Description, in its order
	ready      bool                     // a Description has come on this stream
}

// described is a device of the newest Description.
type described struct {
	device   device.Device
	counters []counter
	next     int         // where the next counter of the present report most likely is
	seen     []counterID // readings of the present report
}

type counterID struct {
	quantity  device.Quantity // of an extension: device.Quantities
	extension string
	details   [2]string
}

func (id counterID) String() string {
	name := id.extension
	if name == "" {
		name = device.Specs()[id.quantity].Name
	}
	for _, detail := range id.details {
		if detail != "" {
			name += " " + detail
		}
	}
	return name
}

// counter is what a counter has reached.
type counter struct {
	id    counterID
	value float64
	start time.Time // zero: unknown
}

// NewDecoder returns a decoder of messages of the driver whose socket they come
// from.
func NewDecoder(driver string) *Decoder {
	specs := device.Specs()
	catalog := make(map[string]device.Quantity)
	for _, q := range quantities() {
		catalog[specs[q].Name] = q
	}
	return &Decoder{driver: driver, catalog: catalog, specs: specs}
}

// Export has the readings of extensions returned, by the names of their metrics as
// device.ParseExtension takes them.
func (d *Decoder) Export(extensions []string) error {
	d.exported = make(map[[2]string]bool, len(extensions))
	for _, name := range extensions {
		details, err := device.ParseExtension(name)
		if err != nil {
			return err
		}
		d.exported[details] = true
	}
	return nil
}

// Extensions returns the names of the metrics of the newest Description's extensions,
// sorted.
func (d *Decoder) Extensions() []string {
	names := make([]string, 0, len(d.extensions))
	for name, kind := range d.extensions {
		names = append(names, device.ExtensionMetric(extensionDetails(name, kind)))
	}
	slices.Sort(names)
	return names
}

func extensionDetails(name string, kind v1alpha1.Kind) [2]string {
	if kind == v1alpha1.Kind_KIND_COUNTER {
		return [2]string{name, device.ExtensionCounter}
	}
	return [2]string{name, device.ExtensionGauge}
}

// weight returns how many bytes of memory the decoder keeps of devices, about.
func (d *Decoder) weight() int {
	const ofDevice, ofReading = 512, 100
	sum := 0
	for _, known := range d.devices {
		sum += ofDevice + ofReading*(cap(known.counters)+cap(known.seen))
	}
	return sum
}

// forget releases the devices, with what counters have reached.
func (d *Decoder) forget() { d.devices, d.ready = nil, false }

// Begin begins a new stream: a Description must come before the next Report.
func (d *Decoder) Begin() { d.ready = false }

// quantities are those of the catalogue that drivers may send.
func quantities() []device.Quantity {
	return []device.Quantity{
		device.Utilization, device.EngineActive, device.MemoryActivity, device.MemoryUsed, device.MemorySize,
		device.MemoryReserved, device.Power, device.PowerLimit, device.Energy, device.Temperature,
		device.ClockFrequency, device.PCIeTransmit, device.PCIeReceive, device.NetworkTransmit,
		device.NetworkReceive, device.Throttled, device.ECCErrors, device.PCIeReplays, device.NetworkLinks,
		device.NetworkErrors,
	}
}

// Describe replaces the devices by those of a Description. An error changes
// nothing.
func (d *Decoder) Describe(message *v1alpha1.Description) error {
	if message.GetDriver() != d.driver {
		return violate(ruleDriver, "the description is of the driver %q, and not of %q", clip(message.GetDriver()), d.driver)
	}
	if n := len(message.GetDevices()); n > maxDevices {
		return violate(limitDevices, "%d devices: more than %d", n, maxDevices)
	}
	extensions, err := decodeExtensions(message.GetExtensions())
	if err != nil {
		return err
	}
	before := make(map[device.PublishedName]*described, len(d.devices))
	for _, known := range d.devices {
		before[known.device.Published] = known
	}
	devices := make([]*described, 0, len(message.GetDevices()))
	exists := make(map[device.PublishedName]bool, len(message.GetDevices()))
	for i, m := range message.GetDevices() {
		identity, err := decodeDevice(d.driver, m)
		if err != nil {
			return fmt.Errorf("device %d: %w", i, err)
		}
		if exists[identity.Published] {
			return violate(ruleUnique, "device %d: %s/%s is described twice", i, identity.Published.Pool, identity.Published.Device)
		}
		exists[identity.Published] = true
		one := &described{device: identity}
		if known := before[identity.Published]; known != nil {
			one.counters = known.counters
		}
		devices = append(devices, one)
	}
	d.devices, d.extensions, d.ready = devices, extensions, true
	return nil
}

// decodeDevice returns the identity of a device: its published name, not the UUID
// and the PCI address that the driver states, which may be those of another
// driver's device.
func decodeDevice(driver string, m *v1alpha1.Device) (device.Device, error) {
	err := errors.Join(
		checkText("pool", m.GetPool(), maxPool),
		checkText("uuid", m.GetUuid(), maxIdentity),
		checkText("pci_address", m.GetPciAddress(), maxDetail),
		checkText("parent", m.GetParent(), maxIdentity),
		checkText("model", m.GetModel(), maxIdentity),
		checkText("vendor", m.GetVendor(), maxDetail),
		checkText("driver_version", m.GetDriverVersion(), maxDetail))
	switch {
	case err != nil:
		return device.Device{}, err
	case m.GetPool() == "":
		return device.Device{}, violate(rulePool, "no pool")
	case !isLabel(m.GetName()):
		return device.Device{}, violate(ruleName, "the name %q is not a DNS label", clip(m.GetName()))
	case m.GetPciAddress() != "" && device.PCIAddress(m.GetPciAddress()) != m.GetPciAddress():
		return device.Device{}, violate(rulePCI, "%q is not a PCI address as the kernel writes it", m.GetPciAddress())
	case m.GetParent() != "" && (!isLabel(m.GetParent()) || m.GetParent() == m.GetName()):
		return device.Device{}, violate(ruleParent, "the parent %q is not the name of another device", clip(m.GetParent()))
	}
	return device.Device{
		Vendor: m.GetVendor(), Model: m.GetModel(), DriverVersion: m.GetDriverVersion(),
		Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown,
		GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		Published: device.PublishedName{Driver: driver, Pool: m.GetPool(), Device: m.GetName()}, PublishedParent: m.GetParent(),
	}, nil
}

func decodeExtensions(messages []*v1alpha1.Extension) (map[string]v1alpha1.Kind, error) {
	if n := len(messages); n > maxExtensions {
		return nil, violate(limitExtensions, "%d extensions: more than %d", n, maxExtensions)
	}
	extensions := make(map[string]v1alpha1.Kind, len(messages))
	for i, m := range messages {
		name, kind := m.GetName(), m.GetKind()
		err := errors.Join(checkText("unit", m.GetUnit(), maxText), checkText("help", m.GetHelp(), maxText))
		switch _, twice := extensions[name]; {
		case err != nil:
			return nil, fmt.Errorf("extension %d: %w", i, err)
		case !device.IsExtensionName(name):
			return nil, violate(ruleExtensionName, "extension %d: the name %q is not one of lower-case letters, digits and single underscores, without _total", i, clip(name))
		case twice:
			return nil, violate(ruleExtensions, "extension %d: %s is declared twice", i, name)
		case kind != v1alpha1.Kind_KIND_GAUGE && kind != v1alpha1.Kind_KIND_COUNTER:
			return nil, violate(ruleKind, "extension %s: neither a gauge nor a counter", name)
		}
		extensions[name] = kind
	}
	return extensions, nil
}

// Report returns all described devices with the readings of a Report that was
// received now. Readings of quantities that are not known, and those that are too
// old, are left out. ignored is why others were left out: counters that fell. An
// error leaves the decoder unusable until the next Description.
func (d *Decoder) Report(message *v1alpha1.Report, now clock.Instant) (observations []device.Observation, ignored, err error) {
	if !d.ready {
		return nil, nil, violate(ruleFirst, "a report before the first description")
	}
	if err := checkText("error", message.GetError(), maxText); err != nil {
		return nil, nil, err
	}
	if !message.GetMeasured().IsValid() {
		return nil, nil, violate(ruleMeasured, "the report has no valid time of measurement")
	}
	observations = make([]device.Observation, len(d.devices))
	for i, known := range d.devices {
		observations[i].Device = known.device
	}
	reported, readings := make([]bool, len(d.devices)), 0
	for _, report := range message.GetDevices() {
		index := report.GetDevice()
		if int64(index) >= int64(len(observations)) {
			return nil, nil, violate(ruleIndex, "device %d is not described", index)
		}
		if reported[index] {
			return nil, nil, violate(ruleOnce, "device %d is reported twice", index)
		}
		reported[index] = true
		if readings += len(report.GetReadings()); readings > maxReadings {
			return nil, nil, violate(limitReadings, "more than %d readings", maxReadings)
		}
		fell, err := d.reportDevice(d.devices[index], &observations[index], report, message.GetMeasured(), now)
		if err != nil {
			d.ready = false
			return nil, nil, fmt.Errorf("device %s: %w", d.devices[index].device.Published.Device, err)
		}
		if ignored == nil {
			ignored = fell
		}
	}
	return observations, ignored, nil
}

// reportDevice decodes the report of one device. fell is the first counter that fell.
func (d *Decoder) reportDevice(to *described, observation *device.Observation, report *v1alpha1.DeviceReport, measured *timestamppb.Timestamp, now clock.Instant) (fell, err error) {
	if n := len(report.GetReadings()); n > maxDeviceReadings {
		return nil, violate(limitDeviceReadings, "%d readings: more than %d", n, maxDeviceReadings)
	}
	to.seen, to.next = to.seen[:0], 0
	observation.Readings = make([]device.Reading, 0, len(report.GetReadings())+healthStateCount*len(report.GetHealth()))
	for _, r := range report.GetReadings() {
		id, kind, known, err := d.identify(r)
		if err != nil {
			return nil, err
		}
		if !known {
			continue
		}
		if slices.Contains(to.seen, id) {
			return nil, violate(ruleReadings, "%s is read twice", id)
		}
		to.seen = append(to.seen, id)
		at := measured
		if r.GetMeasured() != nil {
			at = r.GetMeasured()
		}
		window, fresh, err := windowOf(at, now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		before, rises, err := to.rises(id, kind, r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		switch {
		case !rises && fell == nil:
			fell = violate(ruleFell, "%s of device %s fell from %v to %v without a later start_time", id, to.device.Published.Device, before, r.GetValue())
		case !rises || !fresh:
		case id.extension == "":
			observation.Readings = append(observation.Readings, device.Reading{Quantity: id.quantity, Details: id.details, Value: r.GetValue(), Measured: window})
		default:
			if details := extensionDetails(id.extension, d.extensions[id.extension]); d.exported[details] {
				observation.Readings = append(observation.Readings, device.Reading{Quantity: device.Extension, Details: details, Value: r.GetValue(), Measured: window})
			}
		}
	}
	if len(to.counters) > 2*maxDeviceReadings {
		return nil, violate(ruleFixed, "the details of counters change in every report")
	}
	signals, err := decodeHealth(report.GetHealth())
	if err != nil {
		return nil, err
	}
	observation.Readings = append(observation.Readings, signals...)
	observation.Processes, err = decodeProcesses(report.GetProcesses())
	return fell, err
}

// identify returns what a reading is of, and checks its value. A quantity that is
// not known is one of a later version.
func (d *Decoder) identify(r *v1alpha1.Reading) (id counterID, kind device.Kind, known bool, err error) {
	id = counterID{quantity: device.Quantity(device.Quantities), extension: r.GetExtension()}
	var extension device.Spec
	spec, signed := &extension, false
	if id.extension != "" {
		if r.GetQuantity() != "" {
			return id, 0, false, violate(ruleQuantity, "a reading of both the quantity %q and the extension %q", clip(r.GetQuantity()), clip(id.extension))
		}
		declared, known := d.extensions[id.extension]
		if !known {
			return id, 0, false, violate(ruleDeclared, "the extension %q is not declared", clip(id.extension))
		}
		if signed = true; declared == v1alpha1.Kind_KIND_COUNTER {
			extension.Kind, signed = device.Counter, false
		}
	} else {
		if err := checkText("quantity", r.GetQuantity(), maxName); err != nil || r.GetQuantity() == "" {
			return id, 0, false, cmp.Or(err, violate(ruleQuantity, "a reading without a quantity"))
		}
		if id.quantity, known = d.catalog[r.GetQuantity()]; !known {
			return id, 0, false, nil
		}
		spec, signed = &d.specs[id.quantity], id.quantity == device.Temperature
	}
	if len(r.GetDetails()) != len(spec.Details) {
		return id, 0, false, violate(ruleDetails, "%s: %d details instead of %d", id, len(r.GetDetails()), len(spec.Details))
	}
	for i, detail := range r.GetDetails() {
		if err := checkText("detail", detail, maxDetail); err != nil {
			return id, 0, false, fmt.Errorf("%s: %w", id, err)
		}
		if detail == "" {
			return id, 0, false, violate(ruleDetails, "%s: empty detail", id)
		}
		id.details[i] = detail
	}
	switch value := r.GetValue(); {
	case math.IsNaN(value) || math.IsInf(value, 0):
		err = violate(ruleValue, "%s: %v is not finite", id, value)
	case value < 0 && !signed:
		err = violate(ruleValue, "%s: %v is negative", id, value)
	case value > 1 && spec.Unit == "ratio":
		err = violate(ruleRatio, "%s: %v is not a ratio from 0 to 1", id, value)
	}
	return id, spec.Kind, true, err
}

// windowOf converts a time of the wall clock to elapsed time. A time in the
// future is the time of receipt.
func windowOf(measured *timestamppb.Timestamp, now clock.Instant) (window device.Window, fresh bool, err error) {
	if !measured.IsValid() {
		return device.Window{}, false, violate(ruleOwnTime, "invalid time of measurement")
	}
	age := max(now.Wall.Sub(measured.AsTime()), 0)
	at := now.Elapsed - age
	return device.Window{From: at, To: at}, age <= maxAge, nil
}

// rises reports whether a reading is a gauge, or a counter that has not fallen, or
// has a later start; else before is what it has fallen from.
func (d *described) rises(id counterID, kind device.Kind, r *v1alpha1.Reading) (before float64, rises bool, err error) {
	if kind != device.Counter {
		if r.GetStartTime() != nil {
			return 0, false, violate(ruleStart, "a gauge has no start_time")
		}
		return 0, true, nil
	}
	value, start := r.GetValue(), time.Time{}
	if r.GetStartTime() != nil {
		if !r.GetStartTime().IsValid() {
			return 0, false, violate(ruleStart, "invalid start_time")
		}
		start = r.GetStartTime().AsTime()
	}
	last := d.counter(id)
	if last == nil {
		d.counters = append(d.counters, counter{id, value, start})
		return 0, true, nil
	}
	if !start.After(last.start) {
		if value < last.value {
			return last.value, false, nil
		}
		start = last.start
	}
	last.value, last.start = value, start
	return 0, true, nil
}

// counter returns what a counter has reached, most likely in the order of the
// report before; nil if it is new.
func (d *described) counter(id counterID) *counter {
	at := d.next
	if at >= len(d.counters) || d.counters[at].id != id {
		at = slices.IndexFunc(d.counters, func(c counter) bool { return c.id == id })
	}
	if at < 0 {
		return nil
	}
	d.next = at + 1
	return &d.counters[at]
}

// healthStateCount is how many states a health signal can have.
const healthStateCount = 3

// healthStates are the states of a health signal, as metrics name them.
func healthStates() map[v1alpha1.HealthState]string {
	return map[v1alpha1.HealthState]string{
		v1alpha1.HealthState_HEALTH_STATE_HEALTHY:   "healthy",
		v1alpha1.HealthState_HEALTH_STATE_DEGRADED:  "degraded",
		v1alpha1.HealthState_HEALTH_STATE_UNHEALTHY: "unhealthy",
	}
}

// decodeHealth returns a reading for each state of each signal: 1 for the present
// one, else 0. Reasons are not in them.
func decodeHealth(messages []*v1alpha1.HealthSignal) ([]device.Reading, error) {
	if n := len(messages); n > maxHealth {
		return nil, violate(limitHealth, "%d health signals: more than %d", n, maxHealth)
	}
	var readings []device.Reading
	states, seen := healthStates(), make(map[string]bool, len(messages))
	for _, m := range messages {
		err := checkText("reason", m.GetReason(), maxText)
		_, valid := states[m.GetState()]
		switch name := m.GetName(); {
		case err != nil:
			return nil, fmt.Errorf("health signal: %w", err)
		case !isLabel(name):
			return nil, violate(ruleSignal, "the health signal %q is not a DNS label", clip(name))
		case seen[name]:
			return nil, violate(ruleSignal, "the health signal %s is reported twice", name)
		case m.GetState() == v1alpha1.HealthState_HEALTH_STATE_UNSPECIFIED:
		case !valid:
			return nil, violate(ruleState, "the health signal %s has an unknown state, %d", name, m.GetState())
		default:
			for state, text := range states {
				reading := device.Reading{Quantity: device.DriverHealth, Details: [2]string{name, text}}
				if state == m.GetState() {
					reading.Value = 1
				}
				readings = append(readings, reading)
			}
		}
		seen[m.GetName()] = true
	}
	return readings, nil
}

// decodeProcesses returns nil if the processes could not be listed.
func decodeProcesses(message *v1alpha1.Processes) ([]device.Process, error) {
	if message == nil {
		return nil, nil
	}
	if n := len(message.GetProcesses()); n > maxProcesses {
		return nil, violate(limitProcesses, "%d processes: more than %d", n, maxProcesses)
	}
	processes := make([]device.Process, 0, len(message.GetProcesses()))
	seen := make(map[uint32]bool, len(message.GetProcesses()))
	for _, p := range message.GetProcesses() {
		pid := p.GetPid()
		if pid == 0 || pid > math.MaxInt32 || seen[pid] {
			return nil, violate(rulePID, "process %d: not unique or not a process ID", pid)
		}
		seen[pid] = true
		process := device.Process{PID: int(pid), Memory: device.Unknown, Utilization: device.Unknown}
		if p.MemoryBytes != nil {
			process.Memory = float64(p.GetMemoryBytes())
		}
		if p.Utilization != nil {
			if process.Utilization = p.GetUtilization(); !(process.Utilization >= 0 && process.Utilization <= 1) {
				return nil, violate(ruleShare, "process %d: %v is not a ratio", pid, process.Utilization)
			}
		}
		processes = append(processes, process)
	}
	return processes, nil
}

func checkText(field, text string, limit int) error {
	if len(text) > limit {
		return violate(limitOf(limit), "%s: longer than %d bytes", field, limit)
	}
	if isPlain(text) || utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl) {
		return nil
	}
	return violate(ruleText, "%s %q: not valid UTF-8, or with control characters", field, text)
}

// isPlain reports whether text is ASCII without control characters, as nearly all
// text is.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// clip shortens text for a message.
func clip(text string) string { return text[:min(len(text), maxName)] }

// isLabel reports whether text is a DNS label in lower case.
func isLabel(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return text != "" && len(text) <= maxName && text[0] != '-' && text[len(text)-1] != '-'
}
