package cluster

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// supplyRows outputs what is published. It keeps the labels: a pool that has not
// changed costs nothing, and one whose numbers alone have changed keeps them.
type supplyRows struct {
	supply  *dra.Supply
	pools   []poolLabels // as supply.Pools
	classes []classLabels
	taints  []*metric.Labels // as supply.Taints
	limits  []*metric.Labels // as dra.SpecLimits
	rules   []*metric.Labels // as supply.Evictions
}

type poolLabels struct {
	pool     *metric.Labels
	states   [dra.DeviceStates]*metric.Labels
	capacity []*metric.Labels // as the pool's Capacity; nil for one that occurs twice

	partitions [][dra.DeviceStates]*metric.Labels // as the pool's Partitions
}

type classLabels struct {
	info   *metric.Labels
	states [dra.DeviceStates]*metric.Labels
	down   [dra.DownReasons]*metric.Labels
}

// update takes the supply, and creates the labels of what is new.
func (l *supplyRows) update(supply *dra.Supply, f *families) {
	if supply == l.supply {
		return
	}
	previous := *l
	*l = supplyRows{supply: supply, limits: previous.limits}
	if supply == nil {
		return
	}
	if l.limits == nil {
		for _, limit := range dra.SpecLimits() {
			l.limits = append(l.limits, metric.NewLabels(f.oversized.Labels, string(limit)))
		}
	}
	l.updatePools(&previous, f)
	l.updateClasses(&previous, f)
	l.updateTaints(&previous, f)
	l.updateRules(&previous, f)
}

// updatePools iterates over both lists of pools, which have the same order.
// Nearly always they have the same pools, and only few have changed.
func (l *supplyRows) updatePools(previous *supplyRows, f *families) {
	var old []*dra.PoolSupply
	if previous.supply != nil {
		old = previous.supply.Pools
	}
	now := l.supply.Pools
	if slices.EqualFunc(old, now, func(a, b *dra.PoolSupply) bool { return a == b || comparePools(a, b) == 0 }) {
		l.pools = previous.pools
		for i, pool := range now {
			if old[i] != pool {
				l.pools[i] = previous.pools[i].relabel(old[i], pool, f)
			}
		}
		return
	}
	l.pools = make([]poolLabels, len(now))
	j := 0
	for i, pool := range now {
		for j < len(old) && comparePools(old[j], pool) < 0 {
			j++
		}
		if j < len(old) && comparePools(old[j], pool) == 0 {
			l.pools[i] = previous.pools[j].relabel(old[j], pool, f)
			j++
		} else {
			l.pools[i] = labelPool(pool, f)
		}
	}
}

// relabel returns the labels of a pool, given those that it had before.
func (l poolLabels) relabel(previous, now *dra.PoolSupply, f *families) poolLabels {
	if previous == now {
		return l
	}
	if previous.Node != now.Node {
		return labelPool(now, f)
	}
	if !sameCapacities(previous.Capacity, now.Capacity) {
		l.capacity = labelCapacity(now, f)
	}
	if !samePartitions(previous.Partitions, now.Partitions) {
		l.partitions = labelPartitions(now, f)
	}
	return l
}

func comparePools(a, b *dra.PoolSupply) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool))
}

func sameCapacities(a, b []dra.CapacitySupply) bool {
	return slices.EqualFunc(a, b, func(a, b dra.CapacitySupply) bool {
		return a.Device == b.Device && a.Capacity == b.Capacity
	})
}

func samePartitions(a, b []dra.PartitionSupply) bool {
	return slices.EqualFunc(a, b, func(a, b dra.PartitionSupply) bool { return a.Type == b.Type })
}

func labelPartitions(pool *dra.PoolSupply, f *families) [][dra.DeviceStates]*metric.Labels {
	labels := make([][dra.DeviceStates]*metric.Labels, len(pool.Partitions))
	for i := range pool.Partitions {
		for state := range dra.DeviceState(dra.DeviceStates) {
			labels[i][state] = metric.NewLabels(f.partitionDevices.Labels, pool.Driver, pool.Pool, pool.Node, pool.Partitions[i].Type, state.String())
		}
	}
	return labels
}

