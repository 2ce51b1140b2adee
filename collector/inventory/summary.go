package inventory

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"reflect"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// summarize makes what of the pool goes into a Supply, and keeps what is there
// already if nothing is different.
func (p *pool) summarize() {
	supply := &dra.PoolSupply{
		Driver:     p.driver,
		Pool:       p.name,
		Node:       p.node,
		Generation: p.generation,
		Slices:     len(p.current),
		Complete:   p.complete,
		Names:      p.names,
	}
	taints := map[dra.Taint]int{}
	p.marked = nil
	for _, s := range p.current {
		for _, b := range s.blocks {
			b.tally(b.all, &supply.Devices)
		}
		for i := range s.devices {
			supply.Capacity = p.appendCapacity(supply.Capacity, &s.devices[i])
			p.mark(&s.devices[i], taints)
		}
	}
	slices.SortFunc(supply.Capacity, func(a, b dra.CapacitySupply) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Capacity, b.Capacity))
	})
	slices.SortFunc(p.marked, func(a, b dra.TaintedDevice) int { return cmp.Compare(a.Device.Name, b.Device.Name) })
	p.taints = p.countsOf(taints)
	if p.supply == nil || !reflect.DeepEqual(p.supply, supply) {
		p.supply = supply
	}
}

// tally adds the devices of the mask by what can be done with them.
func (b *block) tally(mask uint64, to *[dra.DeviceStates]int) {
	allocated, free := bits.OnesCount64(mask&b.held()), bits.OnesCount64(mask&b.free)
	to[dra.DeviceAllocated] += allocated
	to[dra.DeviceFree] += free
	to[dra.DeviceUnavailable] += bits.OnesCount64(mask) - allocated - free
}

// appendCapacity appends the capacities of a device that may be shared. What is
// beyond a float64 is left out: nothing can be computed from it.
func (p *pool) appendCapacity(to []dra.CapacitySupply, d *device) []dra.CapacitySupply {
	if !d.multi() {
		return to
	}
	consumed := p.consumedOf(d)
	for name, capacity := range d.declared() {
		amount := consumed[name]
		total, spent := capacity.Value.AsApproximateFloat64(), amount.AsApproximateFloat64()
		if math.IsInf(total, 0) || math.IsInf(spent, 0) {
			continue
		}
		to = append(to, dra.CapacitySupply{Device: d.name.Value(), Capacity: clean(string(name)), Total: total, Consumed: spent})
	}
	return to
}

// mark notes the taints of a device. One that a device has twice counts once.
func (p *pool) mark(d *device, counts map[dra.Taint]int) {
	if len(p.rules) == 0 && (d.more == nil || len(d.more.taints) == 0) {
		return
	}
	marked := dra.TaintedDevice{Device: p.id(d)}
	var counted []dra.Taint
	for rule, taint := range p.taintsOf(d) {
		seen := taintOf(taint)
		if rule == "" {
			marked.Taints = append(marked.Taints, seen)
		} else {
			marked.ByRules = append(marked.ByRules, seen)
		}
		seen.Value = ""
		if !slices.Contains(counted, seen) {
			counted = append(counted, seen)
			counts[seen]++
		}
	}
	if len(counted) == 0 {
		return
	}
	for h := p.held[d.name]; h != nil; h = h.next {
		marked.Holders = append(marked.Holders, h.claim.ref)
	}
	slices.SortFunc(marked.Holders, compareRef)
	marked.Holders = slices.Compact(marked.Holders)
	p.marked = append(p.marked, marked)
}

func compareRef(a, b dra.ClaimRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (p *pool) countsOf(taints map[dra.Taint]int) []dra.TaintCount {
	var counts []dra.TaintCount
	for _, taint := range slices.SortedFunc(maps.Keys(taints), compareTaint) {
		counts = append(counts, dra.TaintCount{Driver: p.driver, Pool: p.name, Taint: taint, Devices: taints[taint]})
	}
	return counts
}

func compareTaint(a, b dra.Taint) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect))
}

func (p *pool) id(d *device) dra.DeviceID {
	return dra.DeviceID{Driver: p.driver, Pool: p.name, Name: d.name.Value()}
}
