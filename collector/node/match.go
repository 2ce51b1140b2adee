package node

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// matchDevices pairs what drivers named with hardware and returns how to
// name each device. A match is remembered while a claim holds the device,
// because slices vanish when a driver is down; held is what claims hold now.
func (s *State) matchDevices(facts Facts, held map[dra.DeviceID]bool) resolve {
	maps.DeleteFunc(s.known, func(id dra.DeviceID, _ string) bool { return !held[id] })
	hardware, uuids := s.hardware()
	named := subjects(facts, held)
	for i := range named {
		named[i].before = s.before[named[i].id]
	}
	m := match(named, hardware, s.remembered(facts.Cluster, uuids))
	s.remember(m, uuids)
	s.noteBefore(m)
	s.publish(facts.Cluster, m, uuids)
	return func(id dra.DeviceID) string {
		if uuid, known := s.known[id]; known {
			return uuid
		}
		return unknownUUID(s.config.Node, id)
	}
}

// remember keeps what was found, and forgets who had the hardware before.
func (s *State) remember(m *matching, uuids []string) {
	now, taken := make(map[dra.DeviceID]bool, len(m.found)), make(map[string]bool, len(m.found))
	for _, found := range []map[dra.DeviceID]int{m.found, m.twice} {
		for id, i := range found {
			s.known[id] = uuids[i]
			now[id], taken[uuids[i]] = true, true
		}
	}
	maps.DeleteFunc(s.known, func(id dra.DeviceID, uuid string) bool { return taken[uuid] && !now[id] })
}

// noteBefore keeps which hardware each published device is. It forgets what a
// pool has published before as soon as the pool publishes anything, and the
// earlier names of hardware that is published again: so there is at most one
// publication of each device to remember.
func (s *State) noteBefore(m *matching) {
	type pool struct{ driver, name string }
	there, found := make(map[pool]bool), make(map[dra.DeviceID]bool, len(m.subjects))
	again := make(map[string]bool, len(m.subjects))
	for i := range m.subjects {
		sub := &m.subjects[i]
		if !sub.isPublished {
			continue
		}
		there[pool{sub.id.Driver, sub.id.Pool}] = true
		at, matched := m.found[sub.id]
		if !matched {
			continue
		}
		hardware := hardwareUUID("", m.hardware[at])
		found[sub.id], again[hardware] = true, true
		if sub.before != hardware {
			s.before[sub.id] = hardware
		}
	}
	maps.DeleteFunc(s.before, func(id dra.DeviceID, hardware string) bool {
		return !found[id] && (there[pool{id.Driver, id.Pool}] || again[hardware])
	})
}

// remembered is the hardware of held devices whose slices are gone: nobody
// else can have it meanwhile.
func (s *State) remembered(cluster Cluster, uuids []string) map[dra.DeviceID]int {
	published := make(map[dra.DeviceID]bool, len(cluster.Published))
	for i := range cluster.Published {
		published[cluster.Published[i].ID] = true
	}
	kept := make(map[dra.DeviceID]int)
	for id, uuid := range s.known {
		if i, there := slices.BinarySearch(uuids, uuid); there && !published[id] {
			kept[id] = i
		}
	}
	return kept
}

// hardware returns the devices that are there now, in a fixed order, and
// their uuids.
func (s *State) hardware() ([]device.Device, []string) {
	uuids := make([]string, 0, len(s.devices.byUUID))
	for uuid, u := range s.devices.byUUID {
		if u.present {
			uuids = append(uuids, uuid)
		}
	}
	slices.Sort(uuids)
	devices := make([]device.Device, len(uuids))
	for i, uuid := range uuids {
		devices[i] = s.devices.byUUID[uuid].device
	}
	return devices, uuids
}

// publish notes on each unit by which name its driver publishes it.
func (s *State) publish(cluster Cluster, m *matching, uuids []string) {
	clear(s.published)
	for i := range cluster.Published {
		s.published[cluster.Published[i].ID] = &cluster.Published[i]
	}
	for _, u := range s.devices.byUUID {
		u.isPublished, u.inSlice = false, false
	}
	for i := range m.subjects {
		id := m.subjects[i].id
		if at, matched := m.found[id]; matched {
			if u := s.devices.byUUID[uuids[at]]; !u.isPublished || u.published.ID == id {
				s.name(u, id)
			}
		}
	}
}

func compareDevices(a, b dra.DeviceID) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
}

// name notes by which name a driver published the unit. What the slice said
// of it is kept when the slice has vanished.
func (s *State) name(u *deviceState, id dra.DeviceID) {
	published, inSlice := s.published[id]
	u.isPublished, u.inSlice = true, inSlice
	if inSlice {
		u.published = *published
	} else if u.published.ID != id {
		u.published = dra.PublishedDevice{ID: id, Placement: dra.PlacementUnknown}
	}
	if !u.hardware {
		u.device.ParentUUID = u.published.ParentUUID
	}
}

