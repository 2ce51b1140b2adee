package device

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// StaleAfter returns the age of the last successful read of a device at which
// its readings are stale.
func StaleAfter(interval time.Duration) time.Duration { return max(3*interval, 10*time.Second) }

// Merge merges the samples of several sources, so that each device has one. bySource
// holds each source's samples in the order of precedence. Two samples mean the same
// device when they have the same UUID; or, for whole devices of which one has no UUID,
// the same PCI address; or, for partitions that two sources see, the same parent, GPU
// instance and compute instance, unless both have a UUID of the partition's own: a
// placement is reused after a partition is destroyed.
//
// The first source to see a device gives its identity, its time and its
// readings. Later ones add the quantities that it has never read, but only
// where their own read is at most stale older. These readings keep their own
// times of measurement, which may be older than the time of the sample. A
// quantity never passes from one source to another and back, because two
// sources may count the same thing from different origins. XIDs are those of the
// first source that watches them, which XIDSource names, and are never added up
// for the same reason.
// Processes are those of the first source that has ever listed them.
//
// The UUID stays that of the first source in precedence for as long as that
// source reports the device. A source that fails keeps its devices: a UUID changes
// only when such a source begins or ceases to report the device. A later source
// fills in what the first does not know of the identity.
//
// Where one source sees the same device twice, the first of its samples is
// kept and the other's identity is in duplicates. The result is sorted
// by source, then UUID, then PCI address, then published name. The samples given
// are not changed.
func Merge(bySource [][]Sample, stale time.Duration) (merged []Sample, duplicates []string) {
	var found deviceIndex
	add := func(sample Sample, rank int) {
		at, ok := found.find(sample.Device, rank)
		switch {
		case !ok:
			found.add(sample, rank)
		case found.seen[at].rank == rank || found.seen[at].lastRank == rank:
			duplicates = append(duplicates, identity(sample.Device))
		default:
			found.seen[at].supplement(sample, rank, stale)
		}
	}
	// Sources that have read a device come before those that only list it.
	for _, bare := range []bool{false, true} {
		for rank, samples := range bySource {
			for _, sample := range samples {
				if sample.bare == bare {
					add(sample, rank)
				}
			}
		}
	}
	return found.samples(), duplicates
}

// compare orders names by driver, then pool, then device.
func (n PublishedName) compare(other PublishedName) int {
	return cmp.Or(
		strings.Compare(n.Driver, other.Driver),
		strings.Compare(n.Pool, other.Pool),
		strings.Compare(n.Device, other.Device),
	)
}

// With returns the sample with the quantities, XIDs and processes that it
// lacks, taken from another sample of the same device, as Merge does for a
// source that is later in precedence. The known parts of the identity stay.
// Neither sample is changed.
func (s Sample) With(other Sample, stale time.Duration) Sample {
	const later = math.MaxUint8 // no source of a sampler has this rank
	merged := mergedSample{Sample: s}
	merged.supplement(other, later, stale)
	return merged.Sample
}

// Having returns the sample with a record that its source has read these quantities of
// the device before, whether they have a value now or not.
func (s Sample) Having(quantities ...Quantity) Sample {
	for _, q := range quantities {
		s.answers |= 1 << q
	}
	return s
}

// identity returns a name of a device, also if its UUID is missing.
func identity(d Device) string { return cmp.Or(d.UUID, d.PCIBusID) }

// mergedSample is a sample, the rank of its source, the rank of the last source
// that has the same device, and that of the source of its XIDs.
type mergedSample struct {
	Sample
	rank, lastRank, xidRank int
}

// supplement adds what the device lacks and a later source has.
func (s *mergedSample) supplement(other Sample, rank int, stale time.Duration) {
	s.lastRank = rank
	s.identify(other.Device)
	if other.XIDs != nil && (s.XIDs == nil || rank < s.xidRank) {
		s.XIDs, s.XIDSource, s.xidRank = other.XIDs, other.Source, rank
	}
	if s.ProcessesAt.IsZero() {
		s.Processes, s.ProcessesAt = other.Processes, other.ProcessesAt
	}
	// The quantities that the other source has ever read belong to it from now on,
	// even while it is stale or has no value: no third source may supply them.
	had := s.answers.with(s.Readings)
	s.answers = had.with(other.Readings) | other.answers
	if other.At.IsZero() || s.At.Since(other.At) > stale {
		return
	}
	var lacking []Reading
	for _, reading := range other.Readings {
		if !had.has(reading.Quantity) {
			reading.Origin |= uint16(min(rank+1, math.MaxUint8)) << 8
			lacking = append(lacking, reading)
		}
	}
	if len(lacking) == 0 {
		return
	}
	if s.At.IsZero() {
		s.At = other.At
	}
	s.Readings = append(slices.Clone(s.Readings), lacking...)
	slices.SortFunc(s.Readings, Reading.compare)
}

