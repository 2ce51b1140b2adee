package node

import (
	"github.com/dra-exporter/dra-exporter/collector/device"
)

func (b *rowBuilder) deviceRows(units []*deviceState, config Config) {
	f := b.families
	for _, u := range units {
		u.label(f, config.Node)
	}
	b.In(f.deviceInfo)
	for _, u := range units {
		b.addFact(u.labels.info, u.present || !u.hardware)
	}
	b.In(f.publishedInfo)
	for _, u := range units {
		if u.isPublished {
			b.Add(u.labels.published, 1)
		}
	}
	b.In(f.partitionInfo)
	for _, u := range units {
		if u.labels.place != nil {
			b.Add(u.labels.place, 1)
		}
	}
	b.In(f.deviceHolders)
	for _, u := range units {
		b.Add(u.labels.byClaim, float64(u.holders.claims))
		b.Add(u.labels.byPlugin, float64(u.holders.plugins))
	}
	for q, family := range f.quantity {
		b.In(family)
		b.quantityRows(units, device.Quantity(q), &f.specs[q])
	}
	b.In(f.deviceBusy)
	for _, u := range units {
		b.addTally(u.labels.plain, u.busy)
	}
	b.strayRows(units)
	b.podRows(units, config)
}

// quantityRows shows one quantity of all devices. Gauges vanish when they
// are stale; counters stay.
func (b *rowBuilder) quantityRows(units []*deviceState, q device.Quantity, spec *device.Spec) {
	for _, u := range units {
		if !u.fresh && spec.Kind == device.Gauge {
			continue
		}
		first := u.offsets[q]
		for i, reading := range u.of(q) {
			labels := u.labels.plain
			if len(spec.Details) > 0 {
				labels = u.slots[first+i]
			}
			b.Add(labels, reading.Value)
		}
	}
}
