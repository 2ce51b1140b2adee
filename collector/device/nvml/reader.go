//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// reader reads one GPU with its MIG devices. What it remembers belongs to
// Read, of which there is one at a time; only found and lost are shared.
type reader struct {
	uuid       string
	connection *connection // of the source
	sysfs      string
	perLink    bool
	profiling  bool
	interval   time.Duration // between two fast reads
	found      atomic.Pointer[finding]
	lost       atomic.Bool // the last read, or an XID since, said so

	taken      *finding // the finding that everything below goes back to
	identity   device.Device
	whole      *meter
	activity   *activity // of the whole GPU; nil: not asked for
	processes  processes // of the whole GPU
	past       *past     // of the GPU, for as long as it is known
	enabled    bool      // MIG mode
	partitions []*partition
	room       int // for readings
}

// finding is what a look for GPUs has found of one. Each look makes a new
// one, and with it everything about the GPU is asked anew.
type finding struct {
	gpu        nvml.Device
	address    string            // on PCI; empty: not told
	peers      map[string]string // UUIDs of all GPUs that have been seen, by address
	driver     string
	symbols    symbols
	connection uint64 // the one in which all this holds
	missing    bool   // the GPU was lost, and has not been found again
}

func newReader(c *connection, uuid string, o Options) *reader {
	return &reader{
		uuid: uuid, connection: c, sysfs: o.Sysfs, perLink: o.Links, profiling: o.Profiling,
		interval: o.Interval, past: newPast(o.Interval), processes: processes{wanted: o.Processes},
		identity: device.Device{
			UUID: uuid, Vendor: "nvidia", Minor: device.Unknown, RenderMinor: device.Unknown,
			Placement: device.Unknown, GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		},
	}
}

// Key is the GPU's UUID.
func (r *reader) Key() string { return r.uuid }

var errReconnecting = errors.New("the GPU has not been found again since the library was initialized again")

// Read reads the GPU and its MIG devices. It waits while the library is being
// initialized anew.
func (r *reader) Read(ctx context.Context, tier device.Tier) ([]device.Observation, error) {
	if !r.connection.share(ctx) {
		return nil, errReconnecting
	}
	defer r.connection.calls.RUnlock()
	found := r.found.Load()
	if found.connection != r.connection.number {
		return nil, errReconnecting
	}
	if found.missing {
		return r.without(), fmt.Errorf("find %s again: %w", r.uuid, nvml.ERROR_GPU_IS_LOST)
	}
	if found != r.taken {
		r.take(found)
	}
	observations, err := r.read(tier)
	r.connection.note(err)
	return observations, err
}

// read reads what the present finding is about.
func (r *reader) read(tier device.Tier) ([]device.Observation, error) {
	now := r.connection.now()
	whole := device.Observation{Device: r.identity, Readings: make([]device.Reading, 0, r.room)}
	err := r.whole.read(&whole, now, tier)
	if fallen(err) {
		return r.without(), err
	}
	if r.activity != nil {
		err = errors.Join(err, r.activity.read(&whole, now))
	}
	err = errors.Join(err, r.divided(&whole))
	gone := fallen(err)
	observations := make([]device.Observation, 1, 1+len(r.partitions))
	for _, p := range r.partitions {
		o := device.Observation{Device: p.identity, Readings: make([]device.Reading, 0, p.room)}
		err = errors.Join(err, p.read(&o, now, tier))
		p.room = len(o.Readings)
		observations = append(observations, o)
	}
	if gone || len(whole.Readings) > 0 {
		r.lost.Store(gone)
		whole.Readings = append(whole.Readings, device.Reading{Quantity: device.Lost, Value: truth(gone)})
	}
	r.room = len(whole.Readings)
	observations[0] = whole
	return observations, err
}

// divided finds the MIG devices of the GPU, or, where it is known to have
// none, the processes that use it as a whole.
func (r *reader) divided(whole *device.Observation) error {
	if err := r.enumerate(); err != nil {
		return err
	}
	if r.enabled {
		r.processes.work.forget()
		return nil
	}
	return r.processes.read(whole, r.connection.now())
}

// read reads the MIG device.
func (p *partition) read(o *device.Observation, now clock.Instant, tier device.Tier) error {
	err := p.meter.read(o, now, tier)
	if p.activity != nil {
		err = errors.Join(err, p.activity.read(o, now))
	}
	return err
}

