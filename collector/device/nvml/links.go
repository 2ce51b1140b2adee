//go:build cgo

package nvml

import (
	"maps"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// links are the counters of single links. One that does not answer any more
// counts on with its last value, so that the sum does not fall, until another
// one of the same field has fallen: then the hardware began anew.
type links struct {
	count int // -1: not known since the last look for GPUs
	last  map[uint32]map[uint32]float64
}

func newLinks() *links {
	return &links{count: -1, last: make(map[uint32]map[uint32]float64)}
}

// recount makes the number of links be asked for again.
func (l *links) recount() { l.count = -1 }

// of are the last values of a field, by link.
func (l *links) of(f field) map[uint32]float64 {
	if l.last[f.id] == nil {
		l.last[f.id] = make(map[uint32]float64)
	}
	return l.last[f.id]
}

// sum adds up the last values of a field. It makes no difference to it how
// many links there are now.
func (l *links) sum(f field) (float64, nvml.Return) {
	last := l.of(f)
	if len(last) == 0 {
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
	sum := 0.0
	for link := range uint32(nvml.NVLINK_MAX_LINKS) {
		sum += last[link]
	}
	return sum, nvml.SUCCESS
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
	p.fetchLinks(f)
	answered, fallen := make(map[uint32]float64), false
	last := p.links.of(f)
	for link := range uint32(p.links.count) {
		switch value, ret := p.value(f.id, link); {
		case ret == nvml.SUCCESS:
			answered[link] = value * f.scale
			fallen = fallen || answered[link] < last[link]
		case !unsupported(ret) && !unknown(ret):
			return 0, ret
		}
	}
	if fallen {
		clear(last)
	}
	maps.Copy(last, answered)
	return p.links.sum(f)
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
