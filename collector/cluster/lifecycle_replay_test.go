package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// run applies all events, delivers them, and makes a step now and then.
func (c *randomHistory) run(outages []outage) {
	slices.SortStableFunc(c.events, func(a, b historyEvent) int { return cmp.Compare(a.at, b.at) })
	c.manualStep = true
	for i := range c.events {
		h := &c.events[i]
		h.change(c.at(h.at))
		h.reported = c.changes[len(c.changes)-1]
		if h.key = "claim/"; h.pods {
			h.key = "pod/" + h.reported.Pod.Ref.Name
		} else {
			h.key += h.reported.Claim.Ref.Name
		}
	}
	c.changes = nil
	c.schedule(outages)
	c.at(0).node("new", true).node("old", false)
	if len(c.off) > 0 {
		c.addUnrelated(0, 0)
	}
	process, clockOff := 0, 0.0
	next := slices.Clone(c.events)
	slices.SortStableFunc(next, func(a, b historyEvent) int { return cmp.Compare(a.reportedAt, b.reportedAt) })
	for _, h := range next {
		for process < len(outages) && outages[process].to <= h.reportedAt {
			clockOff = c.resume(outages[process], clockOff)
			process++
		}
		if h.live {
			c.deliverAt(h.reported, h.reportedAt, clockOff)
		}
	}
	for ; process < len(outages); process++ {
		clockOff = c.resume(outages[process], clockOff)
	}
	c.step()
}

// schedule sets when each event is delivered, in the order of its watch.
func (c *randomHistory) schedule(outages []outage) {
	var last [2]float64
	for i := range c.events {
		h := &c.events[i]
		watch := map[bool]int{true: 1}[h.pods]
		h.reportedAt, h.live = max(last[watch], h.at+latency*c.random.Float64()), true
		for process, o := range outages {
			if h.live && h.reportedAt >= o.from && h.at <= o.to {
				h.reportedAt, h.live = o.to, false
				last[watch] = max(last[watch], o.from) // this also applies to the events that follow
			}
			if h.reportedAt >= o.to && o.restart {
				h.process = process + 1
			}
		}
		if h.live {
			last[watch] = h.reportedAt
		}
	}
}

func (c *randomHistory) deliverAt(change Change, when, clockOff float64) {
	c.at(when)
	c.now.Elapsed -= time.Duration(clockOff * float64(time.Second))
	change.At = c.now
	c.changes = append(c.changes, change)
	if c.chance(0.3) {
		c.step()
	}
}

// resume delivers all objects at the end of an outage, to the same process or
// to a new one, whose steady clock has another origin.
func (c *randomHistory) resume(o outage, clockOff float64) float64 {
	if o.restart {
		c.step()
		c.state, clockOff = NewState(c.config), o.to+3599
	}
	present, gone := map[string]Change{}, map[string]Change{}
	for _, h := range c.events {
		switch {
		case h.at > o.to:
		case h.reported.Gone:
			delete(present, h.key)
			gone[h.key] = Change{Gone: true, Claim: h.reported.Claim, Pod: h.reported.Pod}
		default:
			present[h.key] = Change{Claim: h.reported.Claim, Pod: h.reported.Pod}
		}
	}
	if o.restart {
		gone = nil
		for _, node := range sorted(c.nodes) {
			c.deliverAt(Change{Node: c.nodes[node]}, o.to, clockOff)
		}
	}
	for _, list := range []map[string]Change{gone, present} {
		for _, key := range slices.Sorted(maps.Keys(list)) {
			c.deliverAt(list[key], o.to, clockOff)
		}
	}
	if o.restart && len(c.off) > 0 {
		c.addUnrelated(o.to, clockOff)
	}
	return clockOff
}

// addUnrelated delivers an unused claim, and pods without claims: after a start
// they are the first evidence of other clocks.
func (c *randomHistory) addUnrelated(at, clockOff float64) {
	c.at(at)
	claim := dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "ns", Name: "noise"}, UID: fmt.Sprint(at), Created: c.stamp("server")}
	c.deliverAt(Change{Live: true, Claim: &claim}, at, clockOff)
	allocated := claim
	allocated.Allocated, allocated.AllocatedAt = true, c.stamp("scheduler")
	c.deliverAt(Change{Live: true, Claim: &allocated}, at, clockOff)
	for _, node := range sorted(c.nodes) {
		pod := dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: node}, UID: fmt.Sprint(at), Created: c.stamp("server"), Node: node}
		c.sandbox(&pod)
		c.started(&pod)
		c.deliverAt(Change{Live: true, Pod: &pod}, at, clockOff)
	}
}
