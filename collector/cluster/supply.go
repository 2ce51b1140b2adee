package cluster

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// supplyLabels are the labels of everything that is published. They live as
// long as what they describe: a pool that did not change costs nothing, and
// one of which only the numbers did keeps them.
type supplyLabels struct {
	from    *dra.Supply
	pools   []poolLabels // as from.Pools
	classes []classLabels
	taints  []*metric.Labels // as from.Taints
	limits  []*metric.Labels // as dra.SpecLimits
}

type poolLabels struct {
	pool     *metric.Labels
	states   [dra.DeviceStates]*metric.Labels
	capacity []*metric.Labels // as the pool's Capacity; nil for one that is there twice
}

type classLabels struct {
	info   *metric.Labels
	states [dra.DeviceStates]*metric.Labels
}

// take makes the labels of a supply that is new.
func (l *supplyLabels) take(supply *dra.Supply, f *families) {
	if supply == l.from {
		return
	}
	before := *l
	*l = supplyLabels{from: supply, limits: before.limits}
	if supply == nil {
		return
	}
	if l.limits == nil {
		for _, limit := range dra.SpecLimits() {
			l.limits = append(l.limits, metric.NewLabels(f.oversized.Labels, string(limit)))
		}
	}
	l.takePools(&before, f)
	l.takeClasses(&before, f)
	l.takeTaints(&before, f)
}

// takePools walks along both lists of pools, which are sorted alike.
func (l *supplyLabels) takePools(before *supplyLabels, f *families) {
	var old []*dra.PoolSupply
	if before.from != nil {
		old = before.from.Pools
	}
	l.pools = make([]poolLabels, len(l.from.Pools))
	j := 0
	for i, pool := range l.from.Pools {
		if j < len(old) && old[j] == pool { // nearly always: only few pools change at once
			l.pools[i] = before.pools[j]
			j++
			continue
		}
		for j < len(old) && comparePools(old[j], pool) < 0 {
			j++
		}
		switch {
		case j == len(old) || comparePools(old[j], pool) != 0 || old[j].Node != pool.Node:
			l.pools[i] = labelPool(pool, f)
		case old[j] == pool || sameCapacities(old[j].Capacity, pool.Capacity):
			l.pools[i] = before.pools[j]
		default:
			l.pools[i] = before.pools[j]
			l.pools[i].capacity = labelCapacity(pool, f)
		}
	}
}

func comparePools(a, b *dra.PoolSupply) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool))
}

func sameCapacities(a, b []dra.CapacitySupply) bool {
	return slices.EqualFunc(a, b, func(a, b dra.CapacitySupply) bool {
		return a.Device == b.Device && a.Capacity == b.Capacity
	})
}

func labelPool(pool *dra.PoolSupply, f *families) poolLabels {
	labels := poolLabels{
		pool:     metric.NewLabels(f.poolSlices.Labels, pool.Driver, pool.Pool, pool.Node),
		capacity: labelCapacity(pool, f),
	}
	for state := range dra.DeviceState(dra.DeviceStates) {
		labels.states[state] = metric.NewLabels(f.devices.Labels, pool.Driver, pool.Pool, pool.Node, state.String())
	}
	return labels
}

// labelCapacity labels what a pool says once. A pool that contradicts itself may
// have a device twice: which of the two it means nobody knows, and a page that
// has a label set twice is not read at all.
func labelCapacity(pool *dra.PoolSupply, f *families) []*metric.Labels {
	type key struct{ device, capacity string }
	told := make(map[key]int, len(pool.Capacity))
	for _, c := range pool.Capacity {
		told[key{c.Device, c.Capacity}]++
	}
	labels := make([]*metric.Labels, len(pool.Capacity))
	for i, c := range pool.Capacity {
		if told[key{c.Device, c.Capacity}] > 1 {
			continue
		}
		labels[i] = metric.NewLabels(f.capacity.Labels, pool.Driver, pool.Pool, pool.Capacity[i].Device, pool.Capacity[i].Capacity)
	}
	return labels
}

func (l *supplyLabels) takeClasses(before *supplyLabels, f *families) {
	if before.from != nil && slices.EqualFunc(before.from.Classes, l.from.Classes, func(a, b dra.ClassSupply) bool {
		return a.Class == b.Class && a.ExtendedResource == b.ExtendedResource
	}) {
		l.classes = before.classes
		return
	}
	l.classes = make([]classLabels, len(l.from.Classes))
	for i := range l.from.Classes {
		class := &l.from.Classes[i]
		l.classes[i].info = metric.NewLabels(f.classInfo.Labels, class.Class, class.ExtendedResource)
		for state := range dra.DeviceState(dra.DeviceStates) {
			l.classes[i].states[state] = metric.NewLabels(f.classDevices.Labels, class.Class, state.String())
		}
	}
}

func (l *supplyLabels) takeTaints(before *supplyLabels, f *families) {
	if before.from != nil && slices.EqualFunc(before.from.Taints, l.from.Taints, func(a, b dra.TaintCount) bool {
		a.Devices, b.Devices = 0, 0
		return a == b
	}) {
		l.taints = before.taints
		return
	}
	l.taints = make([]*metric.Labels, len(l.from.Taints))
	for i := range l.from.Taints {
		count := &l.from.Taints[i]
		l.taints[i] = metric.NewLabels(f.taints.Labels, count.Driver, count.Pool, count.Taint.Key, count.Taint.Effect)
	}
}