func labelPool(pool *dra.PoolSupply, f *families) poolLabels {
	labels := poolLabels{
		pool:     metric.NewLabels(f.poolSlices.Labels, pool.Driver, pool.Pool, pool.Node),
		capacity: labelCapacity(pool, f),

		partitions: labelPartitions(pool, f),
	}
	for state := range dra.DeviceState(dra.DeviceStates) {
		labels.states[state] = metric.NewLabels(f.devices.Labels, pool.Driver, pool.Pool, pool.Node, state.String())
	}
	return labels
}

// labelCapacity creates the labels of capacities that occur once: a page that has a label
// set twice cannot be scraped.
func labelCapacity(pool *dra.PoolSupply, f *families) []*metric.Labels {
	labels := make([]*metric.Labels, len(pool.Capacity))
	for i, c := range pool.DistinctCapacities {
		labels[i] = metric.NewLabels(f.capacity.Labels, pool.Driver, pool.Pool, c.Device, c.Capacity)
	}
	return labels
}

func (l *supplyRows) updateClasses(previous *supplyRows, f *families) {
	if previous.supply != nil && slices.EqualFunc(previous.supply.Classes, l.supply.Classes, func(a, b dra.ClassSupply) bool {
		return a.Class == b.Class && a.ExtendedResource == b.ExtendedResource
	}) {
		l.classes = previous.classes
		return
	}
	l.classes = make([]classLabels, len(l.supply.Classes))
	for i := range l.supply.Classes {
		class := &l.supply.Classes[i]
		l.classes[i].info = metric.NewLabels(f.classInfo.Labels, class.Class, class.ExtendedResource)
		for state := range dra.DeviceState(dra.DeviceStates) {
			l.classes[i].states[state] = metric.NewLabels(f.classDevices.Labels, class.Class, state.String())
		}
		for reason := range dra.DownReason(dra.DownReasons) {
			l.classes[i].down[reason] = metric.NewLabels(f.classDown.Labels, class.Class, reason.String())
		}
	}
}

func (l *supplyRows) updateTaints(previous *supplyRows, f *families) {
	if previous.supply != nil && slices.EqualFunc(previous.supply.Taints, l.supply.Taints, func(a, b dra.TaintCount) bool {
		a.Devices, b.Devices = 0, 0
		return a == b
	}) {
		l.taints = previous.taints
		return
	}
	l.taints = make([]*metric.Labels, len(l.supply.Taints))
	for i := range l.supply.Taints {
		count := &l.supply.Taints[i]
		l.taints[i] = metric.NewLabels(f.taints.Labels, count.Driver, count.Pool, count.Taint.Key, count.Taint.Effect)
	}
}

func (l *supplyRows) updateRules(previous *supplyRows, f *families) {
	if previous.supply != nil && slices.EqualFunc(previous.supply.Evictions, l.supply.Evictions, func(a, b dra.RuleEviction) bool { return a.Rule == b.Rule }) {
		l.rules = previous.rules
		return
	}
	l.rules = make([]*metric.Labels, len(l.supply.Evictions))
	for i := range l.supply.Evictions {
		l.rules[i] = metric.NewLabels(f.ruleEviction.Labels, l.supply.Evictions[i].Rule)
	}
}

