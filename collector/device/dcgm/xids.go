package dcgm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// xidCounts counts XIDs. An engine keeps the last XIDs of each entity with the
// time at which the driver reported them; one with a newer time is new. XIDs
// that exist when a GPU is first seen are not counted. Nor is the first one of
// an instance whose id was not in use or belonged to another instance. Only the
// reader may use it, except for published and changed.
type xidCounts struct {
	plan          watchPlan
	latest        map[string]int64 // by location: the time of the last one that is known, microseconds
	needsBaseline map[entity]bool  // entities whose next XID is not counted
	counts        map[string][]device.XID
	failures      map[entity]error // why no XIDs of an entity are received
	unsupported   map[entity]bool  // entities that have none
	failure       error            // why none at all are; nil: they are, or the engine has none
	received      clock.Instant    // when XIDs were last read; zero: not in this connection

	published atomic.Pointer[publishedXIDs]
	changed   chan struct{}
}

// publishedXIDs is what is known of the XIDs of all devices at a time.
type publishedXIDs struct {
	xids     map[string][]device.XID // by UUID, of the devices whose XIDs are received
	received clock.Instant
	failure  error // why those of others are not
}

func newXIDCounts() *xidCounts {
	e := &xidCounts{
		latest: make(map[string]int64), counts: make(map[string][]device.XID), failures: make(map[entity]error),
		unsupported: make(map[entity]bool), changed: make(chan struct{}, 1),
	}
	e.published.Store(&publishedXIDs{xids: map[string][]device.XID{}})
	return e
}

// watch watches the devices of a plan, and no others.
func (e *xidCounts) watch(p watchPlan) {
	locations, fresh := e.plan.locations, e.needsBaseline
	e.plan, e.needsBaseline = p, make(map[entity]bool)
	for _, gpu := range p.gpus {
		_, ok := e.latest[p.locations[gpu]]
		e.needsBaseline[gpu] = !ok
	}
	for _, i := range p.instances {
		e.needsBaseline[i] = fresh[i] || locations[i] != p.locations[i]
	}
	e.failure = nil
	gone := func(e entity, _ error) bool { return p.locations[e] == "" }
	maps.DeleteFunc(e.failures, gone)
	clear(e.unsupported)
	e.publish()
}

// unwatch ends the watch of all devices, for a reason; nil if the engine does not
// know XIDs.
func (e *xidCounts) unwatch(failure error) {
	e.watch(watchPlan{})
	e.failure = failure
	e.publish()
}

// disconnect records that there is no connection any more. What the engine has
// seen until there is another one is then new.
func (e *xidCounts) disconnect() {
	e.received = clock.Instant{}
	e.publish()
}

// fails reports whether the XIDs of an entity are not received, though they are
// watched.
func (e *xidCounts) fails() bool { return len(e.failures) > 0 }

var errNoXIDs = errors.New("the engine returns no value")

// receive records which entities were queried for their last XID at a time, and
// what the engine answered.
func (e *xidCounts) receive(at clock.Instant, queried []entity, values []value) {
	changed := e.fails()
	clear(e.failures)
	for _, q := range queried {
		e.failures[q] = errNoXIDs
	}
	for i := range values {
		v := &values[i]
		if v.status.receives() {
			delete(e.failures, v.entity)
		} else {
			e.failures[v.entity] = v.status
		}
		if available := v.status.outcome() != unsupported; available == e.unsupported[v.entity] {
			e.unsupported[v.entity], changed = !available, true
		}
	}
	e.received = at
	if changed || e.fails() {
		e.publish()
		return
	}
	snapshot := *e.published.Load()
	snapshot.received = at
	e.published.Store(&snapshot)
}

// receives reports whether the status of the last XID of an entity means that
// others would be received, or that the entity has none. A GPU without an XID has
// no data. That a GPU is lost, other readings say.
func (s status) receives() bool {
	switch s.outcome() {
	case present, unsupported, lost:
		return true
	case absent:
		return s == statusNoData || s == statusStaleData || s == statusPending
	default:
		return false
	}
}

// isNew reports whether the last XID of an entity is one that has not been
// counted. start is the time, in microseconds, after which there may be others.
func (e *xidCounts) isNew(v *value) (start int64, fresh bool) {
	location, ok := e.plan.locations[v.entity]
	if !ok || v.status.outcome() == failed {
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
		location, ok := e.plan.locations[v.entity]
		code, valid := xidCode(v)
		if !ok || !valid || v.at <= e.latest[location] {
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
	i, ok := slices.BinarySearchFunc(list, code, func(x device.XID, code int) int { return cmp.Compare(x.Code, code) })
	if !ok {
		list = slices.Insert(list, i, device.XID{Code: code})
	} else if reportedTwice(code) && at.Sub(list[i].Last).Abs() < duplicateWindow {
		return
	}
	list[i].Count++
	list[i].Last = at
	e.counts[uuid] = list
}

// publish publishes the XIDs of the watched devices, and signals a change. A
// device whose XIDs are not received is left out, if the last one is not so recent
// that consumers may not have it yet.
func (e *xidCounts) publish() {
	next := &publishedXIDs{xids: make(map[string][]device.XID, len(e.plan.targets)), received: e.received, failure: e.failure}
	failed, first := 0, error(nil)
	for _, t := range e.plan.targets {
		if !slices.ContainsFunc(t.all, func(part entity) bool { return !e.unsupported[part] }) {
			continue
		}
		counts := e.counts[t.device.UUID]
		if err := e.targetFailure(&t); err != nil {
			if failed++; first == nil {
				first = fmt.Errorf("%s: %w", t.device.UUID, err)
			}
			if !slices.ContainsFunc(counts, func(x device.XID) bool { return e.received.Wall.Sub(x.Last) < device.RecentXIDs }) {
				continue
			}
		}
		next.xids[t.device.UUID] = counts
		if counts == nil {
			next.xids[t.device.UUID] = []device.XID{}
		}
	}
	if first != nil {
		next.failure = fmt.Errorf("receive XIDs of %d of %d devices, the first: %w", failed, len(e.plan.targets), first)
	}
	replaced := e.published.Swap(next)
	if maps.EqualFunc(next.xids, replaced.xids, slices.Equal[[]device.XID]) && (next.failure == nil) == (replaced.failure == nil) {
		return
	}
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// targetFailure returns why the XIDs of a device are not received, or nil.
func (e *xidCounts) targetFailure(t *watchedDevice) error {
	for _, part := range t.all {
		if err := e.failures[part]; err != nil {
			return err
		}
	}
	return nil
}

// xids returns the published XIDs, by device UUID. The map is shared.
func (e *xidCounts) xids() map[string][]device.XID { return e.published.Load().xids }

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
