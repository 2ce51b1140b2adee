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

// subject is a device that a driver named, in a slice, an allocation or the
// kubelet's List, with all the evidence of which hardware it is.
type subject struct {
	id          dra.DeviceID
	published   *dra.PublishedDevice // empty if no slice has it; must not be changed
	isPublished bool
	status      dra.DeviceStatus // what the driver wrote into a claim's status
	nodes       []string         // device nodes of its own CDI entry
	claimed     bool             // a claim of this node has it, or the kubelet lists it
	before      string           // the hardware that it was when a slice had it, as hardwareUUID; empty: not known
}

// matchRule leads from a subject to hardware: both have the same key. An empty key means
// that the rule does not apply. A rule of exclusion makes two partners because
// there is no other, so it also counts those that have a partner already.
type matchRule struct {
	name      string
	subject   func(subject) string
	hardware  func(device.Device, hardwareIndex) []string
	exclusion bool
	identity  bool // the key is the identity of the hardware itself
}

// hardwareIndex finds parents by UUID.
type hardwareIndex map[string]device.Device

// rules returns the rules in the order in which they are applied; see
// docs/architecture.md.
func rules() []matchRule {
	return []matchRule{
		{name: "uuid", subject: func(s subject) string { return s.published.UUID }, hardware: deviceUUID, identity: true},
		{name: "placement", subject: subjectPlacement, hardware: devicePlacement},
		{name: "profile", subject: subjectProfile, hardware: deviceProfile, exclusion: true},
		{name: "pci", subject: subjectAddress, hardware: deviceAddress, identity: true},
		{name: "status uuid", subject: func(s subject) string { return s.status.UUID }, hardware: deviceUUID, identity: true},
		{name: "status pci", subject: subjectStatusAddress, hardware: deviceAddress, identity: true},
		{name: "gpu instance", subject: subjectInstance, hardware: deviceInstance},
		{name: "device node", subject: subjectNode, hardware: deviceNodes, identity: true},
		{name: "published before", subject: subjectBefore, hardware: deviceBefore, identity: true},
		{name: "name", subject: subjectName, hardware: deviceName, identity: true},
	}
}

// contradicts reports whether two UUIDs are of different devices. One that spells
// the place of a partition cannot be compared with the partition's own.
func contradicts(published, hardware string) bool {
	return published != "" && hardware != "" && published != hardware && spellsPlace(published) == spellsPlace(hardware)
}

// deviceUUID returns the spellings of the device's UUID: a partition has two.
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

// subjectStatusAddress returns the address in the claim's status: that of a
// partition is its parent's.
func subjectStatusAddress(s subject) string {
	if s.published.IsPartition() {
		return ""
	}
	return s.status.PCIAddress
}

// subjectNode returns the one device node of a whole device, or the place to which
// the capability nodes of a partition give access. Nodes under /dev/dri beside
// /dev/nvidia<N> are of the same GPU, and do not count; nor does a card beside its
// render node.
func subjectNode(s subject) string {
	if at, ok := parsePlace(s.nodes); ok {
		return at.String()
	}
	if s.published.IsPartition() {
		return ""
	}
	isNVIDIA := func(path string) bool { return strings.HasPrefix(path, "/dev/nvidia") && numberedNode(path) }
	ofNVIDIA := slices.ContainsFunc(s.nodes, isNVIDIA)
	renders := slices.ContainsFunc(s.nodes, func(path string) bool { return strings.HasPrefix(path, "/dev/dri/renderD") })
	node := ""
	for _, path := range s.nodes {
		switch {
		case strings.HasPrefix(path, capabilityNodes):
			return ""
		case !numberedNode(path) || ofNVIDIA && strings.HasPrefix(path, "/dev/dri/") || renders && strings.HasPrefix(path, "/dev/dri/card"):
		case node != "":
			return ""
		default:
			node = path
		}
	}
	return node
}

func deviceNodes(d device.Device, index hardwareIndex) []string {
	if !d.IsPartition() {
		return wholeNodes(d)
	}
	parent, ok := index[d.ParentUUID]
	if !ok || parent.Minor == device.Unknown || !placed(d) {
		return nil
	}
	return key(place{parent.Minor, d.GPUInstance, d.ComputeInstance}.String())
}

