//go:build cgo

package nvml

import (
	"fmt"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// processUtilization is the function that reports the utilization of processes.
// Its successor, nvmlDeviceGetProcessesUtilizationInfo, reports more engines, but
// the binding gives it no buffer.
const processUtilization = "nvmlDeviceGetProcessUtilization"

// processLists are the functions that list processes, each in all the versions
// of which one is enough. All three are needed: without the list of the clients
// of MPS servers, the work of a server cannot be attributed.
func processLists() [][]string {
	versions := func(name string) []string { return []string{name, name + "_v2", name + "_v3"} }
	return [][]string{
		versions("nvmlDeviceGetComputeRunningProcesses"),
		versions("nvmlDeviceGetGraphicsRunningProcesses"),
		versions("nvmlDeviceGetMPSComputeRunningProcesses"),
	}
}

// processes reads which processes use a whole GPU, and their utilization. The
// driver leaves out those that the caller's pid namespace does not have.
type processes struct {
	wanted func() bool // nil: never

	gpu         nvml.Device
	absent      bool // the GPU, or the library, does not list them
	utilization utilizationSamples
}

// use sets the handle of the GPU and the functions of the library.
func (p *processes) use(gpu nvml.Device, available symbols) {
	p.gpu, p.absent = gpu, false
	for _, versions := range processLists() {
		p.absent = p.absent || !available.any(versions...)
	}
	p.utilization.absent = !available.has(processUtilization)
}

// read adds the processes to the observation. Where only their utilization
// fails, they are returned without it.
func (p *processes) read(o *device.Observation, now clock.Instant) error {
	if p.absent || p.wanted == nil || !p.wanted() {
		p.utilization.reset()
		return nil
	}
	list, ret := p.list()
	switch {
	case ret == nvml.SUCCESS:
	case unknown(ret):
		return nil
	case inaccessible(ret):
		p.absent = true
		return nil
	default:
		return fmt.Errorf("list the processes of %s: %w", o.Device.UUID, ret)
	}
	ret = p.utilization.measure(p.gpu, now)
	o.Processes = p.utilization.complete(list, ret == nvml.SUCCESS)
	if ret == nvml.SUCCESS || unknown(ret) || inaccessible(ret) || ret == nvml.ERROR_INSUFFICIENT_SIZE {
		return nil
	}
	return fmt.Errorf("measure the processes of %s: %w", o.Device.UUID, ret)
}

// list lists the processes with the memory that they use; one may be in it
// twice. It is not nil if no process uses the GPU.
func (p *processes) list() ([]device.Process, nvml.Return) {
	all := []device.Process{}
	for _, list := range []struct {
		infos    func() ([]nvml.ProcessInfo, nvml.Return)
		proxied  bool
		optional bool // a GPU that does not have the list has no such processes
	}{
		{infos: p.gpu.GetComputeRunningProcesses},
		{infos: p.gpu.GetGraphicsRunningProcesses, optional: true},
		{infos: p.gpu.GetMPSComputeRunningProcesses, proxied: true},
	} {
		infos, ret := readList(list.infos)
		if list.optional && unsupported(ret) {
			continue
		}
		if ret != nvml.SUCCESS {
			return nil, ret
		}
		for _, info := range infos {
			if pid, valid := processID(info.Pid); valid {
				all = append(all, device.Process{
					PID: pid, Memory: processMemory(info.UsedGpuMemory), Utilization: device.Unknown, Proxied: list.proxied,
				})
			}
		}
	}
	return all, nvml.SUCCESS
}

// processMemory is what a process uses, in bytes: all ones stand for
// NVML_VALUE_NOT_AVAILABLE.
func processMemory(bytes uint64) float64 {
	if bytes == math.MaxUint64 {
		return device.Unknown
	}
	return float64(bytes)
}

// processID reports whether a number can be a pid: drivers leave entries of their
// buffers empty, or with what was in them.
func processID(number uint32) (pid int, valid bool) {
	return int(number), number != 0 && number <= math.MaxInt32
}

// samplePeriod is the longest time for which the library takes one sample of
// what is done (nvmlUtilization_t).
const samplePeriod = time.Second

// sampleLifetime is for how long a sample is used for its process while there is
// no newer one. It is a little shorter than a period, so that each of two reads
// that are a period apart has samples of its own.
const sampleLifetime = samplePeriod * 9 / 10

// utilizationSamples is the utilization of a GPU by its processes, as far as the
// library reports it: an idle process has no sample.
type utilizationSamples struct {
	absent bool // the GPU, or the library, does not report it

	samples map[int]utilizationSample // by pid; those that still stand, and the newest
	queried clock.Instant             // zero: not since it is wanted
}

// utilizationSample is the utilization of one process.
type utilizationSample struct {
	ratio float64 // or device.Unknown
	at    int64   // Unix microseconds, by the driver
}

// reset makes the next measurement the first.
func (w *utilizationSamples) reset() { w.samples, w.queried = nil, clock.Instant{} }

// measure queries the utilization since the last query, or during one sample
// period if there was none: earlier samples belong to earlier readings.
func (w *utilizationSamples) measure(gpu nvml.Device, now clock.Instant) nvml.Return {
	if w.absent {
		return nvml.ERROR_NOT_SUPPORTED
	}
	start := w.since(now)
	reported, ret := readList(func() ([]nvml.ProcessUtilizationSample, nvml.Return) {
		return gpu.GetProcessUtilization(uint64(start))
	})
	switch {
	case ret == nvml.ERROR_NOT_FOUND, ret == nvml.ERROR_INSUFFICIENT_SIZE && reported != nil && len(reported) == 0:
		reported = nil // nothing is newer
	case inaccessible(ret):
		w.absent = true
		fallthrough
	case ret != nvml.SUCCESS:
		w.reset()
		return ret
	}
	w.queried = now
	w.apply(reported, start, now)
	return nvml.SUCCESS
}

// since is the time after which samples are new: that of the newest one so
// far, but no further back than the last query. The driver's times are the
// wall clock's; a time far ahead is from before the clock was set back.
func (w *utilizationSamples) since(now clock.Instant) int64 {
	back := samplePeriod
	if !w.queried.IsZero() {
		back = max(back, now.Since(w.queried))
	}
	start := max(now.Wall.Add(-back).UnixMicro(), 0)
	for _, s := range w.samples {
		if s.at > start && s.at < ahead(now) {
			start = s.at
		}
	}
	return start
}

// ahead is the time up to which a sample may be recorded during a query.
func ahead(now clock.Instant) int64 { return now.Wall.Add(samplePeriod).UnixMicro() }

// apply applies the samples that are new. An older one is used for its process
// for a while, because there need not have been a newer one. Some drivers fill
// the buffer with samples that are older than requested: they are ignored.
func (w *utilizationSamples) apply(reported []nvml.ProcessUtilizationSample, start int64, now clock.Instant) {
	kept := make(map[int]utilizationSample, len(reported))
	first, last := now.Wall.Add(-sampleLifetime).UnixMicro(), ahead(now)
	for pid, s := range w.samples {
		if s.at > first && s.at < last {
			kept[pid] = s
		}
	}
	for _, t := range reported {
		pid, valid := processID(t.Pid)
		s := utilizationSample{ratio: float64(t.SmUtil) / 100, at: int64(t.TimeStamp)}
		if t.SmUtil > 100 {
			s.ratio = device.Unknown
		}
		if previous, ok := kept[pid]; valid && s.at > start && (!ok || s.at >= previous.at) {
			kept[pid] = s
		}
	}
	w.samples = kept
}

// complete adds the utilization of the processes to a list, if it is known. A
// process with a sample that is in no list has ended, or is about to: its memory
// is free.
func (w *utilizationSamples) complete(list []device.Process, known bool) []device.Process {
	if !known {
		return list
	}
	listed := make(map[int]bool, len(list))
	for i := range list {
		p := &list[i]
		p.Utilization = w.samples[p.PID].ratio
		listed[p.PID] = true
	}
	for pid, s := range w.samples {
		if !listed[pid] && s.ratio > 0 {
			list = append(list, device.Process{PID: pid, Utilization: s.ratio})
		}
	}
	return list
}
