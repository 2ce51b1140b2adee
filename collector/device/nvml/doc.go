// Package nvml reads NVIDIA GPUs and their MIG devices through NVIDIA's
// management library, libnvidia-ml.so.1. The library is opened at run time:
// the program builds and starts without it, and the source then says that it
// is missing.
//
// Calls into the library can hang for as long as the driver does, and nothing
// can end them. Each GPU therefore has a reader of its own.
//
// What is read is one table, in rows.go and the files that it names. The
// names, units and return codes are those of nvml.h. A call that a GPU does
// not support is not repeated before the source has looked for its GPUs again.
// As much as possible is read as field values, many in one call.
//
// Of MIG devices nothing is told but what is measured of them alone: memory,
// and with Options.Profiling the activity of their engines and, by it, their
// utilization, where the device is the only one in its GPU instance. Nothing of the kind is taken of a GPU
// unless it is asked for, and no setting is ever changed.
//
// Counters are the hardware's, and fall only where it began anew: that of all
// NVLinks, where all of them did at once. The PCIe counters are 32 bits wide: a
// wrap between two reads is seen, a second one is not, so that what is more
// than 4 GiB from one read to the next is lacking; they are told all the same,
// as the least that went over PCIe. Time under a throttle reason that the GPU
// does not count is added up here, and counts from the source's first read.
//
// A GPU that says that it is lost is told as lost until it is back, also while
// the library refuses its handle; the library is initialized anew, ever more
// seldom, to find it again. So it is while any other GPU cannot be told, and
// when sysfs shows one that the library does not list. A GPU that was bound to
// another driver is gone, and not lost.
//
// XIDs are heard of as they happen, by an event set and a goroutine of its
// own, which end with each initialization. They are counted for the MIG device
// that an event names, as long as it has been read once, else for the GPU.
//
// With Options.Processes the processes that use a GPU which is not in MIG mode
// are listed in each read, in four calls. What they do is asked for since the
// read before. Processes are told as the library tells them, and not at all
// where it cannot list all of them; those of other pid namespaces it leaves out.
//
// The library's functions are bound when they are first called, and one that
// an older library lacks would end the process. So every function outside the
// oldest core is looked up before it is called. A binary that a toolchain
// links with immediate binding by default must be linked with -Wl,-z,lazy.
package nvml

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Options are what the source can be told. The zero value is what it does by
// itself.
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
