// Package device defines the terms of hardware: what a device is, what can be
// read of it, and where readings come from. It does not depend on Kubernetes.
// Each source is a package below it.
package device

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Device is the identity of one piece of hardware, or of one partition of
// it. Unknown strings are empty; all strings are valid UTF-8.
type Device struct {
	UUID            string // the vendor's; empty where it gives none (then PCIBusID or Published is set)
	ParentUUID      string // of a partition: the UUID of the whole device
	Vendor          string // nvidia, amd, intel, …
	Model           string
	PCIBusID        string // lower case, domain of four digits: 0000:c1:00.0
	Minor           int    // the N of /dev/nvidiaN, or Unknown
	RenderMinor     int    // the N of /dev/dri/renderDN, or Unknown
	Profile         string // of a partition: 1g.10gb
	Placement       int    // of a partition: its first memory slice, or Unknown
	GPUInstance     int    // of a MIG partition: the id of its GPU instance, or Unknown
	ComputeInstance int    // of a MIG partition: the id of its compute instance, or Unknown
	DriverVersion   string
	Nodes           []string // its own device files, e.g. /dev/nvidia3
	LinkDomain      string   // the devices with the same one reach each other over NVLink or xGMI; empty: none, or unknown
	Hardware        Hardware // of a whole device; a partition has none

	// Published is set only by a source that identifies devices by the names under
	// which a DRA driver publishes them. Such a device has no UUID and no PCI
	// address: it is never merged with one of another source.
	Published PublishedName
	// PublishedParent is set for partitions that are identified in this way: the
	// name under which the driver publishes the whole device, in the same pool.
	PublishedParent string
}

// PublishedName is the name under which a DRA driver publishes a device. The
// zero value is unknown.
type PublishedName struct {
	Driver string
	Pool   string // empty: whichever pool of the driver on this node has the device
	Device string
}

// Unknown is the value of a number that the source does not report.
const Unknown = -1

// IsPartition reports whether the device is a part of another.
func (d Device) IsPartition() bool { return d.ParentUUID != "" }

// Observation is a device and what one read found of it. Readings has the
// readings of the fast tier. Slow has those of the slow tier, and is filled
// only by a read of the slow tier. Together they have at most one entry for
// each quantity and details; what could not be read is omitted. A device of
// which nothing could be read is still observed: its identity stays known. An
// observation belongs to the caller.
//
// A source that knows when a reading was measured says so in Measured, in
// elapsed time of the sampler's clock. A reading without it was measured while
// it was read: the sampler sets the time from the beginning of the read to its
// end.
type Observation struct {
	Device    Device
	Readings  []Reading
	Slow      []Reading
	Processes []Process // all that use the device, in any order; nil: they could not be listed
}

// Weight returns roughly how many bytes of memory observations take, including the
// state that is kept for each device and process, and the texts of details.
func Weight(observations []Observation) int {
	const ofDevice, ofProcess, ofReading = 1024, 256, 64
	sum := 0
	for i := range observations {
		o := &observations[i]
		sum += ofDevice + ofProcess*len(o.Processes)
		for _, readings := range [][]Reading{o.Readings, o.Slow} {
			sum += ofReading * len(readings)
			for j := range readings {
				sum += len(readings[j].Details[0]) + len(readings[j].Details[1])
			}
		}
	}
	return sum
}

// Sample is what is known of a device now: its identity, and the newest
// readings of both tiers. Each reading has its own time of measurement, which
// is not that of the sample: a slow reading keeps the time of the slow read
// that found it, and a reading of another source, or of a library that samples
// by itself, may be older than At. A Sample is never changed once it has been
// published.
type Sample struct {
	Device    Device
	Source    string        // name of the source that saw it, the first in precedence
	At        clock.Instant // the newest successful fast read; zero: none yet
	Readings  []Reading     // sorted by quantity, then details; Measured is set
	XIDs      []XID         // sorted by code; nil: no source watches them
	XIDSource string        // name of the source that received them, set by Merge; empty: no source watches them
	Released  bool          // the source is closed, so that others can use the device: nothing is newer than before

	Processes   []Process     // sorted by pid, each once
	ProcessesAt clock.Instant // when they were listed last; zero: never

	answers quantitySet // what the source has ever read of the device
	bare    bool        // nothing but the UUID is known: it has not been read yet
}

// PCIAddress spells a PCI address as the kernel does, 0000:1a:00.0: lower
// case, a domain of at least four digits. Libraries write longer domains and
// upper case (00000000:1A:00.0). It is empty for anything else.
func PCIAddress(spelled string) string {
	domain, rest, _ := strings.Cut(spelled, ":")
	bus, rest, _ := strings.Cut(rest, ":")
	slot, function, _ := strings.Cut(rest, ".")
	var numbers [4]uint64
	for i, part := range []string{domain, bus, slot, function} {
		n, err := strconv.ParseUint(part, 16, []int{32, 8, 5, 3}[i])
		if err != nil {
			return ""
		}
		numbers[i] = n
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", numbers[0], numbers[1], numbers[2], numbers[3])
}

// Process is the use of a whole device by one process. Processes of partitions
// are not reported.
type Process struct {
	PID         int     // in this program's pid namespace
	Memory      float64 // device memory that it uses, bytes, or Unknown
	Utilization float64 // share of time with its work on the device since the list before, 0 to 1, or Unknown
	Proxied     bool    // it works through a server (MPS), which may be reported as doing its work
}

// mergeProcesses merges the entries of each pid, since a process may be in several
// lists of a library, and sorts by pid. It keeps the larger of two numbers: each
// describes the whole process, and Unknown is below all others. It drops invalid
// pids. It reuses the list.
func mergeProcesses(processes []Process) []Process {
	processes = slices.DeleteFunc(processes, func(p Process) bool { return p.PID <= 0 })
	slices.SortFunc(processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	merged := processes[:0]
	for _, p := range processes {
		p.Memory, p.Utilization = known(p.Memory), known(p.Utilization)
		last := len(merged) - 1
		if last < 0 || merged[last].PID != p.PID {
			merged = append(merged, p)
			continue
		}
		process := &merged[last]
		process.Memory = max(process.Memory, p.Memory)
		process.Utilization = max(process.Utilization, p.Utilization)
		process.Proxied = process.Proxied || p.Proxied
	}
	return merged
}

// known returns a value that is a number of zero or more, else Unknown.
func known(value float64) float64 {
	if value >= 0 && !math.IsInf(value, 1) {
		return value
	}
	return Unknown
}

// XID is one kind of error that NVIDIA's driver reports about a GPU ("Xid"),
// with its number of reports since the source began to watch, and the time of
// the last one. The codes are NVIDIA's.
type XID struct {
	Code  int
	Count uint64
	Last  time.Time
}
