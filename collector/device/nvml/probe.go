//go:build cgo

package nvml

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// probe is one read of one device. It makes no call twice.
type probe struct {
	device nvml.Device
	links  *links

	info      nvml.Memory_v2
	infoRet   nvml.Return
	infoAsked bool

	olderInfo      nvml.Memory_v2
	olderInfoRet   nvml.Return
	olderInfoAsked bool

	values []fetched
}

// fetched is the answer to the question for a field in a scope. The question
// is kept apart because the library is free to write into both.
type fetched struct {
	id, scope uint32
	nvml.FieldValue
}

// memory reads one number of the memory, in bytes.
func (p *probe) memory(of func(nvml.Memory_v2) uint64) (float64, nvml.Return) {
	if !p.infoAsked {
		p.info, p.infoRet = p.device.GetMemoryInfo_v2()
		p.infoAsked = true
	}
	return float64(of(p.info)), p.infoRet
}

// olderMemory reads the same by the call that older libraries have.
func (p *probe) olderMemory(of func(nvml.Memory_v2) uint64) (float64, nvml.Return) {
	if !p.olderInfoAsked {
		info, ret := p.device.GetMemoryInfo()
		p.olderInfo, p.olderInfoRet = nvml.Memory_v2{Total: info.Total, Free: info.Free, Used: info.Used}, ret
		p.olderInfoAsked = true
	}
	return float64(of(p.olderInfo)), p.olderInfoRet
}

// fetch asks for the values of several fields in one call.
func (p *probe) fetch(values ...nvml.FieldValue) {
	if len(values) == 0 {
		return
	}
	first := len(p.values)
	for _, v := range values {
		p.values = append(p.values, fetched{id: v.FieldId, scope: v.ScopeId})
	}
	ret := p.device.GetFieldValues(values)
	for i, v := range values {
		if ret != nvml.SUCCESS {
			v.NvmlReturn = uint32(ret)
		}
		p.values[first+i].FieldValue = v
	}
}

// field reads a field that is a row of the table.
func (p *probe) field(f field) (float64, nvml.Return) {
	if f.perLink {
		return p.sumOfLinks(f)
	}
	value, ret := p.value(f.id, f.scope())
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
	for _, v := range p.values {
		if v.id != id || v.scope != scope {
			continue
		}
		switch ret := nvml.Return(v.NvmlReturn); ret {
		case nvml.SUCCESS:
		case nvml.ERROR_INVALID_ARGUMENT:
			return 0, nvml.ERROR_NOT_SUPPORTED
		default:
			return 0, ret
		}
		value, known := number(v.ValueType, v.Value)
		if !known {
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
		return value, nvml.SUCCESS
	}
	p.fetch(nvml.FieldValue{FieldId: id, ScopeId: scope})
	return p.value(id, scope)
}