// rows adds what is published, and how much of it is left, to the rows and to the model.
// What depends on claims or slices is left out while these are not known.
func (l *supplyRows) rows(b *metric.Builder, f *families, synced Synced, m *model.Cluster) {
	if l.supply == nil {
		return
	}
	if synced.Slices {
		if synced.Claims {
			l.deviceRows(b, f)
			l.partitionRows(b, f)
		}
		l.poolRows(b, f)
		l.capacityRows(b, f, synced.Claims)
		m.Pools, m.Taints = l.supply.Pools, l.supply.Taints
		b.In(f.taints)
		for i := range l.supply.Taints {
			b.Add(l.taints[i], float64(l.supply.Taints[i].Devices))
		}
	}
	b.In(f.ruleEviction)
	for i := range l.supply.Evictions {
		b.Add(l.rules[i], flag(l.supply.Evictions[i].InProgress))
	}
	if synced.Claims {
		b.In(f.oversized)
		for i, limit := range dra.SpecLimits() {
			b.Add(l.limits[i], float64(l.supply.Oversized[limit]))
		}
	}
	if synced.Classes {
		m.Classes = l.supply.Classes
		b.In(f.classInfo)
		for i := range l.supply.Classes {
			b.Add(l.classes[i].info, 1)
		}
		if synced.Slices && synced.Claims {
			l.classRows(b, f)
			if synced.Nodes {
				l.classDownRows(b, f)
			}
		}
	}
}

// deviceRows adds the devices of published pools: of a pool without slices it is
// not known how many it has.
func (l *supplyRows) deviceRows(b *metric.Builder, f *families) {
	b.In(f.devices)
	for i, pool := range l.supply.Pools {
		if pool.Slices == 0 {
			continue
		}
		for state := range dra.DeviceStates {
			b.Add(l.pools[i].states[state], float64(pool.Devices[state]))
		}
	}
}

func (l *supplyRows) partitionRows(b *metric.Builder, f *families) {
	b.In(f.partitionDevices)
	for i, pool := range l.supply.Pools {
		for j := range pool.Partitions {
			for state := range dra.DeviceStates {
				b.Add(l.pools[i].partitions[j][state], float64(pool.Partitions[j].Devices[state]))
			}
		}
	}
}

func (l *supplyRows) poolRows(b *metric.Builder, f *families) {
	b.In(f.poolComplete)
	for i, pool := range l.supply.Pools {
		b.Add(l.pools[i].pool, flag(pool.Complete))
	}
	b.In(f.poolSlices)
	for i, pool := range l.supply.Pools {
		b.Add(l.pools[i].pool, float64(pool.Slices))
	}
	b.In(f.poolGeneration)
	for i, pool := range l.supply.Pools {
		if pool.Slices > 0 {
			b.Add(l.pools[i].pool, float64(pool.Generation))
		}
	}
}

func (l *supplyRows) capacityRows(b *metric.Builder, f *families, consumed bool) {
	b.In(f.capacity)
	for i, pool := range l.supply.Pools {
		for j := range pool.Capacity {
			if labels := l.pools[i].capacity[j]; labels != nil {
				b.Add(labels, pool.Capacity[j].Total)
			}
		}
	}
	if !consumed {
		return
	}
	b.In(f.capacityConsumed)
	for i, pool := range l.supply.Pools {
		for j := range pool.Capacity {
			if labels := l.pools[i].capacity[j]; labels != nil {
				b.Add(labels, pool.Capacity[j].Consumed)
			}
		}
	}
}

func (l *supplyRows) classRows(b *metric.Builder, f *families) {
	b.In(f.classDevices)
	for i := range l.supply.Classes {
		if !l.supply.Classes[i].Counted {
			continue
		}
		for state := range dra.DeviceStates {
			b.Add(l.classes[i].states[state], float64(l.supply.Classes[i].Devices[state]))
		}
	}
}

// classDownRows needs the nodes: devices of those that are not ready are down.
func (l *supplyRows) classDownRows(b *metric.Builder, f *families) {
	b.In(f.classDown)
	for i := range l.supply.Classes {
		if !l.supply.Classes[i].Counted {
			continue
		}
		for reason := range dra.DownReasons {
			b.Add(l.classes[i].down[reason], float64(l.supply.Classes[i].Down[reason]))
		}
	}
}