// without is what is observed of a GPU that is lost: that, and who it and its
// MIG devices are. One that another driver was bound to is not lost.
func (r *reader) without() []device.Observation {
	whole := device.Observation{Device: r.identity}
	if !r.unbound() {
		r.lost.Store(true)
		whole.Readings = []device.Reading{{Quantity: device.Lost, Value: 1}}
	}
	observations := []device.Observation{whole}
	for _, p := range r.partitions {
		observations = append(observations, device.Observation{Device: p.identity})
	}
	return observations
}

// unbound reports whether NVIDIA's kernel driver is known to have let go of
// the GPU.
func (r *reader) unbound() bool {
	bound, known := boundGPUs(r.sysfs)
	return known && r.found.Load().address != "" && !bound[r.found.Load().address]
}

// take asks the GPU anew who it is. What it does not tell stays as it was.
func (r *reader) take(f *finding) {
	r.taken = f
	r.past.links.recount()
	r.past.number = f.connection
	r.whole = r.meterOf(f)
	r.processes.use(f.gpu, f.symbols)
	if r.profiling && f.symbols.has(gpmFunctions()...) {
		if r.activity == nil {
			r.activity = &activity{connection: r.connection, instance: device.Unknown}
		}
		r.activity.gpu, r.activity.quiet = f.gpu, false
	}
	for i := range r.partitions {
		r.partitions[i].identified = false
	}
	id := &r.identity
	if f.driver != "" {
		id.DriverVersion = f.driver
	}
	if name, ret := f.gpu.GetName(); ret == nvml.SUCCESS {
		id.Model = text(name)
	}
	if f.address != "" {
		id.PCIBusID = f.address
	}
	if minor, ret := f.gpu.GetMinorNumber(); ret == nvml.SUCCESS {
		id.Minor = minor
		id.Nodes = []string{fmt.Sprintf("/dev/nvidia%d", minor)}
	}
}

// meterOf returns a meter of the whole GPU, which has not asked for anything.
func (r *reader) meterOf(f *finding) *meter {
	return newMeter(f.gpu, wholeRows(r.perLink), f.symbols, f.peers, r.past)
}

// partition is a MIG device.
type partition struct {
	handle     nvml.Device
	identity   device.Device
	meter      *meter
	activity   *activity // nil: it has none
	room       int       // for readings
	identified bool      // since the last look for GPUs
}

// enumerate finds the MIG devices that are there now. Drivers make them on
// demand, so each read looks; who they are is asked only when they are new.
// Where a call fails, those that were known stay.
func (r *reader) enumerate() error {
	if !r.taken.symbols.has(migMode, migCount, migHandle) {
		return nil
	}
	gpu := r.taken.gpu
	mode, _, ret := gpu.GetMigMode()
	enabled := ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE
	if ret == nvml.SUCCESS || unsupported(ret) {
		r.switched(enabled)
		if !enabled {
			r.divide(nil)
			return nil
		}
	}
	if ret != nvml.SUCCESS {
		return fmt.Errorf("get the MIG mode of %s: %w", r.uuid, ret)
	}
	most, ret := gpu.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("count the MIG devices of %s: %w", r.uuid, ret)
	}
	found := make([]*partition, 0, len(r.partitions))
	for i := range most {
		handle, ret := gpu.GetMigDeviceHandleByIndex(i)
		if ret == nvml.ERROR_NOT_FOUND || unsupported(ret) {
			continue
		}
		if ret != nvml.SUCCESS {
			return fmt.Errorf("get a handle of MIG device %d of %s: %w", i, r.uuid, ret)
		}
		uuid, ret := handle.GetUUID()
		if ret != nvml.SUCCESS {
			return fmt.Errorf("get the UUID of MIG device %d of %s: %w", i, r.uuid, ret)
		}
		found = append(found, r.partition(handle, text(uuid)))
	}
	r.divide(found)
	return nil
}

// switched takes in whether the GPU is in MIG mode. One that has changed has
// other quantities than before.
func (r *reader) switched(enabled bool) {
	if enabled != r.enabled {
		r.enabled = enabled
		r.whole = r.meterOf(r.taken)
	}
}

