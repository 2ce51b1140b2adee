package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
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

// A deviceState is one device as the node role knows it from step to step: a piece
// of hardware, a partition, or a held device whose hardware is unknown.
type deviceState struct {
	uuid     string
	hardware bool // false: known by its published name alone
	device   device.Device
	source   string

	published   dra.PublishedDevice // last known; its ID is empty while unmatched
	isPublished bool
	inSlice     bool // the driver publishes it now

	at       clock.Instant // of the newest readings; zero: never read
	newer    bool          // they came in this step
	fresh    bool          // at is recent enough for gauges
	readings []device.Reading
	offsets  [device.Quantities + 1]int // of each quantity in readings
	size     float64                    // last known memory size, bytes; 0: unknown

	processes []device.Process // as listed last
	listedAt  clock.Instant    // zero: never
	xids      []device.XID     // by code; nil: not watched now
	xidSource string           // of xids; need not be the source of the readings

	seen       clock.Instant // last step that saw it, as hardware or as held
	present    bool          // seen in this step's samples
	wasPresent bool          // and in those of the step before
	labels     unitLabels
	slots      []*metric.Labels // labels of readings with details, by position
	slotted    []device.Reading // what slots were made for
}

// apply applies a sample of this step.
func (u *deviceState) apply(sample device.Sample) {
	u.device, u.source, u.hardware, u.present = sample.Device, sample.Source, true, true
	u.processes, u.listedAt = sample.Processes, sample.ProcessesAt
	u.xids, u.xidSource = sample.XIDs, sample.XIDSource
	u.newer = !sample.At.IsZero() && sample.At != u.at
	if !u.newer {
		return
	}
	u.at, u.readings = sample.At, sample.Readings
	u.index()
	if size, ok := u.reading(device.MemorySize); ok {
		u.size = size
	}
}

// publishAs applies the name under which the driver publishes the device, and
// what the slice has of it; nil if no slice has it now. Then what the last one
// had is kept.
func (u *deviceState) publishAs(id dra.DeviceID, published *dra.PublishedDevice) {
	u.isPublished, u.inSlice = true, published != nil
	if published != nil {
		u.published = *published
	} else if u.published.ID != id {
		u.published = dra.PublishedDevice{ID: id, Placement: dra.PlacementUnknown}
	}
	if !u.hardware {
		u.device.ParentUUID = u.published.ParentUUID
	}
}

// index notes where each quantity begins; readings are sorted by quantity.
func (u *deviceState) index() {
	at := 0
	for q := range u.offsets {
		for at < len(u.readings) && int(u.readings[at].Quantity) < q {
			at++
		}
		u.offsets[q] = at
	}
}

// of returns the last readings of a quantity.
func (u *deviceState) of(q device.Quantity) []device.Reading {
	return u.readings[u.offsets[q]:u.offsets[q+1]]
}

// reading returns the last value of a quantity without details.
func (u *deviceState) reading(q device.Quantity) (float64, bool) {
	readings := u.of(q)
	if len(readings) == 0 {
		return 0, false
	}
	return readings[0].Value, true
}

// gauge returns the value of a quantity if it is recent enough.
func (u *deviceState) gauge(q device.Quantity) (float64, bool) {
	if !u.fresh {
		return 0, false
	}
	return u.reading(q)
}

// measured is when a reading was measured: when the sample was taken, if its
// source does not say.
func (u *deviceState) measured(r *device.Reading) device.Window {
	if r.Measured.IsZero() {
		return device.Window{From: u.at.Elapsed, To: u.at.Elapsed}
	}
	return r.Measured
}

func (u *deviceState) model() string {
	if u.device.Model != "" {
		return u.device.Model
	}
	return u.published.Model
}

func (u *deviceState) profile() string {
	if u.device.Profile != "" {
		return u.device.Profile
	}
	return u.published.Profile
}

// isPartition reports whether the unit is a part of another, though its
// hardware may be unknown.
func (u *deviceState) isPartition() bool {
	return u.device.IsPartition() || !u.hardware && u.published.IsPartition()
}

// unitLabels are made when the unit is first shown, and again where what
// they say has changed.
type unitLabels struct {
	plain, info, published, place *metric.Labels

	parent      string // that all of them name
	infoOf      deviceIdentity
	publishedAs dra.DeviceID
	placedAt    instances
}

// deviceIdentity is what dra_device_info says.
type deviceIdentity struct {
	vendor, model, address, profile, version, source string
}

// instances is what dra_device_partition_info says.
type instances struct{ gpu, compute int }