// subjects gathers every device that a driver named, with the evidence. held is
// what claims hold, though facts may not name it now.
func subjects(facts Facts, held map[dra.DeviceID]bool) []subject {
	list := make([]subject, 0, len(facts.Cluster.Published)+8)
	index := make(map[dra.DeviceID]int, len(facts.Cluster.Published)+8)
	add := func(id dra.DeviceID) *subject {
		i, known := index[id]
		if !known {
			i = len(list)
			index[id] = i
			list = append(list, subject{id: id, published: dra.PublishedDevice{Placement: dra.PlacementUnknown}})
		}
		return &list[i]
	}
	for _, p := range facts.Cluster.Published {
		s := add(p.ID)
		s.published, s.isPublished = p, true
	}
	for _, claim := range facts.Cluster.Claims {
		for _, result := range claim.Results {
			add(result.Device).claimed = true
		}
		for _, status := range claim.DeviceStatus {
			s := add(status.Device)
			s.status.UUID = cmp.Or(s.status.UUID, status.UUID)
			s.status.PCIAddress = cmp.Or(s.status.PCIAddress, status.PCIAddress)
		}
	}
	addListed(facts, add)
	var unnamed []dra.DeviceID
	for id := range held {
		if i, named := index[id]; named {
			list[i].claimed = true
		} else {
			unnamed = append(unnamed, id)
		}
	}
	slices.SortFunc(unnamed, compareDevices)
	for _, id := range unnamed {
		add(id).claimed = true
	}
	return list
}

// addListed adds what the kubelet lists, with the device nodes of each
// device's own CDI entry.
func addListed(facts Facts, add func(dra.DeviceID) *subject) {
	nodes := make(map[string][]string, len(facts.CDI))
	for _, d := range facts.CDI {
		nodes[d.Name] = d.Nodes
	}
	for _, a := range facts.Listing.Assignments {
		s := add(a.Device)
		s.claimed = true
		for _, name := range a.CDIDevices {
			for _, path := range nodes[name] {
				if !slices.Contains(s.nodes, path) {
					s.nodes = append(s.nodes, path)
				}
			}
		}
	}
}

// unitOf returns the unit of a held device, and makes one where the hardware
// is unknown.
func (s *State) unitOf(d claimDevice, now clock.Instant) *deviceState {
	u := s.devices.held(d.uuid, now)
	if !u.isPublished || u.published.ID == d.id {
		s.name(u, d.id)
	}
	return u
}

// countUnmatched counts allocated devices without hardware, and hardware
// that the vendor's own driver, which publishes here, does not name.
func (s *State) countUnmatched(facts Facts, events []Event) []Event {
	before := s.unmatched.conflicting
	s.unmatched = unmatched{}
	held, names := make(map[dra.DeviceID]bool), make(map[string]dra.DeviceID)
	for _, view := range s.join.views {
		for _, d := range view.devices {
			if !held[d.id] && d.uuid == unknownUUID(s.config.Node, d.id) {
				s.unmatched.published++
			}
			held[d.id] = true
			switch first, named := names[d.uuid]; {
			case !named:
				names[d.uuid] = d.id
			case first != d.id && !s.unmatched.conflicting[d.uuid]:
				if s.unmatched.conflicting == nil {
					s.unmatched.conflicting = make(map[string]bool)
				}
				s.unmatched.conflicting[d.uuid] = true
				if !before[d.uuid] {
					events = append(events, Event{slog.LevelWarn, "claims hold one device under two published names", []slog.Attr{
						slog.String("uuid", d.uuid), slog.String("device", first.String()), slog.String("other", d.id.String())}})
				}
			}
		}
	}
	drivers, cut := make(map[string]bool), make(map[string]bool)
	for _, p := range facts.Cluster.Published {
		drivers[p.ID.Driver] = true
		if p.ParentPCIAddress != "" {
			cut[p.ParentPCIAddress] = true // its parts are published, not the card
		}
	}
	parents := make(map[string]bool)
	for _, u := range s.devices.byUUID {
		if u.present && u.device.IsPartition() {
			parents[u.device.ParentUUID] = true
		}
	}
	for uuid, u := range s.devices.byUUID {
		if u.present && !u.isPublished && !parents[uuid] && !cut[u.device.PCIBusID] && drivers[vendors.DriverOf(u.device.Vendor)] {
			s.unmatched.hardware++
		}
	}
	return events
}

// Match says which hardware stands for a device that a driver named, and by
// which of the rules of docs/architecture.md that was found.
type Match struct {
	Device   dra.DeviceID
	Hardware device.Device
	Rule     string
}

// Matches matches as a State does that remembers nothing, for those who want
// to know why. Devices without hardware are not in the result, which is in the
// order of the rules.
func Matches(facts Facts) []Match {
	hardware := make([]device.Device, len(facts.Samples))
	for i, sample := range facts.Samples {
		hardware[i] = sample.Device
	}
	m := newMatching(subjects(facts, nil), hardware, nil)
	var matches []Match
	known := make(map[dra.DeviceID]bool)
	add := func(found map[dra.DeviceID]int, rule string) {
		for _, s := range m.subjects {
			if i, matched := found[s.id]; matched && !known[s.id] {
				known[s.id] = true
				matches = append(matches, Match{Device: s.id, Hardware: hardware[i], Rule: rule})
			}
		}
	}
	for _, r := range rules() {
		m.apply(r)
		add(m.found, r.name)
	}
	m.conflicts()
	add(m.found, ruleConflict)
	add(m.twice, ruleConflict)
	return matches
}

// ruleConflict is what a match is called that several published devices have.
const ruleConflict = "the same identity as another device"
