package devicemetrics

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

// counterID identifies a reading over time.
type counterID struct {
	pool, device, quantity, extension, details string
}

func (r Reading) id(d *Device) counterID {
	return counterID{d.Pool, d.Name, string(r.Quantity), r.Extension, strings.Join(r.Details, "\x00")}
}

// counterState is the newest value of a counter.
type counterState struct {
	value    float64
	measured time.Time
	start    time.Time // zero: unknown
}

// encoder makes messages of devices. It remembers counters, so that one that
// falls gets a later start. It is not safe for concurrent use.
type encoder struct {
	driver      string
	extensions  map[string]Extension
	declared    []*v1alpha1.Extension
	description *v1alpha1.WatchResponse
	counters    map[counterID]counterState
}

func newEncoder(driver string, extensions []Extension) (*encoder, error) {
	if err := checkDriver(driver); err != nil {
		return nil, err
	}
	byName, err := checkExtensions(extensions)
	if err != nil {
		return nil, err
	}
	e := &encoder{driver: driver, extensions: byName, counters: map[counterID]counterState{}}
	for _, extension := range extensions {
		kind := v1alpha1.Kind_KIND_GAUGE
		if extension.Counter {
			kind = v1alpha1.Kind_KIND_COUNTER
		}
		e.declared = append(e.declared, &v1alpha1.Extension{
			Name: extension.Name, Unit: extension.Unit, Kind: kind, Help: extension.Help,
		})
	}
	e.description = e.describe(nil)
	return e, nil
}

// encode returns the description, which is the same pointer as before if it has
// not changed, and the report of one read. failure is an error of the read.
// Devices that violate a limit are an error, and then nothing is changed.
func (e *encoder) encode(devices []Device, failure error, now time.Time) (description, report *v1alpha1.WatchResponse, err error) {
	if err := checkDevices(devices, e.extensions); err != nil {
		return nil, nil, err
	}
	message := &v1alpha1.Report{Measured: timestamppb.New(now)}
	if failure != nil {
		message.Error = clip(failure.Error())
	}
	counters := e.keptCounters(devices)
	for i := range devices {
		message.Devices = append(message.Devices, e.device(uint32(i), &devices[i], now, counters))
	}
	report = &v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Report{Report: message}}
	description = e.description
	if len(devices) > 0 || failure == nil {
		if described := e.describe(devices); !proto.Equal(described, description) {
			description = described
		}
	}
	if size := max(proto.Size(report), proto.Size(description)); size > maxMessage {
		return nil, nil, fmt.Errorf("a message of %d bytes: more than %d", size, maxMessage)
	}
	e.description, e.counters = description, counters
	return description, report, nil
}

// keptCounters returns the counters of devices that still exist.
func (e *encoder) keptCounters(devices []Device) map[counterID]counterState {
	kept := make(map[counterID]counterState, len(e.counters))
	if len(e.counters) > 4*maxReadings { // the driver changes details all the time
		return kept
	}
	exists := make(map[[2]string]bool, len(devices))
	for i := range devices {
		exists[[2]string{devices[i].Pool, devices[i].Name}] = true
	}
	for id, state := range e.counters {
		if len(devices) == 0 || exists[[2]string{id.pool, id.device}] {
			kept[id] = state
		}
	}
	return kept
}

func (e *encoder) describe(devices []Device) *v1alpha1.WatchResponse {
	message := &v1alpha1.Description{Driver: e.driver, Extensions: e.declared}
	for i := range devices {
		d := &devices[i]
		message.Devices = append(message.Devices, &v1alpha1.Device{
			Pool: d.Pool, Name: d.Name, Uuid: d.UUID, PciAddress: d.PCIAddress, Parent: d.Parent,
			Model: d.Model, Vendor: d.Vendor, DriverVersion: d.DriverVersion,
		})
	}
	return &v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Description{Description: message}}
}

func (e *encoder) device(index uint32, d *Device, now time.Time, counters map[counterID]counterState) *v1alpha1.DeviceReport {
	report := &v1alpha1.DeviceReport{Device: index}
	for _, r := range d.Readings {
		report.Readings = append(report.Readings, e.reading(d, r, now, counters))
	}
	for _, signal := range d.Health {
		report.Health = append(report.Health, &v1alpha1.HealthSignal{
			Name: signal.Name, State: v1alpha1.HealthState(signal.State), Reason: clip(signal.Reason),
		})
	}
	if d.Processes != nil {
		report.Processes = &v1alpha1.Processes{}
		for _, p := range d.Processes {
			report.Processes.Processes = append(report.Processes.Processes, &v1alpha1.Process{
				Pid: p.PID, MemoryBytes: p.MemoryBytes, Utilization: p.Utilization,
			})
		}
	}
	return report
}

func (e *encoder) reading(d *Device, r Reading, now time.Time, counters map[counterID]counterState) *v1alpha1.Reading {
	message := &v1alpha1.Reading{Details: r.Details, Value: r.Value}
	counter := e.extensions[r.Extension].Counter
	if r.Extension != "" {
		message.Extension = r.Extension
	} else {
		message.Quantity = string(r.Quantity)
		s, _ := specOf(r.Quantity)
		counter = s.counter
	}
	measured := now
	if !r.Measured.IsZero() && r.Measured.Before(now) {
		measured = r.Measured
		message.Measured = timestamppb.New(measured)
	}
	if !counter {
		return message
	}
	id := r.id(d)
	before, known := counters[id]
	state := counterState{value: r.Value, measured: measured, start: r.Start}
	if known {
		state.start = startAfter(before, state)
	}
	counters[id] = state
	if !state.start.IsZero() {
		message.StartTime = timestamppb.New(state.start)
	}
	return message
}

// startAfter returns the start of a counter. One that has fallen has started
// again after its measurement before, unless the driver states a later time.
// Starts never become earlier.
func startAfter(before, now counterState) time.Time {
	start := before.start
	if now.start.After(start) {
		start = now.start
	}
	if now.value < before.value && !start.After(before.start) {
		start = before.measured
		if !start.After(before.start) {
			start = before.start.Add(1)
		}
	}
	return start
}
