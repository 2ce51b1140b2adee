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

// links are the counters of single links. One that does not answer for a
// while counts on with its last value, so that the sum does not fall.
type links struct {
	count int // -1: not yet known
	last  map[uint32]map[uint32]float64
}

func newLinks() *links {
	return &links{count: -1, last: make(map[uint32]map[uint32]float64)}
}

// sumOfLinks adds up a field over all links.
func (p *probe) sumOfLinks(f field) (float64, nvml.Return) {
	if p.links.count < 0 {
		count, ret := p.value(nvml.FI_DEV_NVLINK_LINK_COUNT, 0)
		if ret != nvml.SUCCESS {
			return 0, ret
		}
		p.links.count = min(max(int(count), 0), nvml.NVLINK_MAX_LINKS)
	}
	last := p.links.last[f.id]
	if last == nil {
		last = make(map[uint32]float64)
		p.links.last[f.id] = last
	}
	p.fetchLinks(f)
	for link := range uint32(p.links.count) {
		switch value, ret := p.value(f.id, link); {
		case ret == nvml.SUCCESS:
			last[link] = value * f.scale
		case !unsupported(ret) && !unknown(ret):
			return 0, ret
		}
	}
	if len(last) == 0 {
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
	sum := 0.0
	for link := range uint32(p.links.count) {
		sum += last[link]
	}
	return sum, nvml.SUCCESS
}

// fetchLinks asks for a field of all links at once, unless it is here.
func (p *probe) fetchLinks(f field) {
	for _, v := range p.values {
		if v.id == f.id {
			return
		}
	}
	p.fetch(p.links.queries(f)...)
}

// queries are what a field that is read link by link asks for.
func (l *links) queries(f field) []nvml.FieldValue {
	var queries []nvml.FieldValue
	for link := range l.count {
		queries = append(queries, nvml.FieldValue{FieldId: f.id, ScopeId: uint32(link)})
	}
	return queries
}
