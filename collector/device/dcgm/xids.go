package dcgm

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// xidCounts counts XIDs. An engine keeps the last XIDs of each entity with the
// time at which the driver reported them; one with a newer time is new. XIDs
// that exist when a GPU is first seen are not counted. Nor is the first one of
// an instance whose id was not in use or belonged to another instance. Only the
// reader may use it, except for xids and changed.
type xidCounts struct {
	plan          plan
	latest        map[string]int64 // by location: the time of the last one that is known, microseconds
	needsBaseline map[entity]bool  // entities whose next XID is not counted
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
	locations, fresh := e.plan.locations, e.needsBaseline
	e.plan, e.needsBaseline = p, make(map[entity]bool)
	for _, gpu := range p.gpus {
		_, known := e.latest[p.locations[gpu]]
		e.needsBaseline[gpu] = !known
	}
	for _, i := range p.instances {
		e.needsBaseline[i] = fresh[i] || locations[i] != p.locations[i]
	}
	e.publish()
}

// unwatch ends the watch of all devices.
func (e *xidCounts) unwatch() { e.watch(plan{}) }

// isNew reports whether the last XID of an entity is one that has not been
// counted. since is the time, in microseconds, after which there may be others.
func (e *xidCounts) isNew(v *value) (since int64, is bool) {
	location, known := e.plan.locations[v.entity]
	if !known || v.status.outcome() == failed {
		return 0, false
	}
	_, valid := xidCode(v)
	if e.needsBaseline[v.entity] {
		older := e.latest[location]
		if valid {
			older = max(older, v.at)
		}
		e.latest[location], e.needsBaseline[v.entity] = older, false
		return 0, false
	}
	return e.latest[location], valid && v.at > e.latest[location]
}

// record counts those of the values that are new. An XID of an instance that
// several devices share counts for each of them.
func (e *xidCounts) record(values []value) {
	slices.SortStableFunc(values, func(a, b value) int { return cmp.Compare(a.at, b.at) })
	counted := false
	for i := range values {
		v := &values[i]
		location, known := e.plan.locations[v.entity]
		code, valid := xidCode(v)
		if !known || !valid || v.at <= e.latest[location] {
			continue
		}
		e.latest[location], counted = v.at, true
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

// duplicateWindow is the longest time between two reports of the same XID.
const duplicateWindow = 2 * time.Second

// reportedTwice reports whether an engine may report an XID twice: from the
// kernel's log and by an event of the driver, each with a time of its own, and
// after its start from the log again (79, 119 and 120 in DCGM's sources).
func reportedTwice(code int) bool { return code == 79 || code == 119 || code == 120 }

// count adds an XID to the list of a device. It copies the list, because the
// old one is published.
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

// publish publishes the XIDs of the watched devices, and signals a change.
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

// xids returns the published XIDs, by device UUID. The map is shared.
func (e *xidCounts) xids() map[string][]device.XID { return *e.published.Load() }

// maxXID is the largest number that counts as an XID.
const maxXID = 1 << 16

// xidCode returns the code in a value of the field xidError.
func xidCode(v *value) (int, bool) {
	n, o := v.number()
	if o != present || n < 1 || n > maxXID || v.at <= 0 {
		return 0, false
	}
	return int(n), true
}
