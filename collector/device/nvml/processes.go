//go:build cgo

package nvml

import (
	"fmt"
	"math"
	"runtime"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// processUtilization is the function that tells what processes do. Its
// successor, nvmlDeviceGetProcessesUtilizationInfo, tells more engines, and
// the binding gives it no buffer.
const processUtilization = "nvmlDeviceGetProcessUtilization"

// processLists are the functions that list processes, each in all the versions
// of which one will do. All three are needed: without the list of the clients
// of MPS servers nobody knows whose work a server does.
func processLists() [][]string {
	versions := func(name string) []string { return []string{name, name + "_v2", name + "_v3"} }
	return [][]string{
		versions("nvmlDeviceGetComputeRunningProcesses"),
		versions("nvmlDeviceGetGraphicsRunningProcesses"),
		versions("nvmlDeviceGetMPSComputeRunningProcesses"),
	}
}

// processes tells which processes use a whole GPU, and what they do there. The
// driver leaves out those that the caller's pid namespace does not have.
type processes struct {
	wanted func() bool // nil: never

	gpu    nvml.Device
	absent bool // the GPU, or the library, does not list them
	work   work
}

// take goes over to what a look for GPUs has found.
func (p *processes) take(f *finding) {
	p.gpu, p.absent = f.gpu, false
	for _, versions := range processLists() {
		p.absent = p.absent || !f.symbols.any(versions...)
	}
	p.work.absent = !f.symbols.has(processUtilization)
}

// read adds the processes to the observation. Where only their utilization
// fails they are told without it.
func (p *processes) read(o *device.Observation, now clock.Instant) error {
	if p.absent || p.wanted == nil || !p.wanted() {
		p.work.forget()
		return nil
	}
	list, ret := p.list()
	switch {
	case ret == nvml.SUCCESS:
	case unknown(ret):
		return nil
	case denied(ret):
		p.absent = true
		return nil
	default:
		return fmt.Errorf("list the processes of %s: %w", o.Device.UUID, ret)
	}
	ret = p.work.measure(p.gpu, now)
	o.Processes = p.work.tell(list, ret == nvml.SUCCESS)
	if ret == nvml.SUCCESS || unknown(ret) || denied(ret) || ret == nvml.ERROR_INSUFFICIENT_SIZE {
		return nil
	}
	return fmt.Errorf("measure the processes of %s: %w", o.Device.UUID, ret)
}

// list lists the processes with the memory that they use; one may be in it
// twice. It is not nil where nobody uses the GPU.
func (p *processes) list() ([]device.Process, nvml.Return) {
	all := []device.Process{}
	for _, from := range []struct {
		infos    func() ([]nvml.ProcessInfo, nvml.Return)
		proxied  bool
		optional bool // a GPU that does not have the list has no such processes
	}{
		{infos: p.gpu.GetComputeRunningProcesses},
		{infos: p.gpu.GetGraphicsRunningProcesses, optional: true},
		{infos: p.gpu.GetMPSComputeRunningProcesses, proxied: true},
	} {
		infos, ret := sized(from.infos)
		if from.optional && unsupported(ret) {
			continue
		}
		if ret != nvml.SUCCESS {
			return nil, ret
		}
		for _, info := range infos {
			if pid, believed := pidOf(info.Pid); believed {
				all = append(all, device.Process{
					PID: pid, Memory: memoryOf(info.UsedGpuMemory), Utilization: device.Unknown, Proxied: from.proxied,
				})
			}
		}
	}
	return all, nvml.SUCCESS
}

// memoryOf is what a process uses, in bytes: all ones stand for
// NVML_VALUE_NOT_AVAILABLE.
func memoryOf(bytes uint64) float64 {
	if bytes == math.MaxUint64 {
		return device.Unknown
	}
	return float64(bytes)
}

// pidOf reports whether a number can be a pid: drivers leave entries of their
// buffers empty, or with what was in them.
func pidOf(number uint32) (pid int, believed bool) {
	return int(number), number != 0 && number <= math.MaxInt32
}

// denied reports whether processes are not told, and will not be soon.
func denied(ret nvml.Return) bool { return unsupported(ret) || ret == nvml.ERROR_NO_PERMISSION }

// sized asks for a list whose length the binding asks for first. A list that
// has grown in between is asked for once more: the binding then returns an
// error, or cuts its array where there is nothing to cut and panics.
func sized[T any](ask func() ([]T, nvml.Return)) (list []T, ret nvml.Return) {
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
