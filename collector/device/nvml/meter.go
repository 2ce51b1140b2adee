//go:build cgo

package nvml

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// meter reads the rows of a table of one device and remembers which of them
// the device does not have.
type meter struct {
	device nvml.Device
	rows   []row
	absent []bool // by row
	links  *links
}

// newMeter returns the meter of a device over a library that has only some of
// the functions. The links are those that the device is known to have had.
func newMeter(d nvml.Device, rows []row, has symbols, known *links) *meter {
	m := &meter{device: d, rows: rows, absent: make([]bool, len(rows)), links: known}
	for i, r := range rows {
		m.absent[i] = !has.has(r.symbol)
	}
	return m
}

// read adds the readings of the tier to the observation. It ends at once
// where the device is lost.
func (m *meter) read(o *device.Observation, tier device.Tier) error {
	p := &probe{device: m.device, links: m.links}
	p.fetch(m.fields(tier)...)
	specs := device.Specs()
	var errs []error
	for i, r := range m.rows {
		if r.tier > tier || m.absent[i] || m.superseded(i) {
			continue
		}
		value, ret := m.ask(p, r)
		switch {
		case ret == nvml.SUCCESS:
			add(o, r, value)
		case unsupported(ret):
			m.absent[i] = true
		case unknown(ret):
		default:
			errs = append(errs, fmt.Errorf("read %s of %s: %w", specs[r.quantity].Name, o.Device.UUID, ret))
		}
		if lost(ret) {
			break
		}
	}
	return errors.Join(errs...)
}

// superseded reports whether an earlier row of the same quantity and detail
// is supported: whether it succeeds just now does not matter, since the two
// may count from different origins.
func (m *meter) superseded(i int) bool {
	for j := i - 1; j >= 0 && m.rows[j].quantity == m.rows[i].quantity && m.rows[j].detail == m.rows[i].detail; j-- {
		if !m.absent[j] {
			return true
		}
	}
	return false
}

// add puts a value among the readings of its tier.
func add(o *device.Observation, r row, value float64) {
	reading := device.Reading{Quantity: r.quantity, Details: [2]string{r.detail}, Value: value}
	if r.tier == device.Slow {
		o.Slow = append(o.Slow, reading)
		return
	}
	o.Readings = append(o.Readings, reading)
}

func (m *meter) ask(p *probe, r row) (float64, nvml.Return) {
	if r.read != nil {
		return r.read(p)
	}
	return p.field(r.field)
}

// fields are the queries of all rows of the tier that are fields, so that one
// call answers them.
func (m *meter) fields(tier device.Tier) []nvml.FieldValue {
	var queries []nvml.FieldValue
	for i, r := range m.rows {
		switch {
		case r.read != nil || r.tier > tier || m.absent[i] || m.superseded(i):
		case r.field.perLink:
			queries = append(queries, m.links.queries(r.field)...)
		default:
			queries = append(queries, nvml.FieldValue{FieldId: r.field.id, ScopeId: r.field.scope()})
		}
	}
	return queries
}

// unsupported reports whether a device, or the library, does not have what
// was asked for, and will not have it soon.
func unsupported(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND,
		nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED:
		return true
	}
	return false
}

// unknown reports whether a value is merely not there at the moment.
func unknown(ret nvml.Return) bool {
	return ret == nvml.ERROR_NO_DATA || ret == nvml.ERROR_NOT_READY
}

// lost reports whether further questions to the device are of no use.
func lost(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_GPU_NOT_FOUND, nvml.ERROR_RESET_REQUIRED,
		nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED:
		return true
	}
	return false
}
