package load

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what a load does.
type Kind string

// The kinds.
const (
	Compute Kind = "compute" // multiplies and adds numbers of 32 bits in registers
	Memory  Kind = "memory"  // copies one half of the held memory to the other
	Tensor  Kind = "tensor"  // multiplies matrices of numbers of 16 bits
	Copy    Kind = "copy"    // copies from the host's memory to the device's
	Idle    Kind = "idle"    // holds memory and does nothing
	Fault   Kind = "fault"   // writes to an address that is not allocated, once
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Compute, Memory, Tensor, Copy, Idle, Fault} }

// What options may be.
const (
	LeastMemory = 16 << 20 // bytes
	MostCopy    = 1 << 30  // bytes
	LeastPeriod = 10 * time.Millisecond
	MostPeriod  = time.Second
	MostBlocks  = 32 // of 256 threads, on a multiprocessor
)

// Options say what load to generate on which device.
type Options struct {
	Library     string        // path or soname of libcuda
	Device      string        // index in CUDA's order, or UUID: GPU-… or MIG-…
	Kind        Kind          //
	Duty        int           // percent of each period in which the device is busy, 1 to 100
	Period      time.Duration // LeastPeriod to MostPeriod
	Memory      uint64        // bytes of the device's memory to hold, at least LeastMemory
	Duration    time.Duration // from the event "ready" on; 0: until the context ends
	CopyChunk   uint64        // bytes of one copy, at most MostCopy
	BlocksPerSM int           // 1 to MostBlocks
	Interval    time.Duration // between two events "progress"
	Grace       time.Duration // for which a call may go on after the end
}

// Validate returns an error that names the flag of each wrong option and what
// it may be.
func (o Options) Validate() error {
	var wrong []error
	check := func(right bool, format string, values ...any) {
		if !right {
			wrong = append(wrong, fmt.Errorf(format, values...))
		}
	}
	var kinds []string
	for _, kind := range Kinds() {
		kinds = append(kinds, string(kind))
	}
	check(slices.Contains(Kinds(), o.Kind), "--kind=%s: must be one of %s", o.Kind, strings.Join(kinds, ", "))
	_, err := strconv.ParseUint(o.Device, 10, 16)
	check(err == nil || isUUID(o.Device), "--device=%s: must be an index or a UUID (GPU-… or MIG-…)", o.Device)
	check(o.Library != "", "--library: must be a path or a soname")
	check(o.Duty >= 1 && o.Duty <= 100, "--duty=%d: must be 1 to 100 percent", o.Duty)
	check(o.Period >= LeastPeriod && o.Period <= MostPeriod, "--period=%s: must be %s to %s", o.Period, LeastPeriod, MostPeriod)
	check(o.Memory >= LeastMemory, "--memory=%d: must be at least %d bytes", o.Memory, uint64(LeastMemory))
	check(o.Duration >= 0, "--duration=%s: must not be negative", o.Duration)
	check(o.CopyChunk > 0 && o.CopyChunk <= MostCopy, "--copy-chunk=%d: must be 1 to %d bytes", o.CopyChunk, uint64(MostCopy))
	check(o.Kind != Copy || o.CopyChunk <= o.Memory, "--copy-chunk=%d: must not be larger than --memory=%d", o.CopyChunk, o.Memory)
	check(o.BlocksPerSM >= 1 && o.BlocksPerSM <= MostBlocks, "--blocks-per-sm=%d: must be 1 to %d", o.BlocksPerSM, MostBlocks)
	check(o.Interval > 0, "--interval=%s: must be positive", o.Interval)
	check(o.Grace > 0, "--grace=%s: must be positive", o.Grace)
	return errors.Join(wrong...)
}

// isUUID reports whether a device is named by its UUID.
func isUUID(device string) bool {
	return strings.HasPrefix(device, "GPU-") || strings.HasPrefix(device, "MIG-")
}
