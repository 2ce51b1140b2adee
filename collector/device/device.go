// Package device is the vocabulary of hardware: what a device is, what can
// be read of it, and where readings come from. It knows nothing of
// Kubernetes. Beneath it are the sources, one package each.
package device

import "github.com/dra-exporter/dra-exporter/collector/clock"

// Device is the identity of one piece of hardware, or of one partition of
// it. Unknown strings are empty; all strings are valid UTF-8.
type Device struct {
	UUID            string // the vendor's; empty where it gives none (then PCIBusID is set)
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
}

// Unknown is the value of a number of an identity that the source does not tell.
const Unknown = -1

// IsPartition reports whether the device is a part of another.
func (d Device) IsPartition() bool { return d.ParentUUID != "" }

// Observation is a device and what one read found of it. Readings are those
// of the fast tier, Slow those of the slow one, which only a read of the slow
// tier fills. Together they hold at most one entry for each quantity and
// details; what could not be read is not in them. A device of which nothing
// could be read is still observed: its identity stays known. An observation
// belongs to whom it was returned to.
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
	XIDs      []XID         // sorted by code; nil: nobody listens for them
	XIDSource string        // name of the source that heard them, set by Merge; empty: nobody listens

	Processes   []Process     // sorted by pid, each once
	ProcessesAt clock.Instant // when they were listed last; zero: never

	answers quantitySet // what the source has ever read of the device
	bare    bool        // nothing but the UUID is known: it has not been read yet
}
