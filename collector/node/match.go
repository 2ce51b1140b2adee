package node

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// matcher determines which hardware each device is that a driver named in a
// slice, an allocation or the kubelet's List.
type matcher struct {
	node      string
	devices   *devices
	published map[dra.DeviceID]*dra.PublishedDevice // in this step's slices
	known     map[dra.DeviceID]string               // last known match of devices that are held
	before    map[dra.DeviceID]string               // hardware of what drivers published last, as hardwareUUID("") names it
}

func newMatcher(node string, devices *devices) *matcher {
	return &matcher{
		node: node, devices: devices,
		published: make(map[dra.DeviceID]*dra.PublishedDevice),
		known:     make(map[dra.DeviceID]string),
		before:    make(map[dra.DeviceID]string),
	}
}

// update matches named devices with hardware again, and returns how each device
// is identified. A match is kept while a claim holds the device, because slices
// vanish when a driver is down. held is what claims hold now.
func (m *matcher) update(facts Facts, held map[dra.DeviceID]bool) resolve {
	maps.DeleteFunc(m.known, func(id dra.DeviceID, _ string) bool { return !held[id] })
	var uuids []string
	var hardware []device.Device
	for _, d := range m.devices.all() {
		if d.present {
			uuids, hardware = append(uuids, d.uuid), append(hardware, d.device)
		}
	}
	named := subjects(facts, held)
	for i := range named {
		named[i].before = m.before[named[i].id]
	}
	pairs := match(named, hardware, m.kept(facts.Cluster, uuids))
	m.keep(pairs, uuids)
	m.keepBefore(pairs)
	m.publish(facts.Cluster, pairs, uuids)
	return func(id dra.DeviceID) string {
		if uuid, known := m.known[id]; known {
			return uuid
		}
		return unknownUUID(m.node, id)
	}
}

// kept is the hardware of held devices whose slices are gone: no other named
// device can be matched with it.
func (m *matcher) kept(cluster Cluster, uuids []string) map[dra.DeviceID]int {
	published := make(map[dra.DeviceID]bool, len(cluster.Published))
	for i := range cluster.Published {
		published[cluster.Published[i].ID] = true
	}
	kept := make(map[dra.DeviceID]int)
	for id, uuid := range m.known {
		if i, present := slices.BinarySearch(uuids, uuid); present && !published[id] {
			kept[id] = i
		}
	}
	return kept
}

// keep keeps the matches that were found, and removes earlier matches of the
// same hardware.
func (m *matcher) keep(pairs *matching, uuids []string) {
	now, taken := make(map[dra.DeviceID]bool, len(pairs.found)), make(map[string]bool, len(pairs.found))
	for _, found := range []map[dra.DeviceID]int{pairs.found, pairs.twice} {
		for id, i := range found {
			m.known[id] = uuids[i]
			now[id], taken[uuids[i]] = true, true
		}
	}
	maps.DeleteFunc(m.known, func(id dra.DeviceID, uuid string) bool { return taken[uuid] && !now[id] })
}

// keepBefore keeps which hardware each published device is. It removes what a
// pool has published before as soon as the pool publishes anything, and the
// earlier names of hardware that is published again: so there is at most one
// earlier publication of each device.
func (m *matcher) keepBefore(pairs *matching) {
	type pool struct{ driver, name string }
	there, found := make(map[pool]bool), make(map[dra.DeviceID]bool, len(pairs.subjects))
	again := make(map[string]bool, len(pairs.subjects))
	for i := range pairs.subjects {
		sub := &pairs.subjects[i]
		if !sub.isPublished {
			continue
		}
		there[pool{sub.id.Driver, sub.id.Pool}] = true
		at, matched := pairs.found[sub.id]
		if !matched {
			continue
		}
		hardware := hardwareUUID("", pairs.hardware[at])
		found[sub.id], again[hardware] = true, true
		if sub.before != hardware {
			m.before[sub.id] = hardware
		}
	}
	maps.DeleteFunc(m.before, func(id dra.DeviceID, hardware string) bool {
		return !found[id] && (there[pool{id.Driver, id.Pool}] || again[hardware])
	})
}

// publish gives each device the name under which its driver publishes it.
func (m *matcher) publish(cluster Cluster, pairs *matching, uuids []string) {
	clear(m.published)
	for i := range cluster.Published {
		m.published[cluster.Published[i].ID] = &cluster.Published[i]
	}
	for _, d := range m.devices.all() {
		d.isPublished, d.inSlice = false, false
	}
	for i := range pairs.subjects {
		id := pairs.subjects[i].id
		if at, matched := pairs.found[id]; matched {
			m.name(m.devices.get(uuids[at]), id)
		}
	}
}

// name gives a device the name under which its driver publishes it, unless it
// has another one.
func (m *matcher) name(d *deviceState, id dra.DeviceID) {
	if !d.isPublished || d.published.ID == id {
		d.publishAs(id, m.published[id])
	}
}

// addHeld adds the devices of claims whose hardware is not known, and names them.
func (m *matcher) addHeld(views []claimView, now clock.Instant) {
	for i := range views {
		for _, d := range views[i].devices {
			m.name(m.devices.held(d.uuid, now), d.id)
		}
	}
}

// subjects returns every device that a driver named, with the evidence. held is
// what claims hold, though the facts may not name it now.
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
