//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// meter reads the rows of a table of one device and remembers which of them
// the device does not have.
type meter struct {
	probe  *probe // the last one, whose memory is used again
	rows   []row
	absent []bool // by row

	questions [2][]question // of the field values of each tier; nil: to be made anew
}

// newMeter returns the meter of a device over a library that has only some of
// the functions. The past is the device's, and so are the rows.
func newMeter(d nvml.Device, rows []row, f *finding, known *past) *meter {
	m := &meter{
		probe: &probe{device: d, past: known, has: f.symbols, peers: f.peers},
		rows:  rows, absent: make([]bool, len(rows)),
	}
	for i, r := range rows {
		m.absent[i] = !f.symbols.has(r.symbol)
	}
	return m
}

// read adds the readings of the tier to the observation. It ends at once
// where the device is lost.
func (m *meter) read(o *device.Observation, now clock.Instant, tier device.Tier) error {
	m.probe.renew(now)
	m.probe.fetch(m.fields(tier))
	var errs []error
	for i, r := range m.rows {
		if r.tier > tier || m.absent[i] || m.superseded(i) {
			continue
		}
		ret := m.ask(o, r)
		switch {
		case ret == nvml.SUCCESS, unknown(ret):
		case unsupported(ret):
			m.absent[i] = true
			m.questions = [2][]question{}
		default:
			name := device.Specs()[r.quantity].Name
			errs = append(errs, fmt.Errorf("read %s of %s: %w", name, o.Device.UUID, ret))
		}
		if lost(ret) {
			break
		}
	}
	return errors.Join(errs...)
}

// superseded reports whether an earlier row is supported that tells the same:
// whether it succeeds just now does not matter, since the two may count from
// different origins.
func (m *meter) superseded(i int) bool {
	r := &m.rows[i]
	for j := i - 1; j >= 0 && m.rows[j].quantity == r.quantity; j-- {
		earlier := m.rows[j].detail
		if !m.absent[j] && (earlier == r.detail || r.after != "" && earlier == r.after) {
			return true
		}
	}
	return false
}

// ask puts what a row tells among the readings of its tier.
func (m *meter) ask(o *device.Observation, r row) nvml.Return {
	told := &o.Readings
	if r.tier == device.Slow {
		told = &o.Slow
	}
	if r.tell != nil {
		all, ret := r.tell(m.probe, *told)
		*told = all
		return ret
	}
	value, ret := m.probe.one(r)
	if ret == nvml.SUCCESS {
		*told = append(*told, device.Reading{Quantity: r.quantity, Details: [2]string{r.detail}, Value: value})
	}
	return ret
}

// fields are what the rows of the tier that are fields ask for, so that one
// call answers them. As long as the number of links is not known, each field
// of theirs is asked for in a call of its own.
func (m *meter) fields(tier device.Tier) []question {
	if m.questions[tier] != nil {
		return m.questions[tier]
	}
	var questions []question
	add := func(q question) {
		if !slices.Contains(questions, q) {
			questions = append(questions, q)
		}
	}
	complete := true
	for i, r := range m.rows {
		switch {
		case r.field.id == 0 || r.tier > tier || m.absent[i] || m.superseded(i):
		case r.field.perLink:
			if m.probe.past.links.count < 0 {
				complete = false
				add(question{nvml.FI_DEV_NVLINK_LINK_COUNT, 0})
			}
			for _, q := range m.probe.past.links.questions(r.field) {
				add(q)
			}
		default:
			add(question{r.field.id, r.field.scope()})
		}
	}
	if complete {
		m.questions[tier] = questions
	}
	return questions
}

// unsupported reports whether a device, or the library, does not have what
// was asked for, and will not have it soon.
func unsupported(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_VGPU_ECC_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND,
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

// fallen reports whether an error says that the GPU has fallen off the bus,
// or waits for a reset to be seen again.
func fallen(err error) bool {
	return errors.Is(err, nvml.ERROR_GPU_IS_LOST) || errors.Is(err, nvml.ERROR_RESET_REQUIRED)
}
