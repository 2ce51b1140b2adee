// Package plugin decodes device metrics that DRA drivers send, as specified in
// plugin/devicemetrics/v1alpha1. A driver is not trusted: each message is
// checked completely, and its sizes are limited.
package plugin

import (
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

// The limits of devicemetrics.proto.
const (
	maxDevices        = 1024
	maxDeviceReadings = 256
	maxReadings       = 16384
	maxProcesses      = 4096
	maxName           = 63
	maxPool           = 253
	maxIdentity       = 128
	maxDetail         = 64
	maxText           = 256
)

// maxAge is how old a reading may be. The sampler decides earlier what is stale.
const maxAge = 5 * time.Minute

// Name identifies a published device of a driver.
type Name struct{ Pool, Device string }

// Observation is a published device and what a driver reports of it. UUIDs in
// Device are what the driver states: they prove nothing of devices of other
// drivers.
type Observation struct {
	Name Name
	device.Observation
}

// Decoder decodes the messages of one stream of one driver. It is not safe for
// concurrent use. After an error, the stream must be ended.
type Decoder struct {
	driver   string
	catalog  map[string]device.Quantity
	devices  []Observation // of the newest Description, without readings
	ready    bool          // there was a Description
	counters map[counterID]counterState
}

type counterID struct {
	name     Name
	quantity device.Quantity
	details  [2]string
}

type counterState struct {
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
	return &Decoder{driver: driver, catalog: catalog, counters: make(map[counterID]counterState)}
}

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
		return fmt.Errorf("the description is of the driver %q, and not of %q", clip(message.GetDriver()), d.driver)
	}
	if n := len(message.GetDevices()); n > maxDevices {
		return fmt.Errorf("%d devices: more than %d", n, maxDevices)
	}
	devices := make([]Observation, 0, len(message.GetDevices()))
	exists := make(map[Name]bool, len(message.GetDevices()))
	for i, described := range message.GetDevices() {
		observation, err := describe(described)
		if err != nil {
			return fmt.Errorf("device %d: %w", i, err)
		}
		if exists[observation.Name] {
			return fmt.Errorf("device %d: %s/%s is described twice", i, observation.Name.Pool, observation.Name.Device)
		}
		exists[observation.Name] = true
		devices = append(devices, observation)
	}
	for id := range d.counters {
		if !exists[id.name] {
			delete(d.counters, id)
		}
	}
	d.devices, d.ready = devices, true
	return nil
}

func describe(message *v1alpha1.Device) (Observation, error) {
	err := errors.Join(
		checkText("pool", message.GetPool(), maxPool),
		checkText("uuid", message.GetUuid(), maxIdentity),
		checkText("pci_address", message.GetPciAddress(), maxDetail),
		checkText("parent", message.GetParent(), maxIdentity),
		checkText("model", message.GetModel(), maxIdentity),
		checkText("vendor", message.GetVendor(), maxDetail),
		checkText("driver_version", message.GetDriverVersion(), maxDetail))
	switch {
	case err != nil:
		return Observation{}, err
	case message.GetPool() == "":
		return Observation{}, errors.New("no pool")
	case !isLabel(message.GetName()):
		return Observation{}, fmt.Errorf("the name %q is not a DNS label", clip(message.GetName()))
	}
	address := device.PCIAddress(message.GetPciAddress())
	if address == "" && message.GetPciAddress() != "" {
		return Observation{}, fmt.Errorf("%q is not a PCI address", message.GetPciAddress())
	}
	return Observation{
		Name: Name{message.GetPool(), message.GetName()},
		Observation: device.Observation{Device: device.Device{
			UUID: message.GetUuid(), Vendor: message.GetVendor(), Model: message.GetModel(), PCIBusID: address,
			Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown,
			GPUInstance: device.Unknown, ComputeInstance: device.Unknown, DriverVersion: message.GetDriverVersion(),
		}},
	}, nil
}

// Report returns all described devices with the readings of a Report that was
// received now. Readings of unknown quantities, of extensions, of times that are
// too old, and counters that fall are left out. An error leaves the decoder
// unusable.
func (d *Decoder) Report(message *v1alpha1.Report, now clock.Instant) ([]Observation, error) {
	if !d.ready {
		return nil, errors.New("a report before the first description")
	}
	if err := checkText("error", message.GetError(), maxText); err != nil {
		return nil, err
	}
	if !message.GetMeasured().IsValid() {
		return nil, errors.New("the report has no valid time of measurement")
	}
	observations := slices.Clone(d.devices)
	reported, readings := make(map[uint32]bool, len(message.GetDevices())), 0
	for _, report := range message.GetDevices() {
		index := report.GetDevice()
		if index >= uint32(len(observations)) || reported[index] {
			return nil, fmt.Errorf("device %d is reported twice or not described", index)
		}
		reported[index] = true
		if readings += len(report.GetReadings()); readings > maxReadings {
			return nil, fmt.Errorf("more than %d readings", maxReadings)
		}
		if err := d.report(&observations[index], report, message.GetMeasured(), now); err != nil {
			return nil, fmt.Errorf("device %d: %w", index, err)
		}
	}
	if len(d.counters) > 2*maxReadings {
		return nil, errors.New("the details of counters change in every report")
	}
	return observations, nil
}

