//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

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

// scope is what of the device the field is asked for.
func (f field) scope() uint32 {
	if f.allOf {
		return allLinks
	}
	return 0
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
