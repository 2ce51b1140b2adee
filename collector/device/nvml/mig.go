//go:build cgo

package nvml

import (
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// partition is a MIG device.
type partition struct {
	handle     nvml.Device
	identity   device.Device
	meter      *meter
	activity   *activity // nil: it has none
	room       int       // for readings
	identified bool      // since the last look for GPUs
}

// The functions that MIG devices are found by, and those that tell where on
// the GPU they lie.
const (
	migMode      = "nvmlDeviceGetMigMode"
	migCount     = "nvmlDeviceGetMaxMigDeviceCount"
	migHandle    = "nvmlDeviceGetMigDeviceHandleByIndex"
	instanceID   = "nvmlDeviceGetGpuInstanceId"
	computeID    = "nvmlDeviceGetComputeInstanceId"
	instanceByID = "nvmlDeviceGetGpuInstanceById"
	instanceInfo = "nvmlGpuInstanceGetInfo"
	attributes   = "nvmlDeviceGetAttributes_v2"
)

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
	parts := make(map[string]part, len(found))
	for _, p := range found {
		parts[p.identity.UUID] = part{
			gpuInstance: instanceOf(p.identity.GPUInstance), computeInstance: instanceOf(p.identity.ComputeInstance),
		}
		p.activity = r.activityOf(p, before)
	}
	for _, p := range before {
		if !slices.Contains(found, p) {
			p.activity.drop()
		}
	}
	r.connection.ear.divide(r.uuid, parts)
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
		meter: newMeter(handle, migRows(), r.taken, newPast(r.interval)),
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
