package cluster

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// rows shows what is published and what of it is left. What nobody can know
// without the claims, or without the slices, is not shown then.
func (l *supplyLabels) rows(b *metric.Builder, f *families, synced Synced) {
	if l.from == nil {
		return
	}
	if synced.Slices {
		if synced.Claims {
			l.deviceRows(b, f)
		}
		l.poolRows(b, f)
		l.capacityRows(b, f, synced.Claims)
		b.In(f.taints)
		for i := range l.from.Taints {
			b.Add(l.taints[i], float64(l.from.Taints[i].Devices))
		}
	}
	if synced.Claims {
		b.In(f.oversized)
		for i, limit := range dra.SpecLimits() {
			b.Add(l.limits[i], float64(l.from.Oversized[limit]))
		}
	}
	if synced.Classes {
		b.In(f.classInfo)
		for i := range l.from.Classes {
			b.Add(l.classes[i].info, 1)
		}
		if synced.Slices && synced.Claims {
			l.classRows(b, f)
		}
	}
}

// deviceRows shows the devices of published pools: of one whose slices are all
// gone nobody knows how many it has.
func (l *supplyLabels) deviceRows(b *metric.Builder, f *families) {
	b.In(f.devices)
	for i, pool := range l.from.Pools {
		if pool.Slices == 0 {
			continue
		}
		for state := range dra.DeviceStates {
			b.Add(l.pools[i].states[state], float64(pool.Devices[state]))
		}
	}
}

func (l *supplyLabels) poolRows(b *metric.Builder, f *families) {
	b.In(f.poolComplete)
	for i, pool := range l.from.Pools {
		b.Add(l.pools[i].pool, flag(pool.Complete))
	}
	b.In(f.poolSlices)
	for i, pool := range l.from.Pools {
		b.Add(l.pools[i].pool, float64(pool.Slices))
	}
	b.In(f.poolGeneration)
	for i, pool := range l.from.Pools {
		if pool.Slices > 0 {
			b.Add(l.pools[i].pool, float64(pool.Generation))
		}
	}
}

func (l *supplyLabels) capacityRows(b *metric.Builder, f *families, consumed bool) {
	b.In(f.capacity)
	for i, pool := range l.from.Pools {
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
	for i, pool := range l.from.Pools {
		for j := range pool.Capacity {
			if labels := l.pools[i].capacity[j]; labels != nil {
				b.Add(labels, pool.Capacity[j].Consumed)
			}
		}
	}
}

func (l *supplyLabels) classRows(b *metric.Builder, f *families) {
	b.In(f.classDevices)
	for i := range l.from.Classes {
		if !l.from.Classes[i].Counted {
			continue
		}
		for state := range dra.DeviceStates {
			b.Add(l.classes[i].states[state], float64(l.from.Classes[i].Devices[state]))
		}
	}
}
