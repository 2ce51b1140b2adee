package node

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// unmatched reports devices of claims whose hardware is not known, hardware that
// is not published, and hardware that claims hold under several names. Devices that
// no running source reads are none of these.
type unmatched struct {
	node string

	held        []unmatchedDevice // in the order of the views
	byDriver    map[string]*unmatchedCounts
	conflicting map[string]bool // hardware that claims hold under several published names
}

// unmatchedCounts are those of a driver that publishes devices of this node, or whose
// devices claims hold.
type unmatchedCounts struct {
	published int  // allocated devices without known hardware
	hardware  int  // that the driver does not publish
	present   bool // a source reads hardware of the driver
	read      bool // see isRead
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

func newUnmatched(node string) *unmatched {
	return &unmatched{node: node, byDriver: make(map[string]*unmatchedCounts)}
}

// update applies the views. Its events are about devices that match hardware now
// after they were logged, and about new conflicts.
func (s *unmatched) update(devices *devices, views []claimView, published []dra.PublishedDevice, now clock.Instant) []Event {
	previous := s.byDriver
	s.byDriver = make(map[string]*unmatchedCounts, len(previous))
	for i := range published {
		s.count(previous, published[i].ID.Driver)
	}
	for i := range views {
		for _, d := range views[i].devices {
			s.count(previous, d.id.Driver)
		}
	}
	events := s.updateHeld(devices, views, now)
	events = append(events, s.updateConflicts(views)...)
	s.countHardware(devices, published)
	return events
}

// count begins the counts of a driver. What was known of it before is kept.
func (s *unmatched) count(previous map[string]*unmatchedCounts, driver string) {
	switch {
	case s.byDriver[driver] != nil:
	case previous[driver] != nil:
		s.byDriver[driver] = &unmatchedCounts{read: previous[driver].read}
	default:
		s.byDriver[driver] = &unmatchedCounts{}
	}
}

func (s *unmatched) updateHeld(devices *devices, views []claimView, now clock.Instant) []Event {
	var events []Event
	previous := s.held
	s.held = nil
	counted := make(map[dra.DeviceID]bool)
	for i := range views {
		view := &views[i]
		for _, d := range view.devices {
			device := unmatchedDevice{claim: view.ref, uid: view.info.uid, device: d.id, since: now}
			at := slices.IndexFunc(previous, device.same)
			switch {
			case d.bundled || vendors.IsLogical(d.id.Driver) || devices.get(d.uuid).published.Passthrough:
			case d.uuid == unknownUUID(s.node, d.id) && !devices.get(d.uuid).hardware:
				if !counted[d.id] {
					counted[d.id] = true
					s.byDriver[d.id.Driver].published++
				}
				if at >= 0 {
					device = previous[at]
				}
				if !slices.ContainsFunc(s.held, device.same) { // a claim may hold one device twice
					s.held = append(s.held, device)
				}
			case at >= 0 && previous[at].warned:
				previous[at].warned = false
				events = append(events, Event{slog.LevelInfo, "device of a claim matches hardware now", append(device.attributes(), slog.String("uuid", d.uuid))})
			}
		}
	}
	return events
}

// updateConflicts finds hardware that claims hold under several published names.
func (s *unmatched) updateConflicts(views []claimView) []Event {
	var events []Event
	previous, names := s.conflicting, make(map[string]dra.DeviceID)
	s.conflicting = make(map[string]bool)
	for i := range views {
		for _, d := range views[i].devices {
			first, ok := names[d.uuid]
			switch {
			case d.bundled:
			case !ok:
				names[d.uuid] = d.id
			case first != d.id && !s.conflicting[d.uuid]:
				s.conflicting[d.uuid] = true
				if !previous[d.uuid] {
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
func (s *unmatched) countHardware(devices *devices, published []dra.PublishedDevice) {
	drivers, divided, parents := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for i := range published {
		drivers[published[i].ID.Driver] = true
		if address := published[i].ParentPCIAddress; address != "" {
			divided[address] = true // its partitions are published, not the card
		}
	}
	for _, d := range devices.all() {
		if d.present && d.device.IsPartition() {
			parents[d.device.ParentUUID] = true
		}
	}
	for _, d := range devices.all() {
		driver := cmp.Or(d.device.Published.Driver, vendors.DriverOf(d.device.Vendor))
		counts := s.byDriver[driver]
		if !d.present || counts == nil {
			continue
		}
		counts.present = true
		if drivers[driver] && !d.isPublished && !parents[d.uuid] && !divided[d.device.PCIBusID] {
			counts.hardware++
		}
	}
}

// overdue applies the statuses of sources. It returns an event, once, for each device
// that a running source should read and that has been unmatched for long.
func (s *unmatched) overdue(sources []source.Status, now clock.Instant) []Event {
	for driver, counts := range s.byDriver {
		counts.read = isRead(vendors.ByDriver(driver), sources, counts.present)
	}
	var events []Event
	for i := range s.held {
		d := &s.held[i]
		if !d.warned && s.byDriver[d.device.Driver].read && now.Since(d.since) >= unmatchedDelay {
			d.warned = true
			events = append(events, Event{slog.LevelWarn, "device of a claim matches no hardware", d.attributes()})
		}
	}
	return events
}

// isRead reports whether a running source reads all devices of a driver: one that is
// made for them, or one that reads hardware of the vendor, such as an exporter. Sources
// of other kinds read some of the devices only: network adapters with RDMA that are in
// no pod, and what a driver has metrics of.
func isRead(row vendors.Vendor, sources []source.Status, present bool) bool {
	if row.Kind != vendors.GPU {
		return false
	}
	return row.Name != "" && present || slices.ContainsFunc(sources, func(status source.Status) bool {
		return status.Up && slices.Contains(row.Sources[:], status.Name)
	})
}

// models returns the counts of drivers whose devices or hardware are read.
func (s *unmatched) models() []model.UnmatchedDevices {
	list := make([]model.UnmatchedDevices, 0, len(s.byDriver))
	for _, driver := range slices.Sorted(maps.Keys(s.byDriver)) {
		counts := s.byDriver[driver]
		list = append(list, model.UnmatchedDevices{
			Driver:    driver,
			Published: model.Optional{Value: float64(counts.published), Known: counts.read},
			Hardware:  model.Optional{Value: float64(counts.hardware), Known: counts.read || counts.present},
		})
	}
	return list
}

func (d unmatchedDevice) same(other unmatchedDevice) bool {
	return d.claim == other.claim && d.uid == other.uid && d.device == other.device
}

func (d unmatchedDevice) attributes() []slog.Attr {
	return []slog.Attr{slog.String("claim", d.claim.String()), slog.String("device", d.device.String())}
}
