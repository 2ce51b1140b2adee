//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// row says how one quantity is read. A row that follows another one for the
// same quantity and detail is read only if that one is not supported.
type row struct {
	quantity device.Quantity
	detail   string
	after    string // another detail, which an earlier row has: this one is read only if that is not supported
	tier     device.Tier
	symbol   string // the library's function that read calls
	read     func(*probe) (float64, nvml.Return)
	field    field // instead of read

	// readAll appends several readings, in place of the one of read or field.
	readAll func(*probe, []device.Reading) ([]device.Reading, nvml.Return)
}

// field is a value that nvmlDeviceGetFieldValues returns, several at a time.
type field struct {
	id      uint32
	scale   float64 // to the base unit
	allOf   bool    // the sum over the links, as the library has it
	perLink bool    // read link by link; the value is the sum
	wraps   bool    // a counter of 32 bits that wraps to 0
}

// scope returns the scope for which the field is read.
func (f field) scope() uint32 {
	if f.allOf {
		return allLinks
	}
	return 0
}

const fieldValues = "nvmlDeviceGetFieldValues"

// allLinks is the scope of a field value that is summed over the links.
const allLinks = math.MaxUint32

// functionRow is a row that a function reads.
func functionRow(q device.Quantity, detail string, tier device.Tier, symbol string, read func(*probe) (float64, nvml.Return)) row {
	return row{quantity: q, detail: detail, tier: tier, symbol: symbol, read: read}
}

// fieldRow is a row that a field value provides.
func fieldRow(q device.Quantity, detail string, tier device.Tier, f field) row {
	return row{quantity: q, detail: detail, tier: tier, symbol: fieldValues, field: f}
}

// rowReader reads the rows of a table of one device and remembers which of them
// the device does not have.
type rowReader struct {
	probe  *probe // the last one, whose memory is used again
	rows   []row
	absent []bool // by row

	answered []bool // by row: it had a value once

	keys [2][]fieldKey // of the field values of each tier; nil: to be built again
}

// newRowReader returns the meter of a device over a library that has only some of
// the functions. The history and the rows are those of the device.
func newRowReader(d nvml.Device, rows []row, available symbols, peers map[string]string, known *counterHistory) *rowReader {
	m := &rowReader{
		probe: &probe{device: d, history: known, has: available, peers: peers},
		rows:  rows, absent: make([]bool, len(rows)), answered: make([]bool, len(rows)),
	}
	for i, r := range rows {
		m.absent[i] = !available.has(r.symbol)
	}
	return m
}

// read adds the readings of the tier to the observation. It ends at once
// where the device is lost.
func (m *rowReader) read(o *device.Observation, now clock.Instant, tier device.Tier) error {
	m.probe.reset(now)
	m.probe.fetch(m.fields(tier))
	var errs []error
	for i, r := range m.rows {
		if r.tier > tier || m.absent[i] || m.superseded(i) {
			continue
		}
		ret := m.readRow(o, r)
		switch {
		case ret == nvml.SUCCESS:
			m.answered[i] = true
		case unknown(ret):
		case unsupported(ret) && m.answered[i]: // its alternative may count from another origin
		case unsupported(ret):
			m.absent[i] = true
			m.keys = [2][]fieldKey{}
		default:
			name := device.Specs()[r.quantity].Name
			errs = append(errs, fmt.Errorf("read %s of %s: %w", name, o.Device.UUID, ret))
		}
		if unreachable(ret) {
			break
		}
	}
	return errors.Join(errs...)
}

// superseded reports whether an earlier row with the same quantity is supported:
// whether it succeeds just now does not matter, since the two may count from
// different origins.
func (m *rowReader) superseded(i int) bool {
	r := &m.rows[i]
	for j := i - 1; j >= 0 && m.rows[j].quantity == r.quantity; j-- {
		earlier := m.rows[j].detail
		if !m.absent[j] && (earlier == r.detail || r.after != "" && earlier == r.after) {
			return true
		}
	}
	return false
}

// readRow appends the readings of a row to those of its tier.
func (m *rowReader) readRow(o *device.Observation, r row) nvml.Return {
	readings := &o.Readings
	if r.tier == device.Slow {
		readings = &o.Slow
	}
	if r.readAll != nil {
		all, ret := r.readAll(m.probe, *readings)
		*readings = all
		return ret
	}
	value, ret := m.probe.rowValue(r)
	if ret == nvml.SUCCESS {
		*readings = append(*readings, device.Reading{Quantity: r.quantity, Details: [2]string{r.detail}, Value: value})
	}
	return ret
}

// fields returns the keys of the tier's rows that are fields, so that one call
// reads them. While the number of links is not known, each of their fields is
// read by a call of its own.
func (m *rowReader) fields(tier device.Tier) []fieldKey {
	if m.keys[tier] != nil {
		return m.keys[tier]
	}
	var keys []fieldKey
	add := func(q fieldKey) {
		if !slices.Contains(keys, q) {
			keys = append(keys, q)
		}
	}
	complete := true
	for i, r := range m.rows {
		switch {
		case r.field.id == 0 || r.tier > tier || m.absent[i] || m.superseded(i):
		case r.field.perLink:
			if m.probe.history.links.count < 0 {
				complete = false
				add(fieldKey{nvml.FI_DEV_NVLINK_LINK_COUNT, 0})
			}
			for _, q := range linkKeys(r.field, m.probe.history.links.count) {
				add(q)
			}
		default:
			add(fieldKey{r.field.id, r.field.scope()})
		}
	}
	if complete {
		m.keys[tier] = keys
	}
	return keys
}

