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
	connection *librarySession // of the source
	sysfs      string
	perLink    bool
	profiling  bool
	interval   time.Duration // between two fast reads
	discovered atomic.Pointer[discoveredGPU]
	lost       atomic.Bool // the last read, or an XID since, said so

	current    *discoveredGPU // the finding that everything below goes back to
	identity   device.Device
	whole      *rowReader
	activity   *engineActivity // of the whole GPU; nil: not requested
	processes  processes       // of the whole GPU
	history    *counterHistory // of the GPU, for as long as it is known
	enabled    bool            // MIG mode
	migDevices []*migDevice
	room       int // for readings
}

// discoveredGPU is what a discovery has found of one GPU. Each discovery makes a
// new one, after which everything about the GPU is read again.
type discoveredGPU struct {
	gpu        nvml.Device
	address    string                 // on PCI; empty: not known
	peers      map[string]string      // UUIDs of all GPUs that have been seen, by address
	others     map[string]nvml.Device // all GPUs of the connection, by UUID
	driver     string
	symbols    symbols
	connection uint64 // the one in which all this holds
	missing    bool   // the GPU was lost, and has not been found again
}

func newReader(c *librarySession, uuid string, o Options) *reader {
	return &reader{
		uuid: uuid, connection: c, sysfs: o.Sysfs, perLink: o.Links, profiling: o.Profiling,
		interval: o.Interval, history: newCounterHistory(o.Interval), processes: processes{wanted: o.Processes},
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
// initialized again.
func (r *reader) Read(ctx context.Context, tier device.Tier) ([]device.Observation, error) {
	if !r.connection.acquireShared(ctx) {
		return nil, errReconnecting
	}
	defer r.connection.calls.RUnlock()
	found := r.discovered.Load()
	if found.connection != r.connection.number {
		if failed := r.connection.failed.Load(); failed != nil {
			return nil, failed
		}
		return nil, errReconnecting
	}
	if found.missing {
		return r.lostObservations(), fmt.Errorf("find %s again: %w", r.uuid, nvml.ERROR_GPU_IS_LOST)
	}
	if found != r.current {
		r.apply(found)
	}
	observations, err := r.read(tier)
	r.connection.recordLoss(err)
	return observations, err
}

// read reads what the present finding is about.
func (r *reader) read(tier device.Tier) ([]device.Observation, error) {
	now := r.connection.now()
	whole := device.Observation{Device: r.identity, Readings: make([]device.Reading, 0, r.room)}
	err := r.whole.read(&whole, now, tier)
	if gpuLost(err) {
		return r.lostObservations(), err
	}
	if r.activity != nil {
		err = errors.Join(err, r.activity.read(&whole, now))
	}
	err = errors.Join(err, r.readMIGOrProcesses(&whole))
	gone := gpuLost(err)
	observations := make([]device.Observation, 1, 1+len(r.migDevices))
	for _, p := range r.migDevices {
		o := device.Observation{Device: p.identity, Readings: make([]device.Reading, 0, p.room)}
		err = errors.Join(err, p.read(&o, now, tier))
		p.room = len(o.Readings)
		observations = append(observations, o)
	}
	if gone || len(whole.Readings) > 0 {
		r.lost.Store(gone)
		whole.Readings = append(whole.Readings, device.Reading{Quantity: device.Lost, Value: boolValue(gone)})
	}
	r.room = len(whole.Readings)
	observations[0] = whole
	return observations, err
}

// readMIGOrProcesses lists the MIG devices of the GPU, or, where it is known to
// have none, the processes that use it as a whole.
func (r *reader) readMIGOrProcesses(whole *device.Observation) error {
	if err := r.listMIGDevices(); err != nil {
		return err
	}
	if r.enabled {
		r.processes.utilization.reset()
		return nil
	}
	return r.processes.read(whole, r.connection.now())
}

// read reads the MIG device.
func (p *migDevice) read(o *device.Observation, now clock.Instant, tier device.Tier) error {
	err := p.meter.read(o, now, tier)
	if p.activity != nil {
		err = errors.Join(err, p.activity.read(o, now))
	}
	return err
}

// lostObservations are the observations of a lost GPU: the loss, and the
// identities of it and its MIG devices. A GPU that another driver was bound to is
// not lost.
func (r *reader) lostObservations() []device.Observation {
	whole := device.Observation{Device: r.identity}
	if !r.boundElsewhere() {
		r.lost.Store(true)
		whole.Readings = []device.Reading{{Quantity: device.Lost, Value: 1}}
	}
	observations := []device.Observation{whole}
	for _, p := range r.migDevices {
		observations = append(observations, device.Observation{Device: p.identity})
	}
	return observations
}

// boundElsewhere reports whether sysfs shows that NVIDIA's kernel driver is not
// bound to the GPU any more.
func (r *reader) boundElsewhere() bool {
	bound, ok := boundGPUs(r.sysfs)
	return ok && r.discovered.Load().address != "" && !bound[r.discovered.Load().address]
}

// apply applies a new discovery and reads the identity of the GPU again. What
// cannot be read keeps its value.
func (r *reader) apply(f *discoveredGPU) {
	r.current = f
	r.history.links.forgetTopology()
	r.history.number = f.connection
	r.whole = r.findMeter(f)
	r.processes.use(f.gpu, f.symbols)
	if r.profiling && f.symbols.has(gpmFunctions()...) {
		if r.activity == nil {
			r.activity = &engineActivity{connection: r.connection, instance: device.Unknown}
		}
		r.activity.gpu, r.activity.unsupported = f.gpu, false
	}
	for i := range r.migDevices {
		r.migDevices[i].identified = false
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
	id.LinkDomain = linkDomain(r.uuid, f)
	if minor, ret := f.gpu.GetMinorNumber(); ret == nvml.SUCCESS {
		id.Minor = minor
		id.Nodes = []string{fmt.Sprintf("/dev/nvidia%d", minor)}
	}
	readHardware(&id.Hardware, f)
}

// findMeter returns a new meter of the whole GPU.
func (r *reader) findMeter(f *discoveredGPU) *rowReader {
	return newRowReader(f.gpu, wholeRows(r.perLink), f.symbols, f.peers, r.history)
}

// migDevice is a MIG device.
type migDevice struct {
	handle     nvml.Device
	identity   device.Device
	meter      *rowReader
	activity   *engineActivity // nil: it has none
	room       int             // for readings
	identified bool            // since the last look for GPUs
}

// listMIGDevices lists the current MIG devices. Drivers create them on demand, so
// each read lists them; their identities are read only when they are new. Where a
// call fails, the known ones stay.
func (r *reader) listMIGDevices() error {
	if !r.current.symbols.has(migMode, migCount, migHandle) {
		return nil
	}
	gpu := r.current.gpu
	mode, _, ret := gpu.GetMigMode()
	enabled := ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE
	if ret == nvml.SUCCESS || unsupported(ret) {
		r.setMIGMode(enabled)
		if !enabled {
			r.setMIGDevices(nil)
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
	found := make([]*migDevice, 0, len(r.migDevices))
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
		found = append(found, r.findMIGDevice(handle, text(uuid)))
	}
	r.setMIGDevices(found)
	return nil
}

// setMIGMode sets whether the GPU is in MIG mode. A GPU whose mode has changed has
// other quantities than before.
func (r *reader) setMIGMode(enabled bool) {
	if enabled != r.enabled {
		r.enabled = enabled
		r.whole = r.findMeter(r.current)
	}
}

// setMIGDevices sets which MIG devices there are now.
func (r *reader) setMIGDevices(found []*migDevice) {
	if slices.Equal(found, r.migDevices) {
		return
	}
	previous := r.migDevices
	r.migDevices = found
	parts := make(map[string]migXIDs, len(found))
	for _, p := range found {
		parts[p.identity.UUID] = migXIDs{
			gpuInstance: instanceNumber(p.identity.GPUInstance), computeInstance: instanceNumber(p.identity.ComputeInstance),
		}
		p.activity = r.findActivity(p, previous)
	}
	for _, p := range previous {
		if !slices.Contains(found, p) {
			p.activity.release()
		}
	}
	r.connection.watcher.counts.setInstances(r.uuid, parts)
}

// findActivity returns the activity of a MIG device, the previous one if there is
// one. It is nil if it was not requested, or if the device is not alone in its
// GPU instance, which is what the library measures.
func (r *reader) findActivity(p *migDevice, previous []*migDevice) *engineActivity {
	at := p.identity.GPUInstance
	shares := func(other *migDevice) bool { return other != p && other.identity.GPUInstance == at }
	if !r.profiling || at == device.Unknown || slices.ContainsFunc(r.migDevices, shares) || !r.current.symbols.has(gpmFunctions()...) {
		p.activity.release()
		return nil
	}
	if p.activity != nil {
		return p.activity
	}
	for _, b := range previous {
		if b.activity != nil && b.identity.UUID == p.identity.UUID && b.activity.instance == at {
			kept := b.activity
			b.activity = nil
			kept.gpu, kept.unsupported = r.current.gpu, false
			return kept
		}
	}
	return &engineActivity{connection: r.connection, gpu: r.current.gpu, instance: at}
}

// instanceNumber is an id of an instance as events spell it.
func instanceNumber(id int) uint32 {
	if id == device.Unknown {
		return noInstance
	}
	return uint32(id)
}

// findMIGDevice is the MIG device behind a handle: the known one, or a new one.
func (r *reader) findMIGDevice(handle nvml.Device, uuid string) *migDevice {
	for _, p := range r.migDevices {
		if p.identified && p.handle == handle && p.identity.UUID == uuid {
			return p
		}
	}
	id := r.identity
	id.UUID, id.ParentUUID, id.LinkDomain, id.Hardware = uuid, r.uuid, "", device.Hardware{}
	id.Minor, id.RenderMinor, id.Nodes = device.Unknown, device.Unknown, nil
	id.Profile = r.profile(handle)
	id.GPUInstance, id.ComputeInstance = r.instances(handle)
	id.Placement = r.placement(id.GPUInstance)
	return &migDevice{
		handle: handle, identity: id, identified: true,
		meter: newRowReader(handle, migRows(), r.current.symbols, r.current.peers, newCounterHistory(r.interval)),
	}
}

// profile is the name of the MIG device's profile, empty if it is unknown.
func (r *reader) profile(mig nvml.Device) string {
	if name, ret := mig.GetName(); ret == nvml.SUCCESS {
		if profile := profileOfName(text(name)); profile != "" {
			return profile
		}
	}
	if !r.current.symbols.has(attributes, "nvmlDeviceGetMemoryInfo") {
		return ""
	}
	size, ret := mig.GetAttributes()
	if ret != nvml.SUCCESS {
		return ""
	}
	whole, ret := r.current.gpu.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		return ""
	}
	return profileOfSize(size.ComputeInstanceSliceCount, size.GpuInstanceSliceCount,
		size.MemorySizeMB<<20, whole.Total)
}

// instances are the ids of the instances that the MIG device consists of.
func (r *reader) instances(mig nvml.Device) (gpu, compute int) {
	gpu, compute = device.Unknown, device.Unknown
	if r.current.symbols.has(instanceID) {
		if id, ret := mig.GetGpuInstanceId(); ret == nvml.SUCCESS {
			gpu = id
		}
	}
	if r.current.symbols.has(computeID) {
		if id, ret := mig.GetComputeInstanceId(); ret == nvml.SUCCESS {
			compute = id
		}
	}
	return gpu, compute
}

// placement is the first memory slice of a GPU instance.
func (r *reader) placement(instance int) int {
	if instance == device.Unknown || !r.current.symbols.has(instanceByID, instanceInfo) {
		return device.Unknown
	}
	handle, ret := r.current.gpu.GetGpuInstanceById(instance)
	if ret != nvml.SUCCESS {
		return device.Unknown
	}
	info, ret := handle.GetInfo()
	if ret != nvml.SUCCESS {
		return device.Unknown
	}
	return int(info.Placement.Start)
}
