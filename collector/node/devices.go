package node

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// devices is the first stage: it applies samples to the devices of the node.
// A device is kept for the grace after it was last sampled or held.
type devices struct {
	node      string
	staleness time.Duration
	byUUID    map[string]*deviceState
	sorted    []*deviceState // by uuid; nil: a device was added or removed

	changes uint64 // of the hardware so far: added, removed, or other properties
	listed  bool   // a source has listed the processes of a device
}

func newDevices(config Config) *devices {
	return &devices{node: config.Node, staleness: config.Staleness(), byUUID: make(map[string]*deviceState)}
}

// apply applies the samples of a step.
func (s *devices) apply(samples []device.Sample, now clock.Instant) {
	for _, d := range s.byUUID {
		d.present, d.wasPresent = false, d.present
	}
	for _, sample := range samples {
		uuid := hardwareUUID(s.node, sample.Device)
		d := s.byUUID[uuid]
		if d == nil {
			d = s.add(&deviceState{uuid: uuid})
		}
		if !d.wasPresent || !sameHardware(d.device, sample.Device) {
			s.changes++
		}
		d.seen = now
		s.listed = s.listed || !sample.ProcessesAt.IsZero()
		d.apply(sample)
	}
	for _, d := range s.byUUID {
		if !d.present {
			d.newer, d.xids = false, nil
			if d.wasPresent {
				s.changes++
			}
		}
		d.fresh = d.present && !d.at.IsZero() && now.Since(d.at) <= s.staleness
	}
}

func (s *devices) add(d *deviceState) *deviceState {
	s.byUUID[d.uuid], s.sorted = d, nil
	return d
}

// get returns the device of a uuid; nil if there is none.
func (s *devices) get(uuid string) *deviceState { return s.byUUID[uuid] }

// held returns the device of a uuid that is held now. It adds one of unknown
// hardware if there is none.
func (s *devices) held(uuid string, now clock.Instant) *deviceState {
	d := s.byUUID[uuid]
	if d == nil {
		d = s.add(&deviceState{uuid: uuid, device: unidentified()})
	}
	d.seen = now
	return d
}

// keep keeps a device that is held now.
func (s *devices) keep(d *deviceState, now clock.Instant) { d.seen = now }

// all returns the devices, sorted by uuid. The list must not be changed.
func (s *devices) all() []*deviceState {
	if s.sorted == nil {
		s.sorted = slices.SortedFunc(maps.Values(s.byUUID), func(a, b *deviceState) int { return cmp.Compare(a.uuid, b.uuid) })
	}
	return s.sorted
}

// parent returns the device that a partition is part of; nil if it is not
// known.
func (s *devices) parent(d *deviceState) *deviceState { return s.byUUID[d.device.ParentUUID] }

// evict removes the devices whose grace has ended, and returns them.
func (s *devices) evict(now clock.Instant, grace time.Duration) []*deviceState {
	var evicted []*deviceState
	for uuid, d := range s.byUUID {
		if now.Since(d.seen) > grace {
			delete(s.byUUID, uuid)
			s.sorted, evicted = nil, append(evicted, d)
		}
	}
	return evicted
}

// newestSample is when any device was last read; zero: never.
func (s *devices) newestSample() clock.Instant {
	var newest clock.Instant
	for _, d := range s.byUUID {
		if d.at.Elapsed > newest.Elapsed {
			newest = d.at
		}
	}
	return newest
}

// infoRows adds what the devices are. It brings the labels of all devices up
// to date, which other stages use.
func (s *devices) infoRows(b *rowBuilder) {
	f, all := b.families, s.all()
	for _, d := range all {
		d.label(f, s.node)
	}
	b.In(f.deviceInfo)
	for _, d := range all {
		b.addFact(d.labels.info, d.present || !d.hardware)
	}
	b.In(f.publishedInfo)
	for _, d := range all {
		if d.isPublished {
			b.Add(d.labels.published, 1)
		}
	}
	b.In(f.partitionInfo)
	for _, d := range all {
		if d.labels.place != nil {
			b.Add(d.labels.place, 1)
		}
	}
}

// readingRows adds what the hardware reports. Gauges are left out when they
// are stale; counters stay.
func (s *devices) readingRows(b *rowBuilder) {
	for q, family := range b.families.quantity {
		b.In(family)
		spec := &b.families.specs[q]
		for _, d := range s.all() {
			if !d.fresh && spec.Kind == device.Gauge {
				continue
			}
			first := d.offsets[q]
			for i, reading := range d.of(device.Quantity(q)) {
				labels := d.labels.plain
				if len(spec.Details) > 0 {
					labels = d.slots[first+i]
				}
				b.Add(labels, reading.Value)
			}
		}
	}
}

// sampleRows adds when any device was last read.
func (s *devices) sampleRows(b *rowBuilder) {
	b.In(b.families.sampleTime)
	if newest := s.newestSample(); !newest.IsZero() {
		b.Add(b.plain, float64(newest.Wall.UnixMilli())/1000)
	}
}