// wholeNodes returns the files of a whole device: those that its source reports, and
// those of its minor numbers.
func wholeNodes(d device.Device) []string {
	if d.IsPartition() {
		return nil
	}
	nodes := slices.Clone(d.Nodes)
	if path := fmt.Sprintf("/dev/nvidia%d", d.Minor); d.Vendor == vendors.NVIDIA && d.Minor != device.Unknown && !slices.Contains(nodes, path) {
		nodes = append(nodes, path)
	}
	if path := fmt.Sprintf("/dev/dri/renderD%d", d.RenderMinor); d.RenderMinor != device.Unknown && !slices.Contains(nodes, path) {
		nodes = append(nodes, path)
	}
	return nodes
}

// subjectBefore and deviceBefore lead to the hardware that a device was when its
// driver published it: slices vanish while a driver is down, and a pod of a claim
// that was allocated before may be bound to the node then.
func subjectBefore(s subject) string {
	if s.isPublished || !s.claimed {
		return ""
	}
	return s.before
}

func deviceBefore(d device.Device, _ hardwareIndex) []string { return key(hardwareUUID("", d)) }

// subjectName applies the naming rules of drivers to devices that no slice has:
// gpu.nvidia.com names a GPU gpu-<minor>, and a partition
// gpu-<minor>-mig-<profile>-<giProfileID>-<placementStart>; gpu.amd.com names a GPU
// gpu-<card>-<render minor>.
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
		parent, ok := index[d.ParentUUID]
		if !ok || parent.Minor == device.Unknown || d.Placement == device.Unknown {
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

// elsewhere reports whether a subject is certainly not the hardware d, because it
// has another parent or another place on it. An equal UUID proves the place.
func elsewhere(s subject, d device.Device, index hardwareIndex) bool {
	p := s.published
	if p.ParentUUID != "" && d.ParentUUID != "" && p.ParentUUID != d.ParentUUID {
		return true
	}
	if !d.IsPartition() || p.UUID != "" && p.UUID == d.UUID {
		return false
	}
	if p.Placement != dra.PlacementUnknown && d.Placement != device.Unknown && p.Placement != d.Placement {
		return true
	}
	at, ok := parsePlace(s.nodes)
	if !ok || !placed(d) {
		return false
	}
	parent, ok := index[d.ParentUUID]
	return at.gpu != d.GPUInstance || at.compute != d.ComputeInstance ||
		ok && parent.Minor != device.Unknown && parent.Minor != at.minor
}

// subjectPlacement returns where on its GPU a partition without a UUID begins, as
// its driver publishes it.
func subjectPlacement(s subject) string {
	p := s.published
	if p.UUID != "" || p.ParentUUID == "" || p.Placement == dra.PlacementUnknown {
		return ""
	}
	return placementKey(p.ParentUUID, p.Profile, p.Placement)
}

func devicePlacement(d device.Device, _ hardwareIndex) []string {
	if !d.IsPartition() || d.Placement == device.Unknown {
		return nil
	}
	return key(placementKey(d.ParentUUID, d.Profile, d.Placement))
}

func placementKey(parent, profile string, placement int) string {
	return profileKey(parent, profile) + "|" + strconv.Itoa(placement)
}

// subjectProfile and deviceProfile lead to a partition that is the only one of its
// profile on its GPU.
func subjectProfile(s subject) string {
	if s.published.ParentUUID == "" || s.published.Profile == "" {
		return ""
	}
	return profileKey(s.published.ParentUUID, s.published.Profile)
}

func deviceProfile(d device.Device, _ hardwareIndex) []string {
	if !d.IsPartition() || d.Profile == "" {
		return nil
	}
	return key(profileKey(d.ParentUUID, d.Profile))
}

func profileKey(parent, profile string) string { return parent + "|" + plainProfile(profile) }

// subjectInstance returns the place to which the nodes of a partition give access,
// on the parent that its driver publishes: the minor number of the parent need not
// be known.
func subjectInstance(s subject) string {
	at, ok := parsePlace(s.nodes)
	if !ok || s.published.ParentUUID == "" {
		return ""
	}
	return instanceKey(s.published.ParentUUID, at.gpu, at.compute)
}

func deviceInstance(d device.Device, _ hardwareIndex) []string {
	if !placed(d) {
		return nil
	}
	return key(instanceKey(d.ParentUUID, d.GPUInstance, d.ComputeInstance))
}

func instanceKey(parent string, gpu, compute int) string {
	return fmt.Sprintf("%s|%d|%d", parent, gpu, compute)
}

// place is where a MIG partition is: the minor number of its GPU, and the ids of
// its GPU instance and compute instance there.
type place struct {
	minor, gpu, compute int
}

func (p place) String() string {
	return fmt.Sprintf("minor %d gpu instance %d compute instance %d", p.minor, p.gpu, p.compute)
}

// capabilityNodes is the path of the device nodes that give access to MIG
// partitions.
const capabilityNodes = "/dev/nvidia-caps/"

// parsePlace returns the partition to which device nodes give access: the nodes of its
// GPU instance and of its compute instance, and perhaps the GPU's own. It returns
// false if they are of several partitions.
func parsePlace(nodes []string) (place, bool) {
	at, instances, computes := place{}, 0, 0
	for _, path := range nodes {
		number, isCapability := strings.CutPrefix(path, capabilityNodes+"nvidia-cap")
		if !isCapability {
			continue
		}
		node, ok := capability(number)
		if !ok {
			return place{}, false
		}
		if instances++; instances > 1 && (node.minor != at.minor || node.gpu != at.gpu) {
			return place{}, false
		}
		at.minor, at.gpu = node.minor, node.gpu
		if node.compute != device.Unknown {
			at.compute = node.compute
			computes++
		}
	}
	return at, computes == 1 && !otherGPU(nodes, at.minor)
}

// capability decodes the number of a capability node. NVIDIA's driver numbers
// them once and for all (/proc/driver/nvidia-caps/mig-minors): 1 and 2 are for
// the management of MIG; then each GPU, by its minor number, has fifteen GPU
// instances, each of which has a node for itself and eight for its compute
// instances. The compute instance is unknown for a node of a GPU instance.
func capability(number string) (place, bool) {
	const first, instances, nodes = 3, 15, 9
	n, err := strconv.ParseUint(number, 10, 20)
	if err != nil || n < first {
		return place{}, false
	}
	at := int(n) - first
	return place{minor: at / (instances * nodes), gpu: at / nodes % instances, compute: at%nodes - 1}, true
}

// otherGPU reports whether a node of a GPU with another minor number is among
// the nodes.
func otherGPU(nodes []string, minor int) bool {
	for _, path := range nodes {
		number, isNVIDIA := strings.CutPrefix(path, "/dev/nvidia")
		if isNVIDIA && numberedNode(path) && number != strconv.Itoa(minor) {
			return true
		}
	}
	return false
}

// placeUUID returns NVIDIA's older spelling of a partition's UUID, which is its
// place: MIG-<UUID of the GPU>/<GPU instance>/<compute instance>; empty if the place
// is not known.
func placeUUID(d device.Device) string {
	if !placed(d) {
		return ""
	}
	return fmt.Sprintf("MIG-%s/%d/%d", d.ParentUUID, d.GPUInstance, d.ComputeInstance)
}

// spellsPlace reports whether a UUID is one of the older spelling.
func spellsPlace(uuid string) bool { return strings.HasPrefix(uuid, "MIG-GPU-") }

// numberedNode reports whether a path names one device, unlike /dev/nvidiactl,
// /dev/kfd, /dev/infiniband/rdma_cm and other nodes that all devices share.
func numberedNode(path string) bool {
	for _, prefix := range []string{"/dev/nvidia", "/dev/dri/renderD", "/dev/dri/card", "/dev/infiniband/uverbs", "/dev/accel", "/dev/accel/accel", "/dev/neuron"} {
		if number, ok := strings.CutPrefix(path, prefix); ok {
			if _, err := strconv.ParseUint(number, 10, 16); err == nil {
				return true
			}
		}
	}
	return false
}
