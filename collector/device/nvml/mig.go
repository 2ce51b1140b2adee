//go:build cgo

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// partition is a MIG device.
type partition struct {
	handle     nvml.Device
	identity   device.Device
	meter      *meter
	identified bool // since the last look for GPUs
}

// The functions that MIG devices are found by, and those that tell where on
// the GPU they lie.
const (
	migMode      = "nvmlDeviceGetMigMode"
	migCount     = "nvmlDeviceGetMaxMigDeviceCount"
	migHandle    = "nvmlDeviceGetMigDeviceHandleByIndex"
	instanceID   = "nvmlDeviceGetGpuInstanceId"
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
	if unsupported(ret) || ret == nvml.SUCCESS && mode != nvml.DEVICE_MIG_ENABLE {
		r.partitions = nil
		return nil
	}
	if ret != nvml.SUCCESS {
		return fmt.Errorf("get the MIG mode of %s: %w", r.uuid, ret)
	}
	most, ret := gpu.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("count the MIG devices of %s: %w", r.uuid, ret)
	}
	var found []partition
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
	r.partitions = found
	return nil
}

// partition is the MIG device behind a handle, as it is known or made anew.
func (r *reader) partition(handle nvml.Device, uuid string) partition {
	for _, p := range r.partitions {
		if p.identified && p.handle == handle && p.identity.UUID == uuid {
			return p
		}
	}
	id := r.identity
	id.UUID, id.ParentUUID = uuid, r.uuid
	id.Minor, id.RenderMinor, id.Nodes = device.Unknown, device.Unknown, nil
	id.Profile = r.profile(handle)
	id.Placement = r.placement(handle)
	return partition{
		handle: handle, identity: id, identified: true,
		meter: newMeter(handle, migRows(), r.taken.symbols, newLinks()),
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

// placement is the first memory slice of the MIG device's GPU instance.
func (r *reader) placement(mig nvml.Device) int {
	if !r.taken.symbols.has(instanceID, instanceByID, instanceInfo) {
		return device.Unknown
	}
	id, ret := mig.GetGpuInstanceId()
	if ret != nvml.SUCCESS {
		return device.Unknown
	}
	instance, ret := r.taken.gpu.GetGpuInstanceById(id)
	if ret != nvml.SUCCESS {
		return device.Unknown
	}
	info, ret := instance.GetInfo()
	if ret != nvml.SUCCESS {
		return device.Unknown
	}
	return int(info.Placement.Start)
}
