package node

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

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
