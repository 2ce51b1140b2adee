package node

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// A subject is a device that a driver named, in a slice, an allocation or
// the kubelet's list, with all the evidence of which hardware it is.
type subject struct {
	id          dra.DeviceID
	published   dra.PublishedDevice // zero but for ID where no slice has it
	isPublished bool
	status      dra.DeviceStatus // what the driver wrote into a claim's status
	nodes       []string         // device nodes of its own CDI entry
	claimed     bool             // a claim here names it, or the kubelet lists it
	before      string           // the hardware that it was when its slice was there, as hardwareUUID; empty: not known
}

// A rule leads from a subject to hardware: both have the same key. An empty
// key means that the rule does not apply. A rule of exclusion says that two
// are partners because nothing else can be meant, so it counts those that have
// a partner already, too.
type rule struct {
	name      string
	subject   func(subject) string
	hardware  func(device.Device, hardwareIndex) []string
	exclusion bool
	identity  bool // the key is the identity of the hardware itself
}

// hardwareIndex finds parents by UUID.
type hardwareIndex map[string]device.Device

// rules are asked in this order; see docs/architecture.md.
func rules() []rule {
	return []rule{
		{name: "uuid", subject: func(s subject) string { return s.published.UUID }, hardware: deviceUUID, identity: true},
		{name: "placement", subject: subjectPlacement, hardware: devicePlacement},
		{name: "profile", subject: subjectProfile, hardware: deviceProfile, exclusion: true},
		{name: "pci", subject: subjectAddress, hardware: deviceAddress, identity: true},
		{name: "status uuid", subject: func(s subject) string { return s.status.UUID }, hardware: deviceUUID, identity: true},
		{name: "status pci", subject: subjectStatusAddress, hardware: deviceAddress, identity: true},
		{name: "gpu instance", subject: subjectInstance, hardware: deviceInstance},
		{name: "device node", subject: subjectNode, hardware: deviceNodes},
		{name: "published before", subject: subjectBefore, hardware: deviceBefore, identity: true},
		{name: "name", subject: subjectName, hardware: deviceName, identity: true},
	}
}

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

// contradicts reports whether two UUIDs are of different devices. One that
// spells where a partition is says nothing of the partition's own.
func contradicts(published, hardware string) bool {
	return published != "" && hardware != "" && published != hardware && spellsPlace(published) == spellsPlace(hardware)
}

// deviceUUID is how the device's UUID is spelled: that of a partition in two
// ways.
func deviceUUID(d device.Device, _ hardwareIndex) []string {
	keys := key(d.UUID)
	if spelled := placeUUID(d); spelled != "" && spelled != d.UUID {
		keys = append(keys, spelled)
	}
	return keys
}

func deviceAddress(d device.Device, _ hardwareIndex) []string {
	if d.IsPartition() {
		return nil
	}
	return key(d.PCIBusID)
}

func subjectAddress(s subject) string {
	if s.published.IsPartition() {
		return ""
	}
	return s.published.PCIAddress
}

// subjectStatusAddress is what the driver wrote into the claim: of a
// partition, that is its parent's address.
func subjectStatusAddress(s subject) string {
	if s.published.IsPartition() {
		return ""
	}
	return s.status.PCIAddress
}

// subjectNode is the one device node of a whole device, or the place to which
// the capability nodes of a partition give access. Beside /dev/nvidia<N> the
// nodes under /dev/dri are of the same GPU, and are not asked.
func subjectNode(s subject) string {
	if at, told := placeOf(s.nodes); told {
		return at.String()
	}
	if s.published.IsPartition() {
		return ""
	}
	isNVIDIA := func(path string) bool { return strings.HasPrefix(path, "/dev/nvidia") && numberedNode(path) }
	ofNVIDIA := slices.ContainsFunc(s.nodes, isNVIDIA)
	node := ""
	for _, path := range s.nodes {
		switch {
		case strings.HasPrefix(path, capabilityNodes):
			return ""
		case !numberedNode(path) || ofNVIDIA && strings.HasPrefix(path, "/dev/dri/"):
		case node != "":
			return ""
		default:
			node = path
		}
	}
	return node
}

// numberedNode reports whether a path names one device, unlike /dev/nvidiactl,
// /dev/kfd, /dev/infiniband/rdma_cm and other nodes that all devices share.
func numberedNode(path string) bool {
	for _, prefix := range []string{"/dev/nvidia", "/dev/dri/renderD", "/dev/infiniband/uverbs"} {
		if number, ok := strings.CutPrefix(path, prefix); ok {
			_, err := strconv.ParseUint(number, 10, 16)
			return err == nil
		}
	}
	return false
}

func deviceNodes(d device.Device, index hardwareIndex) []string {
	if !d.IsPartition() {
		return d.Nodes
	}
	parent, known := index[d.ParentUUID]
	if !known || parent.Minor == device.Unknown || !placed(d) {
		return nil
	}
	return key(place{parent.Minor, d.GPUInstance, d.ComputeInstance}.String())
}

// subjectBefore and deviceBefore lead to the hardware that a device was when
// its driver published it: slices vanish while a driver is down, and a claim
// that was allocated before may come to the node then.
func subjectBefore(s subject) string {
	if s.isPublished || !s.claimed {
		return ""
	}
	return s.before
}

func deviceBefore(d device.Device, _ hardwareIndex) []string { return key(hardwareUUID("", d)) }

// subjectName applies the naming rules of drivers, for devices that no slice
// describes: gpu.nvidia.com calls a GPU gpu-<minor> and a partition
// gpu-<minor>-mig-<profile>-<giProfileID>-<placementStart>; gpu.amd.com calls
// a GPU gpu-<card>-<render minor>.
func subjectName(s subject) string {
	if s.isPublished {
		return ""
	}
	parts := strings.Split(s.id.Name, "-")
	switch {
	case len(parts) < 2 || parts[0] != "gpu" || !allNumbers(parts[1:2]):
		return ""
	case s.id.Driver == vendors.NVIDIADriver && len(parts) == 2:
		return "minor " + parts[1]
	case s.id.Driver == vendors.NVIDIADriver && len(parts) == 6 && parts[2] == "mig" && allNumbers(parts[4:]):
		return fmt.Sprintf("minor %s mig %s %s", parts[1], parts[3], parts[5])
	case s.id.Driver == vendors.AMDDriver && len(parts) == 3 && allNumbers(parts[2:]):
		return "render " + parts[2]
	default:
		return ""
	}
}

func deviceName(d device.Device, index hardwareIndex) []string {
	switch {
	case d.IsPartition():
		parent, known := index[d.ParentUUID]
		if !known || parent.Minor == device.Unknown || d.Placement == device.Unknown {
			return nil
		}
		return key(fmt.Sprintf("minor %d mig %s %d", parent.Minor, plainProfile(d.Profile), d.Placement))
	case d.Vendor == vendors.NVIDIA && d.Minor != device.Unknown:
		return key("minor " + strconv.Itoa(d.Minor))
	case d.Vendor == vendors.AMD && d.RenderMinor != device.Unknown:
		return key("render " + strconv.Itoa(d.RenderMinor))
	default:
		return nil
	}
}

func allNumbers(parts []string) bool {
	for _, part := range parts {
		if _, err := strconv.ParseUint(part, 10, 32); err != nil {
			return false
		}
	}
	return len(parts) > 0
}

func key(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
