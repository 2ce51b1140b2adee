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
// same quantity and detail is asked only where that one is not supported.
type row struct {
	quantity device.Quantity
	detail   string
	after    string // another detail, which an earlier row has: this one is asked only where that is not supported
	tier     device.Tier
	symbol   string // the library's function that read calls
	read     func(*probe) (float64, nvml.Return)
	field    field // instead of read

	// tell appends several readings, where there is not the one that read or
	// field gives.
	tell func(*probe, []device.Reading) ([]device.Reading, nvml.Return)
}

// field is a value that nvmlDeviceGetFieldValues gives, several at a time.
type field struct {
	id      uint32
	scale   float64 // to the base unit
	allOf   bool    // the sum over the links, as the library has it
	perLink bool    // asked link by link; the value is the sum
	wraps   bool    // a counter that begins anew where its width ends
}

// scope is what of the device the field is asked for.
func (f field) scope() uint32 {
	if f.allOf {
		return allLinks
	}
	return 0
}

const fieldValues = "nvmlDeviceGetFieldValues"

// allLinks is the scope of a field value that is summed over the links.
const allLinks = math.MaxUint32

// called is a row that a function of its own answers.
func called(q device.Quantity, detail string, tier device.Tier, symbol string, read func(*probe) (float64, nvml.Return)) row {
	return row{quantity: q, detail: detail, tier: tier, symbol: symbol, read: read}
}

// valued is a row that a field value answers.
func valued(q device.Quantity, detail string, tier device.Tier, f field) row {
	return row{quantity: q, detail: detail, tier: tier, symbol: fieldValues, field: f}
}

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
func newMeter(d nvml.Device, rows []row, has symbols, peers map[string]string, known *past) *meter {
	m := &meter{
		probe: &probe{device: d, past: known, has: has, peers: peers},
		rows:  rows, absent: make([]bool, len(rows)),
	}
	for i, r := range rows {
		m.absent[i] = !has.has(r.symbol)
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
			for _, q := range linkKeys(r.field, m.probe.past.links.count) {
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

// probe is one read of one device. It makes no call twice.
type probe struct {
	device nvml.Device
	past   *past
	has    symbols
	peers  map[string]string // UUIDs of the GPUs that have been seen, by PCI address
	now    clock.Instant

	rates     asked[nvml.Utilization]
	memory    asked[nvml.Memory_v2]
	older     asked[nvml.Memory]
	rows      asked[remapped]
	reasons   asked[uint64]
	supported asked[uint64] // reasons

	questions []question
	answers   []nvml.FieldValue // to the questions
}

// question is what a field value is asked for. It is kept apart from the
// answer because the library is free to write into both.
type question struct{ id, scope uint32 }

// asked is the answer to a call, once it has been made.
type asked[T any] struct {
	value T
	ret   nvml.Return
	done  bool
}

// once is the answer to a call that is made at most once.
func (a *asked[T]) once(call func() (T, nvml.Return)) (T, nvml.Return) {
	if !a.done {
		a.value, a.ret = call()
		a.done = true
	}
	return a.value, a.ret
}

// renew makes another read of the probe. What memory it has is used again.
func (p *probe) renew(now clock.Instant) {
	*p = probe{
		device: p.device, past: p.past, has: p.has, peers: p.peers, now: now,
		questions: p.questions[:0], answers: p.answers[:0],
	}
}

// newerMemory reads one number of the memory, in bytes.
func (p *probe) newerMemory(of func(nvml.Memory_v2) uint64) (float64, nvml.Return) {
	info, ret := p.memory.once(p.device.GetMemoryInfo_v2)
	return float64(of(info)), ret
}

// olderMemory reads the same by the call that older libraries have.
func (p *probe) olderMemory(of func(nvml.Memory_v2) uint64) (float64, nvml.Return) {
	info, ret := p.older.once(p.device.GetMemoryInfo)
	return float64(of(nvml.Memory_v2{Total: info.Total, Free: info.Free, Used: info.Used})), ret
}

// fetch asks for the values of several fields in one call.
func (p *probe) fetch(questions []question) {
	if len(questions) == 0 {
		return
	}
	first := len(p.questions)
	p.questions = append(p.questions, questions...)
	for _, q := range questions {
		p.answers = append(p.answers, nvml.FieldValue{FieldId: q.id, ScopeId: q.scope})
	}
	answers := p.answers[first:]
	if ret := p.device.GetFieldValues(answers); ret != nvml.SUCCESS {
		for i := range answers {
			answers[i].NvmlReturn = uint32(ret)
		}
	}
}

// one is the value of a row that has one.
func (p *probe) one(r row) (float64, nvml.Return) {
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
		value = p.past.unfold(f.id, value)
	}
	return value * f.scale, ret
}

// value is the value of a field, which is fetched if it is not yet here. An
// older library does not know newer fields and calls them invalid.
func (p *probe) value(id, scope uint32) (float64, nvml.Return) {
	for i, q := range p.questions {
		if q.id != id || q.scope != scope {
			continue
		}
		answer := &p.answers[i]
		switch ret := nvml.Return(answer.NvmlReturn); ret {
		case nvml.SUCCESS:
		case nvml.ERROR_INVALID_ARGUMENT:
			return 0, nvml.ERROR_NOT_SUPPORTED
		default:
			return 0, ret
		}
		value, known := number(answer.ValueType, answer.Value)
		if !known {
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
		return value, nvml.SUCCESS
	}
	p.fetch([]question{{id, scope}})
	return p.value(id, scope)
}

// remapped is what the library tells of remapped rows in one call.
type remapped struct{ corrected, uncorrected, pending, failed float64 }

// countLinks asks how many links the GPU has, once between two looks for GPUs.
func (p *probe) countLinks() (int, nvml.Return) {
	l := p.past.links
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
	var newer counters
	for link := range count {
		switch value, ret := p.value(f.id, uint32(link)); {
		case ret == nvml.SUCCESS:
			newer.value[link], newer.known[link] = value*f.scale, true
		case !unsupported(ret) && !unknown(ret):
			return 0, ret
		}
	}
	last := p.past.links.of(f.id)
	last.replace(&newer)
	return last.sum()
}

// fetchLinks asks for a field of all links at once, unless it is here.
func (p *probe) fetchLinks(f field) {
	for _, q := range p.questions {
		if q.id == f.id && q.scope != allLinks {
			return
		}
	}
	p.fetch(linkKeys(f, p.past.links.count))
}

// linkKeys are what a field that is read link by link is asked for.
func linkKeys(f field, count int) []question {
	var keys []question
	for link := range count {
		keys = append(keys, question{f.id, uint32(link)})
	}
	return keys
}