// identify fills in what the device's identity lacks. A partition without a UUID
// is identified by its placement, which stays as it is.
func (s *mergedSample) identify(other Device) {
	d := &s.Device
	if d.UUID == "" && d.IsPartition() {
		return
	}
	for _, fill := range []struct{ known, other *string }{
		{&d.Vendor, &other.Vendor},
		{&d.Model, &other.Model},
		{&d.PCIBusID, &other.PCIBusID},
		{&d.Profile, &other.Profile},
		{&d.DriverVersion, &other.DriverVersion},
		{&d.LinkDomain, &other.LinkDomain},
	} {
		*fill.known = cmp.Or(*fill.known, *fill.other)
	}
	for _, fill := range []struct{ known, other *int }{
		{&d.Minor, &other.Minor},
		{&d.RenderMinor, &other.RenderMinor},
		{&d.Placement, &other.Placement},
		{&d.GPUInstance, &other.GPUInstance},
		{&d.ComputeInstance, &other.ComputeInstance},
	} {
		if *fill.known == Unknown {
			*fill.known = *fill.other
		}
	}
	if d.Nodes == nil {
		d.Nodes = other.Nodes
	}
	d.Hardware = d.Hardware.With(other.Hardware)
}

// deviceIndex finds the device that a sample means among those seen before.
type deviceIndex struct {
	seen       []mergedSample
	byUUID     map[string]int
	byPCI      map[string]int       // whole devices only
	byInstance map[migPlacement]int // partitions only
}

// migPlacement is the placement of a MIG partition, as every library reports it.
type migPlacement struct {
	parent       string
	gpu, compute int
}

// newMigPlacement reports whether the device is a partition whose place is known.
func newMigPlacement(d Device) (migPlacement, bool) {
	at := migPlacement{d.ParentUUID, d.GPUInstance, d.ComputeInstance}
	return at, at.parent != "" && at.gpu != Unknown && at.compute != Unknown
}

// ownUUID reports whether the UUID of a partition is unique to it. NVIDIA's
// older spelling, MIG-<UUID of the GPU>/<GPU instance>/<compute instance>,
// contains only its placement.
func ownUUID(d Device) bool { return d.UUID != "" && !strings.HasPrefix(d.UUID, "MIG-GPU-") }

func (x *deviceIndex) find(d Device, rank int) (at int, known bool) {
	if d.UUID != "" {
		if at, known = x.byUUID[d.UUID]; known {
			return at, true
		}
	}
	if d.IsPartition() {
		// Two of one source are two, whatever it says of their place.
		place, complete := newMigPlacement(d)
		at, known = x.byInstance[place]
		if !complete || !known || x.seen[at].rank == rank {
			return 0, false
		}
		return at, !ownUUID(d) || !ownUUID(x.seen[at].Device)
	}
	if d.PCIBusID == "" {
		return 0, false
	}
	at, known = x.byPCI[d.PCIBusID]
	return at, known && (d.UUID == "" || x.seen[at].Device.UUID == "")
}

func (x *deviceIndex) add(sample Sample, rank int) {
	if x.byUUID == nil {
		x.byUUID, x.byPCI, x.byInstance = make(map[string]int), make(map[string]int), make(map[migPlacement]int)
	}
	at, d := len(x.seen), sample.Device
	sample.XIDSource = ""
	if sample.XIDs != nil {
		sample.XIDSource = sample.Source
	}
	x.seen = append(x.seen, mergedSample{Sample: sample, rank: rank, lastRank: rank, xidRank: rank})
	if d.UUID != "" {
		x.byUUID[d.UUID] = at
	}
	if _, ok := x.byPCI[d.PCIBusID]; d.PCIBusID != "" && !d.IsPartition() && !ok {
		x.byPCI[d.PCIBusID] = at
	}
	place, complete := newMigPlacement(d)
	if _, ok := x.byInstance[place]; complete && !ok {
		x.byInstance[place] = at
	}
}

func (x *deviceIndex) samples() []Sample {
	slices.SortStableFunc(x.seen, func(a, b mergedSample) int {
		return cmp.Or(
			cmp.Compare(a.rank, b.rank),
			strings.Compare(a.Device.UUID, b.Device.UUID),
			strings.Compare(a.Device.PCIBusID, b.Device.PCIBusID),
			a.Device.Published.compare(b.Device.Published),
		)
	})
	samples := make([]Sample, len(x.seen))
	for i, s := range x.seen {
		samples[i] = s.Sample
	}
	return samples
}
