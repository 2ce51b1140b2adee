package node

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// matcher determines which hardware each device is that a driver named in a
// slice, an allocation or the kubelet's List.
type matcher struct {
	node      string
	each      bool                                  // see Config.EachDevice
	published map[dra.DeviceID]*dra.PublishedDevice // in this step's slices
	known     map[dra.DeviceID]string               // last known match of devices that are held
	before    map[dra.DeviceID]string               // hardware of what drivers published last, as hardwareUUID("") names it

	matched matchedInputs
	pairs   *matching // of matched
}

// matchedInputs is everything that a matching follows from. Most changes at the API
// server, such as a pod that ends, leave it as it is.
type matchedInputs struct {
	published listIdentity[dra.PublishedDevice]
	hardware  uint64 // changes of the hardware
	kept      map[dra.DeviceID]int
	subjects  []subject
	claimed   bool // whether subjects are claimed makes a difference: one has no partner
}

// equal reports whether other inputs have the same matching.
func (m *matchedInputs) equal(other *matchedInputs) bool {
	return m.published == other.published && m.hardware == other.hardware && maps.Equal(m.kept, other.kept) &&
		slices.EqualFunc(m.subjects, other.subjects, func(a, b subject) bool {
			return a.id == b.id && a.isPublished == b.isPublished && (a.claimed == b.claimed || !m.claimed) && a.before == b.before &&
				a.status == b.status && slices.Equal(a.nodes, b.nodes)
		})
}

func newMatcher(config Config) *matcher {
	return &matcher{
		node: config.Node, each: config.EachDevice,
		published: make(map[dra.DeviceID]*dra.PublishedDevice),
		known:     make(map[dra.DeviceID]string),
		before:    make(map[dra.DeviceID]string),
	}
}

// update matches named devices with hardware again, and returns how each device
// is identified. A match is kept while a claim holds the device, because slices
// vanish when a driver is down. held is what claims hold now.
func (m *matcher) update(devices *devices, facts Facts, held map[dra.DeviceID]bool) resolve {
	maps.DeleteFunc(m.known, func(id dra.DeviceID, _ string) bool { return !held[id] })
	var uuids []string
	for _, d := range devices.all() {
		if d.present {
			uuids = append(uuids, d.uuid)
		}
	}
	pairs := m.match(devices, facts, held, uuids)
	m.keep(pairs, uuids)
	m.keepBefore(pairs)
	m.publish(devices, facts.Cluster, pairs, uuids)
	return func(id dra.DeviceID) (uuid string, unread bool) { return m.identify(devices, id) }
}

// identify is a resolve. A device of a driver whose devices a source reads is
// not unread, whether it is matched or not.
func (m *matcher) identify(devices *devices, id dra.DeviceID) (uuid string, unread bool) {
	uuid = m.matchedUUID(id)
	if m.each || uuid != unknownUUID(m.node, id) || vendors.IsMeasured(id.Driver) {
		return uuid, false
	}
	d := devices.get(uuid)
	return uuid, (d == nil || !d.hardware) && !devices.isNamed(id)
}

// isNamed reports whether a sample of this step is of the device with a published name.
func (s *devices) isNamed(id dra.DeviceID) bool {
	return slices.ContainsFunc(s.named, func(sample device.Sample) bool { return names(sample.Device.Published, id) })
}

// matchedUUID returns how a named device is identified: by its hardware, if that is known.
func (m *matcher) matchedUUID(id dra.DeviceID) string {
	if uuid, ok := m.known[id]; ok {
		return uuid
	}
	return unknownUUID(m.node, id)
}

// match matches again if anything has changed that the matching follows from.
func (m *matcher) match(devices *devices, facts Facts, held map[dra.DeviceID]bool, uuids []string) *matching {
	inputs := matchedInputs{
		published: newListIdentity(facts.Cluster.Published),
		hardware:  devices.changes,
		kept:      m.kept(facts.Cluster, uuids),
		subjects:  subjects(facts, held),
	}
	for i := range inputs.subjects {
		inputs.subjects[i].before = m.before[inputs.subjects[i].id]
	}
	if m.pairs != nil && m.matched.equal(&inputs) {
		return m.pairs
	}
	hardware := make([]device.Device, len(uuids))
	for i, uuid := range uuids {
		hardware[i] = devices.get(uuid).device
	}
	m.pairs = match(inputs.subjects, hardware, inputs.kept)
	inputs.claimed = m.pairs.open()
	m.matched = inputs
	return m.pairs
}

