//go:build cgo

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// samplePeriod is the longest time for which the library takes one sample of
// what is done (nvmlUtilization_t).
const samplePeriod = time.Second

// standing is for how long a sample stands for its process where none is
// newer. It is a little less than a period, so that each of two reads that are
// a period apart has samples of its own.
const standing = samplePeriod * 9 / 10

// work is what processes do on a GPU, as far as it is told: of a process that
// did nothing there is no sample.
type work struct {
	absent bool // the GPU, or the library, does not tell it

	samples map[int]workSample // by pid; those that still stand, and the newest
	asked   clock.Instant      // zero: not since it is wanted
}

// workSample is the utilization of one process.
type workSample struct {
	ratio float64 // or device.Unknown
	at    int64   // Unix microseconds, by the driver
}

// forget makes the next measurement the first.
func (w *work) forget() { w.samples, w.asked = nil, clock.Instant{} }

// measure asks what has been done since the last time, or for one sample
// period where it has not been asked then: what came before is the past of
// other readings.
func (w *work) measure(gpu nvml.Device, now clock.Instant) nvml.Return {
	if w.absent {
		return nvml.ERROR_NOT_SUPPORTED
	}
	since := w.since(now)
	told, ret := sized(func() ([]nvml.ProcessUtilizationSample, nvml.Return) {
		return gpu.GetProcessUtilization(uint64(since))
	})
	switch {
	case ret == nvml.ERROR_NOT_FOUND, ret == nvml.ERROR_INSUFFICIENT_SIZE && told != nil && len(told) == 0:
		told = nil // nothing is newer
	case denied(ret):
		w.absent = true
		fallthrough
	case ret != nvml.SUCCESS:
		w.forget()
		return ret
	}
	w.asked = now
	w.take(told, since, now)
	return nvml.SUCCESS
}

// since is the time after which samples are new: that of the newest one so
// far, but no further back than the last question. The driver's times are the
// wall clock's; what seems to lie far ahead is from before it was set back.
func (w *work) since(now clock.Instant) int64 {
	back := samplePeriod
	if !w.asked.IsZero() {
		back = max(back, now.Since(w.asked))
	}
	since := max(now.Wall.Add(-back).UnixMicro(), 0)
	for _, s := range w.samples {
		if s.at > since && s.at < ahead(now) {
			since = s.at
		}
	}
	return since
}

// ahead is the time up to which a sample may be recorded while it is asked for.
func ahead(now clock.Instant) int64 { return now.Wall.Add(samplePeriod).UnixMicro() }

// take takes in the samples that are new. An older one stands for its process
// for a while, in which there need not have been another. Some drivers fill
// the buffer with older samples than were asked for: those are not believed.
func (w *work) take(told []nvml.ProcessUtilizationSample, since int64, now clock.Instant) {
	kept := make(map[int]workSample, len(told))
	first, last := now.Wall.Add(-standing).UnixMicro(), ahead(now)
	for pid, s := range w.samples {
		if s.at > first && s.at < last {
			kept[pid] = s
		}
	}
	for _, t := range told {
		pid, believed := pidOf(t.Pid)
		s := workSample{ratio: float64(t.SmUtil) / 100, at: int64(t.TimeStamp)}
		if t.SmUtil > 100 {
			s.ratio = device.Unknown
		}
		if before, there := kept[pid]; believed && s.at > since && (!there || s.at >= before.at) {
			kept[pid] = s
		}
	}
	w.samples = kept
}

// tell completes a list by what its processes have done, if that is known. One
// that has done something and is in no list has ended meanwhile, or is about
// to: its memory is free.
func (w *work) tell(list []device.Process, known bool) []device.Process {
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