func (d *Decoder) report(observation *Observation, report *v1alpha1.DeviceReport, measured *timestamppb.Timestamp, now clock.Instant) error {
	if n := len(report.GetReadings()); n > maxDeviceReadings {
		return fmt.Errorf("%d readings: more than %d", n, maxDeviceReadings)
	}
	seen := make(map[counterID]bool, len(report.GetReadings()))
	for _, r := range report.GetReadings() {
		quantity, known := d.catalog[r.GetQuantity()]
		if !known {
			continue
		}
		reading, err := decodeReading(quantity, r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.GetQuantity(), err)
		}
		id := counterID{observation.Name, quantity, reading.Details}
		if seen[id] {
			return fmt.Errorf("%s %q is read twice", r.GetQuantity(), reading.Details)
		}
		seen[id] = true
		at := measured
		if r.GetMeasured() != nil {
			at = r.GetMeasured()
		}
		window, fresh, err := windowOf(at, now)
		if err != nil {
			return fmt.Errorf("%s: %w", r.GetQuantity(), err)
		}
		rises, err := d.rises(id, r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.GetQuantity(), err)
		}
		if fresh && rises {
			reading.Measured = window
			observation.Readings = append(observation.Readings, reading)
		}
	}
	var err error
	observation.Processes, err = decodeProcesses(report.GetProcesses())
	return err
}

func decodeReading(quantity device.Quantity, r *v1alpha1.Reading) (device.Reading, error) {
	spec := device.Specs()[quantity]
	reading := device.Reading{Quantity: quantity, Value: r.GetValue()}
	if len(r.GetDetails()) != len(spec.Details) {
		return reading, fmt.Errorf("%d details instead of %d", len(r.GetDetails()), len(spec.Details))
	}
	for i, detail := range r.GetDetails() {
		if err := checkText("detail", detail, maxDetail); err != nil {
			return reading, err
		}
		if detail == "" {
			return reading, errors.New("empty detail")
		}
		reading.Details[i] = detail
	}
	switch {
	case math.IsNaN(reading.Value) || math.IsInf(reading.Value, 0):
		return reading, fmt.Errorf("%v is not finite", reading.Value)
	case reading.Value < 0 && quantity != device.Temperature:
		return reading, fmt.Errorf("%v is negative", reading.Value)
	case reading.Value > 1 && spec.Unit == "ratio":
		return reading, fmt.Errorf("%v is not a ratio", reading.Value)
	}
	return reading, nil
}

// windowOf converts a time of the wall clock to elapsed time. A time in the
// future is the time of receipt.
func windowOf(measured *timestamppb.Timestamp, now clock.Instant) (window device.Window, fresh bool, err error) {
	if !measured.IsValid() {
		return device.Window{}, false, errors.New("invalid time of measurement")
	}
	age := max(now.Wall.Sub(measured.AsTime()), 0)
	at := now.Elapsed - age
	return device.Window{From: at, To: at}, age <= maxAge, nil
}

// rises reports whether a reading is a gauge, or a counter that has not fallen
// with the same start. It remembers the largest value.
func (d *Decoder) rises(id counterID, r *v1alpha1.Reading) (bool, error) {
	isCounter := device.Specs()[id.quantity].Kind == device.Counter
	if r.GetStartTime() == nil && !isCounter {
		return true, nil
	}
	if !isCounter {
		return false, errors.New("a gauge has no start_time")
	}
	state := counterState{value: r.GetValue()}
	if r.GetStartTime() != nil {
		if !r.GetStartTime().IsValid() {
			return false, errors.New("invalid start_time")
		}
		state.start = r.GetStartTime().AsTime()
	}
	before, known := d.counters[id]
	if known && !state.start.After(before.start) && (state.value < before.value || state.start.Before(before.start)) {
		return false, nil
	}
	d.counters[id] = state
	return true, nil
}

// decodeProcesses returns nil if the processes could not be listed.
func decodeProcesses(message *v1alpha1.Processes) ([]device.Process, error) {
	if message == nil {
		return nil, nil
	}
	if n := len(message.GetProcesses()); n > maxProcesses {
		return nil, fmt.Errorf("%d processes: more than %d", n, maxProcesses)
	}
	processes := make([]device.Process, 0, len(message.GetProcesses()))
	seen := make(map[uint32]bool, len(message.GetProcesses()))
	for _, p := range message.GetProcesses() {
		pid := p.GetPid()
		if pid == 0 || pid > math.MaxInt32 || seen[pid] {
			return nil, fmt.Errorf("process %d: not unique or not a process ID", pid)
		}
		seen[pid] = true
		process := device.Process{PID: int(pid), Memory: device.Unknown, Utilization: device.Unknown}
		if p.MemoryBytes != nil {
			process.Memory = float64(p.GetMemoryBytes())
		}
		if p.Utilization != nil {
			if process.Utilization = p.GetUtilization(); !(process.Utilization >= 0 && process.Utilization <= 1) {
				return nil, fmt.Errorf("process %d: %v is not a ratio", pid, process.Utilization)
			}
		}
		processes = append(processes, process)
	}
	return processes, nil
}

func checkText(field, text string, limit int) error {
	if len(text) > limit {
		return fmt.Errorf("%s: longer than %d bytes", field, limit)
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("%s %q: not valid UTF-8, or with control characters", field, text)
	}
	return nil
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
