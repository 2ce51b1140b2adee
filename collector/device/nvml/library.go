//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// symbols are the functions that the library has. One that it lacks must not
// be called: the dynamic linker would end the process.
type symbols map[string]bool

// core are the functions without which no GPU can be read, each in all
// versions, of which one is enough.
func core() [][]string {
	return [][]string{
		{"nvmlDeviceGetCount", "nvmlDeviceGetCount_v2"},
		{"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByIndex_v2"},
		{"nvmlDeviceGetUUID"},
		{"nvmlDeviceGetName"},
		{"nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo_v3"},
		{"nvmlDeviceGetMinorNumber"},
		{"nvmlSystemGetDriverVersion"},
	}
}

// has reports whether all of the functions are there.
func (s symbols) has(names ...string) bool {
	for _, name := range names {
		if !s[name] {
			return false
		}
	}
	return true
}

// any reports whether one of the functions is there.
func (s symbols) any(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return s[name] })
}

// missing is a core function that is not there in any version, or empty.
func (s symbols) missing() string {
	for _, versions := range core() {
		if !s.any(versions...) {
			return versions[0]
		}
	}
	return ""
}

// The functions that find MIG devices and their placement on the GPU.
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

// failure says why the library as a whole cannot be used, and what to do.
func failure(action string, ret nvml.Return) *source.Failure {
	reason, remedy := source.ReasonOther, ""
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		reason = source.ReasonLibraryMissing
		remedy = ": mount the driver's libraries, or run with the RuntimeClass nvidia and NVIDIA_DRIVER_CAPABILITIES=utility"
	case nvml.ERROR_FUNCTION_NOT_FOUND:
		reason = source.ReasonUnsupported
		remedy = ": restart with the libraries of the driver that is loaded"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		reason = source.ReasonLibraryMismatch
		remedy = ": load the driver that belongs to the library, as a reboot does, or restart the agent with the libraries of the driver that is loaded"
	case nvml.ERROR_NO_PERMISSION:
		reason = source.ReasonPermission
		remedy = ": give access to /dev/nvidiactl and /dev/nvidia*"
	case nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_UNINITIALIZED:
		reason = source.ReasonUnavailable
		remedy = ": load the driver's kernel module"
	}
	return &source.Failure{Reason: reason, Err: fmt.Errorf("%s: %w%s", action, ret, remedy)}
}

// unsupported reports whether a device, or the library, does not have what
// was requested, and will not have it soon.
func unsupported(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_VGPU_ECC_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND,
		nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED:
		return true
	}
	return false
}

// unknown reports whether a value is merely not there at the moment.
func unknown(ret nvml.Return) bool {
	return ret == nvml.ERROR_NO_DATA || ret == nvml.ERROR_NOT_READY
}

// inaccessible reports whether processes cannot be read, now or soon.
func inaccessible(ret nvml.Return) bool { return unsupported(ret) || ret == nvml.ERROR_NO_PERMISSION }

// unreachable reports whether further calls for the device are useless.
func unreachable(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_GPU_NOT_FOUND, nvml.ERROR_RESET_REQUIRED,
		nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return true
	}
	return false
}

// connectionLost reports whether an error says that no call succeeds until the
// library is initialized again.
func connectionLost(err error) bool {
	return errors.Is(err, nvml.ERROR_UNINITIALIZED) || errors.Is(err, nvml.ERROR_DRIVER_NOT_LOADED) || errors.Is(err, nvml.ERROR_LIB_RM_VERSION_MISMATCH)
}

// gpuLost reports whether an error says that the GPU has fallen off the bus, or
// requires a reset.
func gpuLost(err error) bool {
	return errors.Is(err, nvml.ERROR_GPU_IS_LOST) || errors.Is(err, nvml.ERROR_RESET_REQUIRED)
}

// readList reads a list whose length the binding queries first. A list that has
// grown in between is read once more: the binding then returns an error, or
// slices its array out of range and panics.
func readList[T any](ask func() ([]T, nvml.Return)) (list []T, ret nvml.Return) {
	once := func() (list []T, ret nvml.Return) {
		defer func() {
			switch cause := recover().(type) {
			case nil:
			case runtime.Error:
				list, ret = nil, nvml.ERROR_INSUFFICIENT_SIZE
			default:
				panic(cause)
			}
		}()
		return ask()
	}
	if list, ret = once(); ret == nvml.ERROR_INSUFFICIENT_SIZE {
		list, ret = once()
	}
	return list, ret
}
