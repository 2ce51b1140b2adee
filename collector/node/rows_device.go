package node

import (
	"strconv"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// unitLabels are made when the unit is first shown, and again where what
// they say has changed.
type unitLabels struct {
	plain, info, published, place, byClaim, byPlugin *metric.Labels

	parent      string // that all of them name
	infoOf      deviceIdentity
	publishedAs dra.DeviceID
	placedAt    instances
}

// deviceIdentity is what dra_device_info says.
type deviceIdentity struct {
	vendor, model, address, profile, version, source string
}

func (b *rowBuilder) deviceRows(units []*unit, config Config) {
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
func (b *rowBuilder) quantityRows(units []*unit, q device.Quantity, spec *device.Spec) {
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

// label makes the unit's labels, or keeps them.
func (u *unit) label(f *families, node string) {
	if u.labels.plain == nil || u.labels.parent != u.device.ParentUUID {
		u.labels, u.slots, u.slotted = unitLabels{parent: u.device.ParentUUID}, nil, nil
		u.health.labels = healthLabels{}
		u.xids.forgetLabels()
		u.labels.plain = metric.NewLabels(f.deviceBusy.Labels, node, u.uuid, u.device.ParentUUID)
		u.labels.byClaim = metric.NewLabels(f.deviceHolders.Labels, node, u.uuid, u.device.ParentUUID, "claim")
		u.labels.byPlugin = metric.NewLabels(f.deviceHolders.Labels, node, u.uuid, u.device.ParentUUID, "device_plugin")
	}
	id := deviceIdentity{u.device.Vendor, u.model(), u.device.PCIBusID, u.profile(), u.device.DriverVersion, u.source}
	if u.labels.info == nil || id != u.labels.infoOf {
		u.labels.infoOf = id
		u.labels.info = metric.NewLabels(f.deviceInfo.Labels, node, u.uuid, u.device.ParentUUID,
			id.vendor, id.model, id.address, id.profile, id.version, id.source)
	}
	if as := u.published.ID; u.isPublished && (u.labels.published == nil || as != u.labels.publishedAs) {
		u.labels.publishedAs = as
		u.labels.published = metric.NewLabels(f.publishedInfo.Labels, node, u.uuid, u.device.ParentUUID, as.Driver, as.Pool, as.Name)
	}
	u.labelPlace(f, node)
	u.labelReadings(f, node)
}

// instances is what dra_device_partition_info says.
type instances struct{ gpu, compute int }

func (u *unit) labelPlace(f *families, node string) {
	at := instances{u.device.GPUInstance, u.device.ComputeInstance}
	switch {
	case !placed(u.device):
		u.labels.place = nil
	case u.labels.place == nil || at != u.labels.placedAt:
		u.labels.placedAt = at
		u.labels.place = metric.NewLabels(f.partitionInfo.Labels, node, u.uuid, u.device.ParentUUID, strconv.Itoa(at.gpu), strconv.Itoa(at.compute))
	}
}

func (u *unit) profile() string {
	if u.device.Profile != "" {
		return u.device.Profile
	}
	return u.published.Profile
}

// labelReadings keeps one set of labels beside each reading with details.
// Readings come in a fixed order, so it has work to do only when a reading
// appears or disappears.
func (u *unit) labelReadings(f *families, node string) {
	for i, reading := range u.readings {
		if i < len(u.slots) && sameReading(u.slotted[i], reading) {
			continue
		}
		u.slots, u.slotted = u.slots[:min(i, len(u.slots))], u.slotted[:min(i, len(u.slotted))]
		var labels *metric.Labels
		if details := len(f.specs[reading.Quantity].Details); details > 0 {
			values := append([]string{node, u.uuid, u.device.ParentUUID}, reading.Details[:details]...)
			labels = metric.NewLabels(f.quantity[reading.Quantity].Labels, values...)
		}
		u.slots, u.slotted = append(u.slots, labels), append(u.slotted, reading)
	}
}

// sameReading compares what labels are made of.
func sameReading(a, b device.Reading) bool {
	return a.Quantity == b.Quantity && a.Details == b.Details
}
