package node

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// unmatched reports devices of claims whose hardware is not known, hardware that
// is not published, and hardware that claims hold under several names.
type unmatched struct {
	node    string
	devices *devices

	held        []unmatchedDevice // in the order of the views
	published   int               // allocated devices without known hardware
	hardware    int               // that its driver does not publish
	conflicting map[string]bool   // hardware that claims hold under several published names

	labels struct{ published, hardware *metric.Labels }
}

// unmatchedDevice is a device of a claim whose hardware is not known.
type unmatchedDevice struct {
	claim  dra.ClaimRef
	uid    string // of the claim
	device dra.DeviceID
	since  clock.Instant // when the claim was first seen to hold it, or it lost its hardware
	warned bool
}

// unmatchedDelay is how long a device is unmatched before it is logged: a
// partition is created after its claim has been allocated, and a process that
// starts observes claims before it has sampled all hardware.
const unmatchedDelay = 30 * time.Second

func newUnmatched(node string, devices *devices, f *families) *unmatched {
	s := &unmatched{node: node, devices: devices}
	s.labels.published = metric.NewLabels(f.unmatched.Labels, "published")
	s.labels.hardware = metric.NewLabels(f.unmatched.Labels, "hardware")
	return s
}

// update applies the views. Its events are about devices that match hardware now
// after they were logged, and about new conflicts.
func (s *unmatched) update(views []claimView, published []dra.PublishedDevice, now clock.Instant) []Event {
	events := s.updateHeld(views, now)
	events = append(events, s.updateConflicts(views)...)
	s.countHardware(published)
	return events
}

func (s *unmatched) updateHeld(views []claimView, now clock.Instant) []Event {
	var events []Event
	before := s.held
	s.held, s.published = nil, 0
	counted := make(map[dra.DeviceID]bool)
	for i := range views {
		view := &views[i]
		for _, d := range view.devices {
			device := unmatchedDevice{claim: view.ref, uid: view.info.uid, device: d.id, since: now}
			at := slices.IndexFunc(before, device.same)
			switch {
			case vendors.IsLogical(d.id.Driver):
			case d.uuid == unknownUUID(s.node, d.id) && !s.devices.get(d.uuid).hardware:
				if !counted[d.id] {
					counted[d.id] = true
					s.published++
				}
				if at >= 0 {
					device = before[at]
				}
				if !slices.ContainsFunc(s.held, device.same) { // a claim may hold one device twice
					s.held = append(s.held, device)
				}
			case at >= 0 && before[at].warned:
				before[at].warned = false
				events = append(events, Event{slog.LevelInfo, "device of a claim matches hardware now", append(device.attributes(), slog.String("uuid", d.uuid))})
			}
		}
	}
	return events
}

// updateConflicts finds hardware that claims hold under several published names.
func (s *unmatched) updateConflicts(views []claimView) []Event {
	var events []Event
	before, names := s.conflicting, make(map[string]dra.DeviceID)
	s.conflicting = make(map[string]bool)
	for i := range views {
		for _, d := range views[i].devices {
			first, named := names[d.uuid]
			switch {
			case !named:
				names[d.uuid] = d.id
			case first != d.id && !s.conflicting[d.uuid]:
				s.conflicting[d.uuid] = true
				if !before[d.uuid] {
					events = append(events, Event{slog.LevelWarn, "claims hold one device under two published names", []slog.Attr{
						slog.String("uuid", d.uuid), slog.String("device", first.String()), slog.String("other", d.id.String())}})
				}
			}
		}
	}
	return events
}

// countHardware counts hardware that the vendor's own driver, which publishes
// devices of this node, does not publish.
func (s *unmatched) countHardware(published []dra.PublishedDevice) {
	drivers, divided, parents := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for i := range published {
		drivers[published[i].ID.Driver] = true
		if address := published[i].ParentPCIAddress; address != "" {
			divided[address] = true // its partitions are published, not the card
		}
	}
	for _, d := range s.devices.all() {
		if d.present && d.device.IsPartition() {
			parents[d.device.ParentUUID] = true
		}
	}
	s.hardware = 0
	for _, d := range s.devices.all() {
		driver := cmp.Or(d.device.Published.Driver, vendors.DriverOf(d.device.Vendor))
		if d.present && !d.isPublished && !parents[d.uuid] && !divided[d.device.PCIBusID] && drivers[driver] {
			s.hardware++
		}
	}
}

// overdue returns an event, once, for each device that has been unmatched for
// long.
func (s *unmatched) overdue(now clock.Instant) []Event {
	var events []Event
	for i := range s.held {
		d := &s.held[i]
		if !d.warned && now.Since(d.since) >= unmatchedDelay {
			d.warned = true
			events = append(events, Event{slog.LevelWarn, "device of a claim matches no hardware", d.attributes()})
		}
	}
	return events
}

func (s *unmatched) rows(b *rowBuilder) {
	b.In(b.families.unmatched)
	b.Add(s.labels.published, float64(s.published))
	b.Add(s.labels.hardware, float64(s.hardware))
	b.In(b.families.conflicting)
	b.Add(b.plain, float64(len(s.conflicting)))
}

func (d unmatchedDevice) same(other unmatchedDevice) bool {
	return d.claim == other.claim && d.uid == other.uid && d.device == other.device
}

func (d unmatchedDevice) attributes() []slog.Attr {
	return []slog.Attr{slog.String("claim", d.claim.String()), slog.String("device", d.device.String())}
}