// divide takes in which MIG devices there are now.
func (r *reader) divide(found []*partition) {
	if slices.Equal(found, r.partitions) {
		return
	}
	before := r.partitions
	r.partitions = found
	parts := make(map[string]migXIDs, len(found))
	for _, p := range found {
		parts[p.identity.UUID] = migXIDs{
			gpuInstance: instanceOf(p.identity.GPUInstance), computeInstance: instanceOf(p.identity.ComputeInstance),
		}
		p.activity = r.activityOf(p, before)
	}
	for _, p := range before {
		if !slices.Contains(found, p) {
			p.activity.drop()
		}
	}
	r.connection.watcher.counts.setInstances(r.uuid, parts)
}

// activityOf is the activity of a MIG device, which it may have had before.
// It is nil where it is not asked for, and where the device is not alone in
// its GPU instance, which is what the library measures.
func (r *reader) activityOf(p *partition, before []*partition) *activity {
	at := p.identity.GPUInstance
	shares := func(other *partition) bool { return other != p && other.identity.GPUInstance == at }
	if !r.profiling || at == device.Unknown || slices.ContainsFunc(r.partitions, shares) || !r.taken.symbols.has(gpmFunctions()...) {
		p.activity.drop()
		return nil
	}
	if p.activity != nil {
		return p.activity
	}
	for _, b := range before {
		if b.activity != nil && b.identity.UUID == p.identity.UUID && b.activity.instance == at {
			kept := b.activity
			b.activity = nil
			kept.gpu, kept.quiet = r.taken.gpu, false
			return kept
		}
	}
	return &activity{connection: r.connection, gpu: r.taken.gpu, instance: at}
}

// instanceOf is an id of an instance as events spell it.
func instanceOf(id int) uint32 {
	if id == device.Unknown {
		return noInstance
	}
	return uint32(id)
}

// partition is the MIG device behind a handle, as it is known or made anew.
func (r *reader) partition(handle nvml.Device, uuid string) *partition {
	for _, p := range r.partitions {
		if p.identified && p.handle == handle && p.identity.UUID == uuid {
			return p
		}
	}
	id := r.identity
	id.UUID, id.ParentUUID = uuid, r.uuid
	id.Minor, id.RenderMinor, id.Nodes = device.Unknown, device.Unknown, nil
	id.Profile = r.profile(handle)
	id.GPUInstance, id.ComputeInstance = r.instances(handle)
	id.Placement = r.placement(id.GPUInstance)
	return &partition{
		handle: handle, identity: id, identified: true,
		meter: newMeter(handle, migRows(), r.taken.symbols, r.taken.peers, newPast(r.interval)),
	}
}

// profile is the name of the MIG device's profile, empty if it does not tell.
func (r *reader) profile(mig nvml.Device) string {
	if name, ret := mig.GetName(); ret == nvml.SUCCESS {
		if profile := profileOfName(text(name)); profile != "" {
			return profile
		}
	}
	if !r.taken.symbols.has(attributes, "nvmlDeviceGetMemoryInfo") {
		return ""
	}
	size, ret := mig.GetAttributes()
	if ret != nvml.SUCCESS {
		return ""
	}
	whole, ret := r.taken.gpu.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		return ""
	}
	return profileOfSize(size.ComputeInstanceSliceCount, size.GpuInstanceSliceCount,
		size.MemorySizeMB<<20, whole.Total)
}

// instances are the ids of the instances that the MIG device consists of.
func (r *reader) instances(mig nvml.Device) (gpu, compute int) {
	gpu, compute = device.Unknown, device.Unknown
	if r.taken.symbols.has(instanceID) {
		if id, ret := mig.GetGpuInstanceId(); ret == nvml.SUCCESS {
			gpu = id
		}
	}
	if r.taken.symbols.has(computeID) {
		if id, ret := mig.GetComputeInstanceId(); ret == nvml.SUCCESS {
			compute = id
		}
	}
	return gpu, compute
}

// placement is the first memory slice of a GPU instance.
func (r *reader) placement(instance int) int {
	if instance == device.Unknown || !r.taken.symbols.has(instanceByID, instanceInfo) {
		return device.Unknown
	}
	handle, ret := r.taken.gpu.GetGpuInstanceById(instance)
	if ret != nvml.SUCCESS {
		return device.Unknown
	}
	info, ret := handle.GetInfo()
	if ret != nvml.SUCCESS {
		return device.Unknown
	}
	return int(info.Placement.Start)
}
