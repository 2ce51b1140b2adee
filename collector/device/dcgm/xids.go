package dcgm

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// xidCounts counts XIDs. An engine keeps the last ones of each entity with the
// time at which its driver told of them; one with a newer time is a new one.
// Those that were there when a GPU was first seen are older than the source;
// those of an instance are taken for older whenever its number was another's
// or nobody's before. All but its published parts belong to who reads.
type xidCounts struct {
	plan          plan
	latest        map[string]int64 // by place: the time of the last one that is known, microseconds
	needsBaseline map[entity]bool  // entities whose last one is to be taken for an older one
	counts        map[string][]device.XID

	published atomic.Pointer[map[string][]device.XID]
	changed   chan struct{}
}

func newXIDCounts() *xidCounts {
	e := &xidCounts{
		latest: make(map[string]int64), counts: make(map[string][]device.XID),
		changed: make(chan struct{}, 1),
	}
	e.published.Store(&map[string][]device.XID{})
	return e
}

// watch watches the devices of a plan, and no others.
func (e *xidCounts) watch(p plan) {
	places, fresh := e.plan.locations, e.needsBaseline
	e.plan, e.needsBaseline = p, make(map[entity]bool)
	for _, gpu := range p.gpus {
		_, known := e.latest[p.locations[gpu]]
		e.needsBaseline[gpu] = !known
	}
	for _, i := range p.instances {
		e.needsBaseline[i] = fresh[i] || places[i] != p.locations[i]
	}
	e.publish()
}

// unwatch ends the watch of all devices.
func (e *xidCounts) unwatch() { e.watch(plan{}) }

// isNew reports whether the last XID of an entity is one that has not been
// heard of. since is the time after which there may be others.
func (e *xidCounts) isNew(v *value) (since int64, is bool) {
	place, known := e.plan.locations[v.entity]
	if !known || v.status.outcome() == failed {
		return 0, false
	}
	_, valid := xidCode(v)
	if e.needsBaseline[v.entity] {
		older := e.latest[place]
		if valid {
			older = max(older, v.at)
		}
		e.latest[place], e.needsBaseline[v.entity] = older, false
		return 0, false
	}
	return e.latest[place], valid && v.at > e.latest[place]
}

// record counts those of the values that are new. Of an instance that several
// devices share, each has heard it.
func (e *xidCounts) record(values []value) {
	slices.SortStableFunc(values, func(a, b value) int { return cmp.Compare(a.at, b.at) })
	counted := false
	for i := range values {
		v := &values[i]
		place, known := e.plan.locations[v.entity]
		code, valid := xidCode(v)
		if !known || !valid || v.at <= e.latest[place] {
			continue
		}
		e.latest[place], counted = v.at, true
		for t := range e.plan.targets {
			if target := &e.plan.targets[t]; slices.Contains(target.all, v.entity) {
				e.count(target.device.UUID, code, time.UnixMicro(v.at))
			}
		}
	}
	if counted {
		e.publish()
	}
}

// duplicateWindow is how far apart an engine may tell of one XID twice.
const duplicateWindow = 2 * time.Second

// reportedTwice reports whether an engine tells of an XID from the kernel's log as
// well as by an event of the driver, each with a time of its own, and after
// its start from the log once more (79, 119 and 120 in DCGM's sources).
func reportedTwice(code int) bool { return code == 79 || code == 119 || code == 120 }

// count adds an XID to a device's, in a new list: the old one is published.
func (e *xidCounts) count(uuid string, code int, at time.Time) {
	list := slices.Clone(e.counts[uuid])
	i, known := slices.BinarySearchFunc(list, code, func(x device.XID, code int) int { return cmp.Compare(x.Code, code) })
	if !known {
		list = slices.Insert(list, i, device.XID{Code: code})
	} else if reportedTwice(code) && at.Sub(list[i].Last).Abs() < duplicateWindow {
		return
	}
	list[i].Count++
	list[i].Last = at
	e.counts[uuid] = list
}

// publish publishes the XIDs of the devices that are watched.
func (e *xidCounts) publish() {
	all := make(map[string][]device.XID, len(e.plan.targets))
	for _, t := range e.plan.targets {
		all[t.device.UUID] = e.counts[t.device.UUID]
		if all[t.device.UUID] == nil {
			all[t.device.UUID] = []device.XID{}
		}
	}
	same := maps.EqualFunc(all, e.xids(), slices.Equal[[]device.XID])
	e.published.Store(&all)
	if same {
		return
	}
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// xids are the published XIDs, by the UUID of the device. It is shared.
func (e *xidCounts) xids() map[string][]device.XID { return *e.published.Load() }

// maxXID bounds what is believed to be a code.
const maxXID = 1 << 16

// xidCode is the code in a value of xidError.
func xidCode(v *value) (int, bool) {
	n, o := v.number()
	if o != present || n < 1 || n > maxXID || v.at <= 0 {
		return 0, false
	}
	return int(n), true
}