// kept is the hardware of held devices whose slices are gone: no other named
// device can be matched with it.
func (m *matcher) kept(cluster APIFacts, uuids []string) map[dra.DeviceID]int {
	published := make(map[dra.DeviceID]bool, len(cluster.Published))
	for i := range cluster.Published {
		published[cluster.Published[i].ID] = true
	}
	kept := make(map[dra.DeviceID]int)
	for id, uuid := range m.known {
		if i, ok := slices.BinarySearch(uuids, uuid); ok && !published[id] {
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
		at, ok := pairs.found[sub.id]
		if !ok {
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
func (m *matcher) publish(devices *devices, cluster APIFacts, pairs *matching, uuids []string) {
	clear(m.published)
	for i := range cluster.Published {
		m.published[cluster.Published[i].ID] = &cluster.Published[i]
	}
	for _, d := range devices.all() {
		d.isPublished, d.inSlice = false, false
	}
	for i := range pairs.subjects {
		id := pairs.subjects[i].id
		if at, ok := pairs.found[id]; ok {
			m.name(devices.get(uuids[at]), id)
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

// addNamed applies the samples of devices that are identified by published names:
// to the hardware that matches the published device, else to a device of its own.
// A name without a pool is that of the one published device of the driver with this
// name; if there is none, or several, the sample is of no published device.
func (m *matcher) addNamed(devices *devices, now clock.Instant) {
	var pools map[dra.DeviceID]string
	for _, sample := range devices.named {
		name := sample.Device.Published
		id := dra.DeviceID{Driver: name.Driver, Pool: name.Pool, Name: name.Device}
		if id.Pool == "" {
			if pools == nil {
				pools = m.pools()
			}
			id.Pool = pools[id]
		}
		uuid := m.matchedUUID(id)
		d := devices.addNamed(uuid, sample, now)
		if m.published[id] != nil {
			m.name(d, id)
		}
		if parent := sample.Device.PublishedParent; parent != "" && d.device.Published == name && d.device.ParentUUID == "" {
			d.device.ParentUUID = m.matchedUUID(dra.DeviceID{Driver: id.Driver, Pool: id.Pool, Name: parent})
		}
	}
}

// pools returns the pool of each published device, by its id without the pool;
// empty where several pools of a driver have a device of this name.
func (m *matcher) pools() map[dra.DeviceID]string {
	pools := make(map[dra.DeviceID]string, len(m.published))
	for id := range m.published {
		pool := id.Pool
		id.Pool = ""
		if _, ok := pools[id]; ok {
			pool = ""
		}
		pools[id] = pool
	}
	return pools
}

// addHeld adds the devices of claims whose hardware is not known, and names them.
func (m *matcher) addHeld(devices *devices, views []claimView, now clock.Instant) {
	for i := range views {
		for _, d := range views[i].devices {
			if held := devices.held(d.uuid, now); !d.bundled {
				m.name(held, d.id)
			}
		}
		for uuid := range views[i].bundles {
			m.describe(devices.get(uuid), &views[i])
		}
	}
}

// describe gives a bundle its driver, and the model if that is one. While none of its
// devices is published, the model is kept.
func (m *matcher) describe(bundle *deviceState, view *claimView) {
	var models []string
	for _, d := range view.devices {
		if d.uuid != bundle.uuid {
			continue
		}
		bundle.published.ID.Driver = d.id.Driver
		if published := m.published[d.id]; published != nil && !slices.Contains(models, published.Model) {
			models = append(models, published.Model)
		}
	}
	switch len(models) {
	case 0:
	case 1:
		bundle.published.Model = models[0]
	default:
		bundle.published.Model = ""
	}
}

// subjects returns every device that a driver named, with the evidence. held is
// what claims hold, though the facts may not name it now.
func subjects(facts Facts, held map[dra.DeviceID]bool) []subject {
	list := make([]subject, 0, len(facts.Cluster.Published)+8)
	index := make(map[dra.DeviceID]int, len(facts.Cluster.Published)+8)
	unpublished := dra.PublishedDevice{Placement: dra.PlacementUnknown}
	add := func(id dra.DeviceID) *subject {
		i, ok := index[id]
		if !ok {
			i = len(list)
			index[id] = i
			list = append(list, subject{id: id, published: &unpublished})
		}
		return &list[i]
	}
	for i := range facts.Cluster.Published {
		p := &facts.Cluster.Published[i]
		s := add(p.ID)
		s.published, s.isPublished = p, true
	}
	for i := range facts.Cluster.Claims {
		claim := &facts.Cluster.Claims[i]
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
		if i, ok := index[id]; ok {
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

// addListed adds the devices of the kubelet's List, with the device nodes of their
// own CDI entries.
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

// Match is the hardware of a device that a driver named, and the rule of
// docs/architecture.md by which it was found.
type Match struct {
	Device   dra.DeviceID
	Hardware device.Device
	Rule     string
}

// Matches matches as a new State does, and returns the rule of each match.
// Devices without hardware are not in the result, which is in the order of the
// rules.
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
			if i, ok := found[s.id]; ok && !known[s.id] {
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
	for _, s := range m.subjects {
		i := slices.IndexFunc(hardware, func(d device.Device) bool { return names(d.Published, s.id) })
		if i >= 0 && !known[s.id] {
			matches = append(matches, Match{Device: s.id, Hardware: hardware[i], Rule: "published name"})
		}
	}
	return matches
}

// names reports whether a name is that of a device. It may lack the pool.
func names(name device.PublishedName, id dra.DeviceID) bool {
	return name.Driver == id.Driver && name.Device == id.Name && (name.Pool == "" || name.Pool == id.Pool)
}

// ruleConflict is the rule of a match that several published devices have.
const ruleConflict = "the same identity as another device"

// matching pairs subjects with hardware, rule by rule.
type matching struct {
	subjects []subject
	hardware []device.Device
	index    hardwareIndex
	found    map[dra.DeviceID]int // index into hardware
	taken    []bool               // hardware that has a partner
	twice    map[dra.DeviceID]int // further subjects that identify hardware with a partner, see conflicts
}

func newMatching(subjects []subject, hardware []device.Device, known map[dra.DeviceID]int) *matching {
	m := &matching{
		subjects: subjects, hardware: hardware,
		index: make(hardwareIndex, len(hardware)),
		found: make(map[dra.DeviceID]int, len(subjects)),
		taken: make([]bool, len(hardware)),
		twice: make(map[dra.DeviceID]int),
	}
	for _, d := range hardware {
		if d.UUID != "" {
			m.index[d.UUID] = d
		}
	}
	for id, i := range known {
		m.found[id], m.taken[i] = i, true
	}
	return m
}

// match finds the hardware of each subject. A rule applies only if it leads to
// exactly one partner on both sides; if it leads from several subjects to one
// device, that of the device's own vendor's driver is used. known are matches that
// stay. Subjects without a match are not in the result.
func match(subjects []subject, hardware []device.Device, known map[dra.DeviceID]int) *matching {
	m := newMatching(subjects, hardware, known)
	for _, r := range rules() {
		if !m.open() {
			break
		}
		m.apply(r)
	}
	m.conflicts()
	return m
}

// open reports whether a subject has no partner yet. Known matches may be of
// devices that are not among the subjects.
func (m *matching) open() bool {
	return slices.ContainsFunc(m.subjects, func(s subject) bool { return !m.matched(s) })
}

func (m *matching) matched(s subject) bool {
	_, ok := m.found[s.id]
	return ok
}

// apply applies a rule.
func (m *matching) apply(r matchRule) {
	keys := make(map[string][]int, len(m.subjects))
	for i, s := range m.subjects {
		if s.published.Passthrough || m.matched(s) && !r.exclusion {
			continue
		}
		if key := r.subject(s); key != "" {
			keys[key] = append(keys[key], i)
		}
	}
	if len(keys) == 0 {
		return
	}
	for i, candidates := range m.partners(r, keys) {
		if s, ok := m.only(candidates, m.hardware[i]); ok && !m.matched(s) && !m.taken[i] {
			m.found[s.id], m.taken[i] = i, true
		}
	}
}

// conflicts is for claimed subjects that still have no partner because others, of
// the same driver or of another one, identify the same hardware. If none of these
// is its partner, the first of them becomes it. If a claimed one is, both are: two
// claims hold that hardware, and neither of them is exclusive.
func (m *matching) conflicts() {
	var open []subject
	for _, s := range m.subjects {
		if s.claimed && !s.published.Passthrough && !m.matched(s) {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		return
	}
	slices.SortFunc(open, func(a, b subject) int { return compareDevices(a.id, b.id) })
	for _, s := range open {
		i, identified := m.identified(s)
		switch {
		case !identified:
		case !m.taken[i]:
			m.found[s.id], m.taken[i] = i, true
		case m.claimedPartner(i):
			m.twice[s.id] = i
		}
	}
}

// identified returns the one device whose identity the subject has.
func (m *matching) identified(s subject) (int, bool) {
	for _, r := range rules() {
		key := r.subject(s)
		if !r.identity || key == "" {
			continue
		}
		at, several := -1, false
		for i, d := range m.hardware {
			if slices.Contains(r.hardware(d, m.index), key) {
				at, several = i, at >= 0
			}
		}
		if at < 0 || several {
			continue
		}
		d := m.hardware[at]
		another := s.id.Driver == vendors.DriverOf(d.Vendor) && contradicts(s.published.UUID, d.UUID)
		if (!s.isPublished || s.published.IsPartition() == d.IsPartition()) && !elsewhere(s, d, m.index) && !another {
			return at, true
		}
	}
	return 0, false
}

// claimedPartner reports whether the partner of a device is claimed. A partner that
// was known before is held, or it would have been removed.
func (m *matching) claimedPartner(device int) bool {
	for id, i := range m.found {
		if i != device {
			continue
		}
		at := slices.IndexFunc(m.subjects, func(s subject) bool { return s.id == id })
		return at < 0 || m.subjects[at].claimed
	}
	return false
}

// partners returns, for each device that the rule counts, the subjects whose key
// leads to it and to no other device.
func (m *matching) partners(r matchRule, keys map[string][]int) [][]int {
	byKey := make(map[string]int, len(m.hardware))
	const several = -1
	for i, d := range m.hardware {
		if m.taken[i] && !r.exclusion {
			continue
		}
		for _, key := range r.hardware(d, m.index) {
			if earlier, ok := byKey[key]; ok && earlier != i {
				byKey[key] = several
				continue
			}
			byKey[key] = i
		}
	}
	partners := make([][]int, len(m.hardware))
	for key, candidates := range keys {
		if i, ok := byKey[key]; ok && i != several {
			partners[i] = append(partners[i], candidates...)
		}
	}
	return partners
}

// only returns the one subject that may be the hardware d: the single one of the
// driver of d's vendor, or the single one if that driver has none. A subject of
// that driver with another UUID than d's is never d, and no subject is that is at
// another place.
func (m *matching) only(candidates []int, d device.Device) (subject, bool) {
	driver := vendors.DriverOf(d.Vendor)
	var any, preferred []subject
	for _, i := range candidates {
		s := m.subjects[i]
		switch {
		case elsewhere(s, d, m.index):
		case s.id.Driver != driver:
			any = append(any, s)
		case !contradicts(s.published.UUID, d.UUID):
			preferred = append(preferred, s)
		}
	}
	switch {
	case len(preferred) == 1:
		return preferred[0], true
	case len(preferred) == 0 && len(any) == 1:
		return any[0], true
	default:
		return subject{}, false
	}
}

func compareDevices(a, b dra.DeviceID) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
}
