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
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// devices is the first stage: it applies samples to the devices of the node.
// A device is kept for the grace after it was last sampled or held.
type devices struct {
	node      string
	staleness time.Duration
	byUUID    map[string]*deviceState
	sorted    []*deviceState    // by uuid; nil: a device was added or removed
	named     []device.Sample   // of this step, of devices that are identified by published names
	locations *device.Locations // of the node's PCI functions

	changes uint64 // of the hardware so far: added, removed, or other properties
	listed  bool   // a source has listed the processes of a device
}

func newDevices(config Config) *devices {
	return &devices{node: config.Node, staleness: config.Staleness(), byUUID: make(map[string]*deviceState)}
}

// identify applies which devices the samples of a step are of. Samples with a
// published name wait for addNamed: which hardware has the name depends on the
// match of the others.
func (s *devices) identify(samples []device.Sample, locations *device.Locations, now clock.Instant) {
	if s.locations != locations {
		s.locations = locations
		s.changes++
	}
	for _, d := range s.byUUID {
		d.present, d.wasPresent = false, d.present && d.device.Published == device.PublishedName{}
	}
	var named []device.Sample
	for _, sample := range samples {
		if sample.Device.Published != (device.PublishedName{}) {
			named = append(named, sample)
			continue
		}
		uuid := hardwareUUID(s.node, sample.Device)
		d := s.byUUID[uuid]
		if d == nil {
			d = s.add(&deviceState{uuid: uuid})
		}
		if !d.wasPresent || !sameHardware(d.device, sample.Device) {
			s.changes++
		}
		d.identify(sample, now)
	}
	for _, d := range s.byUUID {
		if !d.present && d.wasPresent {
			s.changes++
		}
	}
	if !slices.EqualFunc(s.named, named, func(a, b device.Sample) bool { return sameHardware(a.Device, b.Device) }) {
		s.changes++
	}
	s.named = named
}

// addNamed applies a sample with a published name to the device with a uuid. If
// another source has this device, the sample adds what that source does not read,
// unless the driver is not the one of the device's vendor.
func (s *devices) addNamed(uuid string, sample device.Sample, now clock.Instant) *deviceState {
	d := s.byUUID[uuid]
	if d == nil {
		d = s.add(&deviceState{uuid: uuid})
	}
	if !d.present {
		d.identify(sample, now)
	} else if driver := vendors.DriverOf(d.device.Vendor); driver == "" || driver == sample.Device.Published.Driver {
		d.sample = d.sample.With(sample, s.staleness)
	}
	return d
}

// read applies the readings of the samples.
func (s *devices) read(now clock.Instant) {
	for _, d := range s.byUUID {
		if d.present {
			d.read()
			if linked := d.hasActiveLinks(); linked != d.linked {
				d.linked = linked
				s.changes++ // its location has changed
			}
			s.listed = s.listed || !d.listedAt.IsZero()
		} else {
			d.newer, d.xids, d.released = false, nil, false
		}
		d.fresh = d.present && !d.released && !d.at.IsZero() && now.Since(d.at) <= s.staleness
	}
}