// label makes the unit's labels, or keeps them.
func (u *deviceState) label(f *families, node string) {
	if u.labels.plain == nil || u.labels.parent != u.device.ParentUUID {
		u.labels, u.slots, u.slotted = unitLabels{parent: u.device.ParentUUID}, nil, nil
		u.labels.plain = metric.NewLabels(f.deviceBusy.Labels, node, u.uuid, u.device.ParentUUID)
	}
	id := deviceIdentity{u.device.Vendor, u.model(), u.device.PCIBusID, u.profile(), u.device.DriverVersion, u.source}
	if u.labels.info == nil || id != u.labels.infoOf {
		u.labels.infoOf = id
		u.labels.info = metric.NewLabels(f.deviceInfo.Labels, node, u.uuid, u.device.ParentUUID,
			id.vendor, id.model, id.address, id.profile, id.version, id.source)
	}
	if as := u.published.ID; u.isPublished && (u.labels.published == nil || as != u.labels.publishedAs) {
		u.labels.publishedAs = as
		u.labels.published = metric.NewLabels(f.publishedInfo.Labels, node, u.uuid, u.device.ParentUUID, as.Driver, as.Pool, as.Name)
	}
	u.labelPlace(f, node)
	u.labelReadings(f, node)
}

func (u *deviceState) labelPlace(f *families, node string) {
	at := instances{u.device.GPUInstance, u.device.ComputeInstance}
	switch {
	case !placed(u.device):
		u.labels.place = nil
	case u.labels.place == nil || at != u.labels.placedAt:
		u.labels.placedAt = at
		u.labels.place = metric.NewLabels(f.partitionInfo.Labels, node, u.uuid, u.device.ParentUUID, strconv.Itoa(at.gpu), strconv.Itoa(at.compute))
	}
}

// labelReadings keeps one set of labels beside each reading with details.
// Readings come in a fixed order, so it has work to do only when a reading
// appears or disappears.
func (u *deviceState) labelReadings(f *families, node string) {
	for i, reading := range u.readings {
		if i < len(u.slots) && sameReading(u.slotted[i], reading) {
			continue
		}
		u.slots, u.slotted = u.slots[:min(i, len(u.slots))], u.slotted[:min(i, len(u.slotted))]
		var labels *metric.Labels
		if details := len(f.specs[reading.Quantity].Details); details > 0 {
			values := append([]string{node, u.uuid, u.device.ParentUUID}, reading.Details[:details]...)
			labels = metric.NewLabels(f.quantity[reading.Quantity].Labels, values...)
		}
		u.slots, u.slotted = append(u.slots, labels), append(u.slotted, reading)
	}
}

// sameReading compares what labels are made of.
func sameReading(a, b device.Reading) bool {
	return a.Quantity == b.Quantity && a.Details == b.Details
}

// sameHardware compares what rules and labels are made of.
func sameHardware(a, b device.Device) bool {
	return a.UUID == b.UUID && a.ParentUUID == b.ParentUUID && a.PCIBusID == b.PCIBusID &&
		a.Vendor == b.Vendor && a.Model == b.Model && a.DriverVersion == b.DriverVersion &&
		a.Minor == b.Minor && a.RenderMinor == b.RenderMinor &&
		a.Profile == b.Profile && a.Placement == b.Placement &&
		a.GPUInstance == b.GPUInstance && a.ComputeInstance == b.ComputeInstance &&
		slices.Equal(a.Nodes, b.Nodes)
}

// unidentified is hardware of which nothing is known.
func unidentified() device.Device {
	return device.Device{
		Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown,
		GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
	}
}

// hardwareUUID is the one identity of a piece of hardware: the vendor's
// UUID, or its address on this node, and its place there if it is a part: the
// ids of its instances, of which two may begin at the same memory slice, or
// its profile and that slice.
func hardwareUUID(node string, d device.Device) string {
	address := node + "/pci-" + d.PCIBusID
	switch {
	case d.UUID != "":
		return d.UUID
	case !d.IsPartition():
		return address
	case placed(d):
		return fmt.Sprintf("%s/gi%d-ci%d", address, d.GPUInstance, d.ComputeInstance)
	default:
		return fmt.Sprintf("%s/%s-%d", address, plainProfile(d.Profile), d.Placement)
	}
}

// unknownUUID is the identity of a held device whose hardware nobody knows.
func unknownUUID(node string, id dra.DeviceID) string {
	return node + "/" + id.String()
}

// plainProfile spells a partition profile the way device names do: without
// dots, in lower case.
func plainProfile(profile string) string {
	return strings.ToLower(strings.ReplaceAll(profile, ".", ""))
}

// placed reports whether the instances of a partition are known.
func placed(d device.Device) bool {
	return d.IsPartition() && d.GPUInstance != device.Unknown && d.ComputeInstance != device.Unknown
}

// gpuInstance tells the GPU instance of a partition apart from all others.
func gpuInstance(d device.Device) string {
	return d.ParentUUID + "|" + strconv.Itoa(d.GPUInstance)
}
