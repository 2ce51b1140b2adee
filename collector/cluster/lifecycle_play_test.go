package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// play lets everything happen, tells of it, and steps now and then.
func (c *chronicle) play(outages []outage) {
	slices.SortStableFunc(c.happen, func(a, b happening) int { return cmp.Compare(a.at, b.at) })
	c.lazy = true
	for i := range c.happen {
		h := &c.happen[i]
		h.change(c.at(h.at))
		h.told = c.changes[len(c.changes)-1]
		if h.key = "claim/"; h.pods {
			h.key = "pod/" + h.told.Pod.Ref.Name
		} else {
			h.key += h.told.Claim.Ref.Name
		}
	}
	c.changes = nil
	c.schedule(outages)
	c.at(0).node("new", true).node("old", false)
	if len(c.off) > 0 {
		c.noise(0, 0)
	}
	era, clockOff := 0, 0.0
	next := slices.Clone(c.happen)
	slices.SortStableFunc(next, func(a, b happening) int { return cmp.Compare(a.when, b.when) })
	for _, h := range next {
		for era < len(outages) && outages[era].to <= h.when {
			clockOff = c.resume(outages[era], clockOff)
			era++
		}
		if h.live {
			c.tellAt(h.told, h.when, clockOff)
		}
	}
	for ; era < len(outages); era++ {
		clockOff = c.resume(outages[era], clockOff)
	}
	c.step()
}

// schedule says when each happening is told, in the order of its watch.
func (c *chronicle) schedule(outages []outage) {
	var last [2]float64
	for i := range c.happen {
		h := &c.happen[i]
		watch := map[bool]int{true: 1}[h.pods]
		h.when, h.live = max(last[watch], h.at+latency*c.random.Float64()), true
		for era, o := range outages {
			if h.live && h.when >= o.from && h.at <= o.to {
				h.when, h.live = o.to, false
				last[watch] = max(last[watch], o.from) // so is what follows it
			}
			if h.when >= o.to && o.restart {
				h.era = era + 1
			}
		}
		if h.live {
			last[watch] = h.when
		}
	}
}

func (c *chronicle) tellAt(change Change, when, clockOff float64) {
	c.at(when)
	c.now.Elapsed -= time.Duration(clockOff * float64(time.Second))
	change.At = c.now
	c.changes = append(c.changes, change)
	if c.chance(0.3) {
		c.step()
	}
}

// resume tells all there is at the end of an outage, to the same process or to
// another, whose steady clock has another origin.
func (c *chronicle) resume(o outage, clockOff float64) float64 {
	if o.restart {
		c.step()
		c.state, clockOff = NewState(c.config), o.to+3599
	}
	present, gone := map[string]Change{}, map[string]Change{}
	for _, h := range c.happen {
		switch {
		case h.at > o.to:
		case h.told.Gone:
			delete(present, h.key)
			gone[h.key] = Change{Gone: true, Claim: h.told.Claim, Pod: h.told.Pod}
		default:
			present[h.key] = Change{Claim: h.told.Claim, Pod: h.told.Pod}
		}
	}
	if o.restart {
		gone = nil
		for _, node := range sorted(c.nodes) {
			c.tellAt(Change{Node: c.nodes[node]}, o.to, clockOff)
		}
	}
	for _, list := range []map[string]Change{gone, present} {
		for _, key := range slices.Sorted(maps.Keys(list)) {
			c.tellAt(list[key], o.to, clockOff)
		}
	}
	if o.restart && len(c.off) > 0 {
		c.noise(o.to, clockOff)
	}
	return clockOff
}

// noise is a claim that nobody uses, and pods that use none: after a start
// they are the first that tell of others' clocks.
func (c *chronicle) noise(at, clockOff float64) {
	c.at(at)
	claim := dra.ClaimLife{Ref: dra.ClaimRef{Namespace: "ns", Name: "noise"}, UID: fmt.Sprint(at), Created: c.stamp("server")}
	c.tellAt(Change{Live: true, Claim: &claim}, at, clockOff)
	allocated := claim
	allocated.Allocated, allocated.AllocatedAt = true, c.stamp("scheduler")
	c.tellAt(Change{Live: true, Claim: &allocated}, at, clockOff)
	for _, node := range sorted(c.nodes) {
		pod := dra.PodLife{Ref: dra.PodRef{Namespace: "ns", Name: node}, UID: fmt.Sprint(at), Created: c.stamp("server"), Node: node}
		c.sandbox(&pod)
		c.started(&pod)
		c.tellAt(Change{Live: true, Pod: &pod}, at, clockOff)
	}
}