func (s *devices) add(d *deviceState) *deviceState {
	s.byUUID[d.uuid], s.sorted = d, nil
	d.holders.device, d.growth.device, d.health.device = d, d, d
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

// evict removes the devices whose grace has ended, and reports whether there were any.
func (s *devices) evict(now clock.Instant, grace time.Duration) (removed bool) {
	for uuid, d := range s.byUUID {
		if now.Since(d.seen) > grace {
			delete(s.byUUID, uuid)
			s.sorted, removed = nil, true
		}
	}
	return removed
}

// newestSample is when any device was last read; zero: never.
func (s *devices) newestSample() clock.Instant {
	var newest clock.Instant
	for _, d := range s.all() {
		if d.at.Elapsed > newest.Elapsed {
			newest = d.at
		}
	}
	return newest
}

// identify applies what a sample of this step is of.
func (d *deviceState) identify(sample device.Sample, now clock.Instant) {
	d.device, d.source, d.hardware, d.present = sample.Device, sample.Source, true, true
	d.sample, d.seen = sample, now
}

// read applies the readings of the sample.
func (d *deviceState) read() {
	sample := &d.sample
	d.processes, d.listedAt = sample.Processes, sample.ProcessesAt
	d.xids, d.xidSource, d.released = sample.XIDs, sample.XIDSource, sample.Released
	d.newer = !sample.At.IsZero() && sample.At != d.at
	if !d.newer {
		return
	}
	d.at, d.readings = sample.At, sample.Readings
	at := 0
	for q := range d.offsets {
		for at < len(d.readings) && int(d.readings[at].Quantity) < q {
			at++
		}
		d.offsets[q] = at
	}
	if size, ok := d.reading(device.MemorySize); ok {
		d.size = size
	}
}

// publishAs applies the name under which the driver publishes the device, and
// what the slice has of it; nil if no slice has it now. Then what the last one
// had is kept.
func (d *deviceState) publishAs(id dra.DeviceID, published *dra.PublishedDevice) {
	d.isPublished, d.inSlice = true, published != nil
	if published != nil {
		d.published = *published
	} else if d.published.ID != id {
		d.published = dra.PublishedDevice{ID: id, Placement: dra.PlacementUnknown}
	}
	if !d.hardware || d.device.Published != (device.PublishedName{}) {
		d.device.ParentUUID = d.published.ParentUUID
	}
}

// publishedLocation is where a published device is: by its slice, else by its address.
func publishedLocation(d *dra.PublishedDevice, hardware *device.Locations) dra.Location {
	at := hardware.At(cmp.Or(d.PCIAddress, d.ParentPCIAddress))
	return dra.Location{Root: cmp.Or(d.PCIeRoot, at.PCIeRoot), NUMA: cmp.Or(d.NUMANode, at.NUMANode)}
}

// location is where the device is: by its slice, else by the address of its hardware.
func (d *deviceState) location(hardware *device.Locations) dra.Location {
	at, hardwareLocation := publishedLocation(&d.published, hardware), hardware.At(d.device.PCIBusID)
	link := d.device.LinkDomain
	if link == "" && d.linked {
		link = dra.LinkUnknown
	}
	return dra.Location{Link: link, Root: cmp.Or(at.Root, hardwareLocation.PCIeRoot), NUMA: cmp.Or(at.NUMA, hardwareLocation.NUMANode)}
}

// hasActiveLinks reports whether any of the device's NVLinks is up.
func (d *deviceState) hasActiveLinks() bool {
	return slices.ContainsFunc(d.of(device.NVLinks), func(r device.Reading) bool { return r.Value > 0 && r.Details[0] == "active" })
}

// of returns the last readings of a quantity.
func (d *deviceState) of(q device.Quantity) []device.Reading {
	return d.readings[d.offsets[q]:d.offsets[q+1]]
}

// reading returns the last value of a quantity without details.
func (d *deviceState) reading(q device.Quantity) (float64, bool) {
	readings := d.of(q)
	if len(readings) == 0 {
		return 0, false
	}
	return readings[0].Value, true
}

// gauge returns the value of a quantity if it is recent enough.
func (d *deviceState) gauge(q device.Quantity) (float64, bool) {
	if !d.fresh {
		return 0, false
	}
	return d.reading(q)
}

// measured returns when a reading was measured: when the sample was taken, if the
// source does not report it.
func (d *deviceState) measured(r *device.Reading) device.Window {
	if r.Measured.IsZero() {
		return device.Window{From: d.at.Elapsed, To: d.at.Elapsed}
	}
	return r.Measured
}

// driver returns the DRA driver of the device.
func (d *deviceState) driver() *deviceDriver {
	known, named, published, vendor := &d.known, d.device.Published.Driver, d.published.ID.Driver, d.device.Vendor
	if known.named != named || known.published != published || known.vendor != vendor {
		name := cmp.Or(named, published, vendors.DriverOf(vendor))
		row := vendors.ByDriver(name)
		*known = deviceDriver{named, published, vendor, name, row.Kind, row.IsMeasured()}
	}
	return known
}

func (d *deviceState) model() string { return cmp.Or(d.device.Model, d.published.Model) }

func (d *deviceState) profile() string { return cmp.Or(d.device.Profile, d.published.Profile) }

// isPartition reports whether the device is a partition, even if its hardware is
// not known.
func (d *deviceState) isPartition() bool {
	return d.device.IsPartition() || !d.hardware && d.published.IsPartition()
}

// identity returns what the device is.
func (d *deviceState) identity() model.Identity {
	return model.Identity{
		UUID: d.uuid, Parent: d.device.ParentUUID,
		Vendor: d.device.Vendor, Model: d.model(), PCIBusID: d.device.PCIBusID, Profile: d.profile(), DriverVersion: d.device.DriverVersion, Source: d.source,
		GPUInstance: d.device.GPUInstance, ComputeInstance: d.device.ComputeInstance,
	}
}

// isPast reports whether the hardware is no longer there.
func (d *deviceState) isPast() bool { return d.hardware && !d.present }

// details returns how the device is named, where it is, and by what it is found.
func (d *deviceState) details(hardware *device.Locations) model.Details {
	details := model.Details{Minor: device.Unknown, Location: d.location(hardware)}
	if !d.isPartition() {
		details.Hardware, details.Minor = d.device.Hardware, d.device.Minor
	}
	if d.isPublished {
		details.Published = d.published.ID
	}
	return details
}

// describe brings what the device is, and its details, up to date. Records that have not
// changed stay the same.
func (d *deviceState) describe(hardware *device.Locations) {
	if id := d.identity(); d.shownIdentity == nil || id != *d.shownIdentity {
		d.shownIdentity = new(model.Identity)
		*d.shownIdentity = id
	}
	if details := d.details(hardware); d.shownDetails == nil || details != *d.shownDetails {
		d.shownDetails = new(model.Details)
		*d.shownDetails = details
	}
}

// sameHardware compares what matching rules and labels depend on.
func sameHardware(a, b device.Device) bool {
	return a.UUID == b.UUID && a.ParentUUID == b.ParentUUID && a.PCIBusID == b.PCIBusID &&
		a.Vendor == b.Vendor && a.Model == b.Model && a.DriverVersion == b.DriverVersion &&
		a.Minor == b.Minor && a.RenderMinor == b.RenderMinor &&
		a.Profile == b.Profile && a.Placement == b.Placement &&
		a.GPUInstance == b.GPUInstance && a.ComputeInstance == b.ComputeInstance && a.Published == b.Published && a.PublishedParent == b.PublishedParent &&
		a.LinkDomain == b.LinkDomain &&
		slices.Equal(a.Nodes, b.Nodes)
}

// unidentified returns hardware of which nothing is known.
func unidentified() device.Device {
	return device.Device{
		Minor: device.Unknown, RenderMinor: device.Unknown, Placement: device.Unknown,
		GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
	}
}

// hardwareUUID returns the identity of a piece of hardware: the vendor's UUID, or
// its address on this node. A partition without a UUID has its place there as
// well: the ids of its instances, of which two may begin at the same memory slice,
// or its profile and that slice.
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

// unknownUUID returns the identity of a device of which only the published name is
// known: held without known hardware, or read by a source that knows only the name.
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

// gpuInstance identifies the GPU instance of a partition.
func gpuInstance(d device.Device) string {
	return d.ParentUUID + "|" + strconv.Itoa(d.GPUInstance)
}