// probe is one read of one device. It makes no call twice.
type probe struct {
	device  nvml.Device
	history *counterHistory
	has     symbols
	peers   map[string]string // UUIDs of the GPUs that have been seen, by PCI address
	now     clock.Instant

	rates     cachedCall[nvml.Utilization]
	memory    cachedCall[nvml.Memory_v2]
	older     cachedCall[nvml.Memory]
	rows      cachedCall[remapped]
	reasons   cachedCall[uint64]
	supported cachedCall[uint64] // reasons

	keys   []fieldKey
	values []nvml.FieldValue // of the keys
}

// fieldKey identifies a field value. It is kept apart from the value because the
// library may write into the whole of nvml.FieldValue.
type fieldKey struct{ id, scope uint32 }

// cachedCall is the result of a call, once it has been made.
type cachedCall[T any] struct {
	value T
	ret   nvml.Return
	done  bool
}

// get returns the result of a call that is made at most once.
func (a *cachedCall[T]) get(call func() (T, nvml.Return)) (T, nvml.Return) {
	if !a.done {
		a.value, a.ret = call()
		a.done = true
	}
	return a.value, a.ret
}

// reset prepares the probe for another read and keeps its memory.
func (p *probe) reset(now clock.Instant) {
	*p = probe{
		device: p.device, history: p.history, has: p.has, peers: p.peers, now: now,
		keys: p.keys[:0], values: p.values[:0],
	}
}

// newerMemory reads one number of the memory, in bytes.
func (p *probe) newerMemory(field func(nvml.Memory_v2) uint64) (float64, nvml.Return) {
	info, ret := p.memory.get(p.device.GetMemoryInfo_v2)
	return float64(field(info)), ret
}

// olderMemory reads the same by the call that older libraries have.
func (p *probe) olderMemory(field func(nvml.Memory_v2) uint64) (float64, nvml.Return) {
	info, ret := p.older.get(p.device.GetMemoryInfo)
	return float64(field(nvml.Memory_v2{Total: info.Total, Free: info.Free, Used: info.Used})), ret
}

// fetch reads the values of several fields in one call.
func (p *probe) fetch(keys []fieldKey) {
	if len(keys) == 0 {
		return
	}
	first := len(p.keys)
	p.keys = append(p.keys, keys...)
	for _, q := range keys {
		p.values = append(p.values, nvml.FieldValue{FieldId: q.id, ScopeId: q.scope})
	}
	answers := p.values[first:]
	if ret := p.device.GetFieldValues(answers); ret != nvml.SUCCESS {
		for i := range answers {
			answers[i].NvmlReturn = uint32(ret)
		}
	}
}

// rowValue is the value of a row that has exactly one.
func (p *probe) rowValue(r row) (float64, nvml.Return) {
	if r.read != nil {
		return r.read(p)
	}
	return p.field(r.field)
}

// field reads a field that is a row of the table.
func (p *probe) field(f field) (float64, nvml.Return) {
	if f.perLink {
		return p.sumOfLinks(f)
	}
	value, ret := p.value(f.id, f.scope())
	if ret == nvml.SUCCESS && f.wraps {
		value = p.history.extend(f.id, value)
	}
	return value * f.scale, ret
}

// value is the value of a field, which is fetched if it is not yet here. An
// older library does not know newer fields and calls them invalid.
func (p *probe) value(id, scope uint32) (float64, nvml.Return) {
	for i, q := range p.keys {
		if q.id != id || q.scope != scope {
			continue
		}
		answer := &p.values[i]
		switch ret := nvml.Return(answer.NvmlReturn); ret {
		case nvml.SUCCESS:
		case nvml.ERROR_INVALID_ARGUMENT:
			return 0, nvml.ERROR_NOT_SUPPORTED
		default:
			return 0, ret
		}
		value, ok := number(answer.ValueType, answer.Value)
		if !ok {
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
		return value, nvml.SUCCESS
	}
	p.fetch([]fieldKey{{id, scope}})
	return p.value(id, scope)
}

// remapped is what the library reports of remapped rows in one call.
type remapped struct{ corrected, uncorrected, pending, failed float64 }

// countLinks reads how many links the GPU has, once between two discoveries.
func (p *probe) countLinks() (int, nvml.Return) {
	l := p.history.links
	if l.count < 0 {
		count, ret := p.value(nvml.FI_DEV_NVLINK_LINK_COUNT, 0)
		if ret != nvml.SUCCESS {
			return 0, ret
		}
		l.count = min(max(int(count), 0), nvml.NVLINK_MAX_LINKS)
	}
	return l.count, nvml.SUCCESS
}

// sumOfLinks adds up a field over all links.
func (p *probe) sumOfLinks(f field) (float64, nvml.Return) {
	count, ret := p.countLinks()
	if ret != nvml.SUCCESS {
		return 0, ret
	}
	p.fetchLinks(f)
	var newer linkValues
	for link := range count {
		switch value, ret := p.value(f.id, uint32(link)); {
		case ret == nvml.SUCCESS:
			newer.value[link], newer.known[link] = value*f.scale, true
		case !unsupported(ret) && !unknown(ret):
			return 0, ret
		}
	}
	last := p.history.links.of(f.id)
	last.apply(&newer, p.now)
	return last.sum()
}

// fetchLinks reads a field of all links in one call, unless it has been read.
func (p *probe) fetchLinks(f field) {
	for _, q := range p.keys {
		if q.id == f.id && q.scope != allLinks {
			return
		}
	}
	p.fetch(linkKeys(f, p.history.links.count))
}

// linkKeys returns the keys of a field that is read link by link.
func linkKeys(f field, count int) []fieldKey {
	var keys []fieldKey
	for link := range count {
		keys = append(keys, fieldKey{f.id, uint32(link)})
	}
	return keys
}
