package node

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// matching pairs subjects with hardware, rule by rule.
type matching struct {
	subjects []subject
	hardware []device.Device
	index    hardwareIndex
	found    map[dra.DeviceID]int // index into hardware
	taken    []bool               // hardware that has a partner
	twice    map[dra.DeviceID]int // further subjects that name hardware with a partner, see conflicts
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

// match finds the hardware of each subject. A rule applies only where it leads
// to exactly one partner on both sides; where several subjects name one
// device, its vendor's own driver goes first. What is known already stays as
// it is. Subjects without a match are not in the result.
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

// open reports whether a subject has no partner yet. What is known may be of
// devices that are not among the subjects.
func (m *matching) open() bool {
	return slices.ContainsFunc(m.subjects, func(s subject) bool { return !m.matched(s) })
}

func (m *matching) matched(s subject) bool {
	_, matched := m.found[s.id]
	return matched
}

func (m *matching) apply(r rule) {
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
	for i, candidates := range r.partners(keys, m.hardware, m.index, m.taken) {
		if s, ok := only(m.subjects, candidates, m.hardware[i], m.index); ok && !m.matched(s) && !m.taken[i] {
			m.found[s.id], m.taken[i] = i, true
		}
	}
}

// conflicts is for claimed subjects that are still without a partner because
// others, of their driver or of another one, name the same hardware by its
// identity. Where none of these is its partner, the first of them becomes it.
// Where a claimed one is, both are: two claims hold that hardware, whatever
// their drivers believe, and neither is alone on it.
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
		i, named := m.named(s)
		switch {
		case !named:
		case !m.taken[i]:
			m.found[s.id], m.taken[i] = i, true
		case m.claimedPartner(i):
			m.twice[s.id] = i
		}
	}
}

// named is the one device whose identity the subject names.
func (m *matching) named(s subject) (int, bool) {
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
		if s.published.IsPartition() == d.IsPartition() && !elsewhere(s, d, m.index) && !another {
			return at, true
		}
	}
	return 0, false
}

// claimedPartner reports whether a claim here names the partner of a device.
// A partner that is remembered is held, or it would have been forgotten.
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

// partners returns, for each device that the rule counts, the subjects whose
// key leads to it and to no other device.
func (r rule) partners(keys map[string][]int, hardware []device.Device, index hardwareIndex, taken []bool) [][]int {
	owner := make(map[string]int, len(hardware))
	const several = -1
	for i, d := range hardware {
		if taken[i] && !r.exclusion {
			continue
		}
		for _, key := range r.hardware(d, index) {
			if earlier, twice := owner[key]; twice && earlier != i {
				owner[key] = several
				continue
			}
			owner[key] = i
		}
	}
	partners := make([][]int, len(hardware))
	for key, candidates := range keys {
		if i, ok := owner[key]; ok && i != several {
			partners[i] = append(partners[i], candidates...)
		}
	}
	return partners
}

// only picks the one subject that may be the hardware d: the single one, or
// the single one of d's vendor's own driver. A subject of that driver whose
// UUID is another than d's is never d, and no subject is that is somewhere
// else.
func only(subjects []subject, candidates []int, d device.Device, index hardwareIndex) (subject, bool) {
	own := vendors.DriverOf(d.Vendor)
	var any, preferred []subject
	for _, i := range candidates {
		s := subjects[i]
		switch {
		case elsewhere(s, d, index):
		case s.id.Driver != own:
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
