package device

import (
	"fmt"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// events has the XIDs of all devices that a loop takes from an EventSource,
// including devices that are not being read. It belongs to the goroutine of the
// loop.
type events struct {
	source EventSource       // nil: the source is none
	stale  time.Duration     // for how long XIDs count as complete
	known  map[string]Sample // by UUID: the last sample of each device that is reported
	missed error             // why XIDs were not received, now or since the last report
}

func newEvents(source Source, stale time.Duration) events {
	reported, _ := source.(EventSource)
	return events{source: reported, stale: stale, known: make(map[string]Sample)}
}

// RecentXIDs is how long the XIDs of a device are reported after the last one,
// even if no more are received, so that the last ones reach every consumer.
const RecentXIDs = 2 * time.Minute

// received returns the XIDs of the devices whose XIDs are received, and of those
// that have reported one within RecentXIDs.
func (e *events) received(now clock.Instant) map[string][]XID {
	all := e.source.XIDs()
	end, err := e.source.Received()
	if late := now.Since(end) > e.stale; late || end.IsZero() {
		if err == nil && len(all) > 0 && !end.IsZero() {
			err = fmt.Errorf("receive XIDs of %d devices: the source has not looked for them within %s", len(all), e.stale)
		}
		all = recent(all, now.Wall)
	}
	if err != nil {
		e.missed = &source.Failure{Reason: source.ReasonEvents, Err: err}
	}
	return all
}

// recent returns the XIDs of the devices that have reported one within
// RecentXIDs.
func recent(all map[string][]XID, now time.Time) map[string][]XID {
	kept := make(map[string][]XID)
	for uuid, xids := range all {
		if slices.ContainsFunc(xids, func(x XID) bool { return now.Sub(x.Last) < RecentXIDs }) {
			kept[uuid] = xids
		}
	}
	return kept
}

// failure returns why XIDs were not received at some time since the last call;
// nil if all were.
func (e *events) failure() error {
	err := e.missed
	e.missed = nil
	return err
}

// changed signals that there are new XIDs to attach. It never does if the
// source reports no XIDs.
func (e *events) changed() <-chan struct{} {
	if e.source == nil {
		return nil
	}
	return e.source.Changed()
}

// attach returns the samples with the XIDs of their devices, followed by
// samples of devices that have XIDs but were not read: the last sample of the
// device, or a sample with only the UUID if the device has a reader and has
// never been read. It does not change the given samples.
func (e *events) attach(samples []Sample, readers []*readerState, source string, now clock.Instant) []Sample {
	if e.source == nil {
		return samples
	}
	all := e.received(now)
	attached := make([]Sample, len(samples), len(samples)+1)
	there := make(map[string]bool, len(samples))
	for i, sample := range samples {
		uuid := sample.Device.UUID
		there[uuid] = true
		if xids, ok := all[uuid]; ok {
			sample.XIDs = xids
			e.known[uuid] = sample
		}
		attached[i] = sample
	}
	for uuid := range e.known {
		if _, ok := all[uuid]; !ok {
			delete(e.known, uuid)
		}
	}
	for uuid, xids := range all {
		if len(xids) == 0 || there[uuid] {
			continue
		}
		sample, ok := e.unreadSample(uuid, readers, source)
		if !ok || sample.Device.IsPartition() && there[sample.Device.ParentUUID] {
			continue // a partition goes when its device is read without it
		}
		sample.XIDs = xids
		attached = append(attached, sample)
	}
	return attached
}

// unreadSample returns the sample of a device that was not read. A UUID that is
// not the key of a reader may belong to a partition; too little is known of it to
// show it before it has been read.
func (e *events) unreadSample(uuid string, readers []*readerState, source string) (Sample, bool) {
	if sample, ok := e.known[uuid]; ok {
		return sample, true
	}
	for _, s := range readers {
		if s.key == uuid && !s.removed {
			return Sample{Device: unseen(uuid), Source: source, bare: true}, true
		}
	}
	return Sample{}, false
}

// unseen returns a device of which only the UUID is known.
func unseen(uuid string) Device {
	return Device{
		UUID: uuid, Minor: Unknown, RenderMinor: Unknown,
		Placement: Unknown, GPUInstance: Unknown, ComputeInstance: Unknown,
	}
}
