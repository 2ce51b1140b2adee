package dcgmnames

import (
	"math"
	"strconv"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// place is the device or holder of the value of a row.
type place struct {
	index  int    // of the device, or of the holder; -1: none
	source source // of a device
	share  share  // of a holder
	xid    float64
}

// column reads the rows of one family. It caches the place of each for as long as
// rows have the same order and labels.
type column struct {
	find func(*plan, *metric.Labels) place
	put  func(*readings, place, float64)
	memo []memory
}

type memory struct {
	labels *metric.Labels
	place  place
}

func (c *column) read(p *plan, r *readings, rows []metric.Row) {
	for i := range rows {
		if i == len(c.memo) {
			c.memo = append(c.memo, memory{})
		}
		m := &c.memo[i]
		if m.labels != rows[i].Labels {
			*m = memory{rows[i].Labels, c.find(p, rows[i].Labels)}
		}
		if m.place.index >= 0 {
			c.put(r, m.place, rows[i].Value)
		}
	}
	clear(c.memo[len(rows):])
	c.memo = c.memo[:len(rows)]
}

// newColumn returns the column of the family; nil: the family is not used.
func newColumn(family string, mode Mode) *column {
	switch family {
	case metric.DeviceXIDErrors:
		return &column{find: findXID, put: putXIDsKnown}
	case metric.DeviceXIDLastTimestampSeconds:
		return &column{find: findXID, put: putXID}
	}
	if mode == Split {
		switch family {
		case metric.PodUtilizationRatio:
			return &column{find: findPod(byUtilization), put: putShare}
		case metric.PodMemoryUsedBytes:
			return &column{find: findPod(byMemory), put: putShare}
		case metric.ClaimUtilizationRatio:
			return &column{find: findClaim(byUtilization), put: putShare}
		case metric.ClaimMemoryUsedBytes:
			return &column{find: findClaim(byMemory), put: putShare}
		}
	}
	return newDeviceColumn(family)
}

func newDeviceColumn(family string) *column {
	var label string
	byValue := map[string]source{}
	for s, o := range origins() {
		if o.family == family {
			label, byValue[o.value] = o.label, source(s)
		}
	}
	if len(byValue) == 0 {
		return nil
	}
	return &column{
		find: func(p *plan, labels *metric.Labels) place {
			value := ""
			if label != "" {
				value = labels.Get(label)
			}
			s, known := byValue[value]
			if !known {
				return place{index: -1}
			}
			return place{index: p.device(labels.Get("uuid")), source: s}
		},
		put: func(r *readings, at place, value float64) { r.devices[at.index].values[at.source] = value },
	}
}

func putShare(r *readings, at place, value float64) { r.holders[at.index][at.share] = value }

func findPod(what share) func(*plan, *metric.Labels) place {
	return func(p *plan, labels *metric.Labels) place {
		at := p.holderAt(holder{true, labels.Get("namespace"), labels.Get("pod"), labels.Get("uuid")})
		return place{index: at, share: what}
	}
}

// findClaim finds claims whose values are split by processes.
func findClaim(what share) func(*plan, *metric.Labels) place {
	return func(p *plan, labels *metric.Labels) place {
		if labels.Get("attribution") != "process" {
			return place{index: -1}
		}
		at := p.holderAt(holder{false, labels.Get("namespace"), labels.Get("resourceclaim"), labels.Get("uuid")})
		return place{index: at, share: what}
	}
}

func findXID(p *plan, labels *metric.Labels) place {
	at := place{index: p.device(labels.Get("uuid")), xid: math.NaN()}
	if code, err := strconv.Atoi(labels.Get("xid")); err == nil {
		at.xid = float64(code)
	}
	return at
}

func putXIDsKnown(r *readings, at place, _ float64) { r.devices[at.index].xidsKnown = true }

// putXID keeps the newest XID. If the rows do not have its code, the code is
// unknown.
func putXID(r *readings, at place, when float64) {
	d := &r.devices[at.index]
	if d.xidsKnown = true; when > d.xidAt {
		d.xidAt, d.values[lastXID] = when, at.xid
	}
}
