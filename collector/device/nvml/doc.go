// Package nvml reads NVIDIA GPUs and their MIG devices through NVIDIA's
// management library, libnvidia-ml.so.1. The library is opened at run time:
// the program builds and starts without it, and the source then reports that it
// is missing.
//
// Calls into the library can hang for as long as the driver does, and nothing
// can end them. Each GPU therefore has a reader of its own.
//
// The readings are one table, in rows.go and the files that it names. Names,
// units and return codes are those of nvml.h. A call that a GPU does not support
// is not repeated until the source discovers its GPUs again. As many values as
// possible are read as field values, several in one call.
//
// Of MIG devices, only values that are measured for them alone are returned:
// memory, and with Options.Profiling the activity of their engines and, derived
// from it, their utilization, if the MIG device is the only one in its GPU
// instance. Profiling is not switched on for a GPU unless requested, and no
// setting is ever changed.
//
// Counters are those of the hardware. They decrease only where the hardware
// reset them; the counter of all NVLinks decreases when all of them were reset.
// The PCIe counters have 32 bits: one wrap between two reads is detected, a
// second one is not, so that the value is a lower bound if more than 4 GiB pass
// between two reads. Time under a throttle reason that the GPU does not count is
// added up here, from the source's first read.
//
// A GPU that reports itself as lost is returned as lost until it is back, even
// while the library refuses its handle. To find it again, the library is
// initialized again at increasing intervals. The same is done while any other
// GPU cannot be read, and when sysfs has a GPU that the library does not list. A
// GPU that was bound to another driver is removed, not lost.
//
// XIDs are received as they happen, by an event set and a goroutine that end
// with each initialization. They are counted for the MIG device that the event
// names, if it has been read once, else for the GPU. A set whose waits fail is
// replaced, and the GPUs are not watched until a wait for another one returns.
//
// With Options.Processes, each read lists the processes that use a GPU which is
// not in MIG mode, in four calls. Their utilization is that since the previous
// read. Processes are returned as the library reports them, and not at all if it
// cannot list all of them. It leaves out those of other pid namespaces.
//
// The library's functions are bound when they are first called, and a function
// that an older library lacks would end the process. Every function outside the
// oldest core is therefore looked up before it is called. A binary that a
// toolchain links with immediate binding by default must be linked with
// -Wl,-z,lazy.
package nvml

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Options configure the source. The zero value is the default.
type Options struct {
	Library   string        // path of libnvidia-ml.so.1; empty: where the system finds it
	Links     bool          // read each NVLink by itself, not only their sum
	Profiling bool          // read engine activity (GPM)
	Interval  time.Duration // between two fast reads; 0: the sampler's default
	Sysfs     string        // where sysfs is mounted; empty: /sys
	Clock     clock.Clock   // the sampler's: readings have times of it; nil: one of its own

	// Processes says, at each read, whether to list the processes that use
	// a GPU. It must be safe for concurrent use; nil: they are not listed.
	Processes func() bool
}
