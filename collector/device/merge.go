package device

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// StaleAfter is how old the last successful read of a device may be before
// its readings no longer tell what is.
func StaleAfter(interval time.Duration) time.Duration { return max(3*interval, 10*time.Second) }

// Merge makes one device of what several sources see of it. bySource holds
// each source's samples in the order of precedence. Two samples mean the same
// device when they have the same UUID, or, for whole devices of which one has
// no UUID, the same PCI address.
//
// The first source to see a device gives its identity, its time and its
// readings. Later ones add the quantities that it has never read, but only
// where their own read is at most stale older: a quantity never passes from
// one source to another and back, because two sources may count the same
// thing from different origins.
//
// Where one source sees the same device twice, the first of its samples is
// kept and the other's identity is told in duplicates. The result is sorted
// by source, then UUID, then PCI address. The samples given are not changed.
func Merge(bySource [][]Sample, stale time.Duration) (merged []Sample, duplicates []string) {
	var found index
	for rank, samples := range bySource {
		for _, sample := range samples {
			at, known := found.find(sample.Device)
			switch {
			case !known:
				found.add(sample, rank)
			case found.seen[at].rank == rank || found.seen[at].also == rank:
				duplicates = append(duplicates, identity(sample.Device))
			default:
				found.seen[at].supplement(sample, rank, stale)
			}
		}
	}
	return found.samples(), duplicates
}

// identity is what a device is called where its UUID may be missing.
func identity(d Device) string { return cmp.Or(d.UUID, d.PCIBusID) }

// sighting is a sample, the rank of its source, and the rank of the last
// source that saw the same device.
type sighting struct {
	Sample
	rank, also int
}

// supplement adds the readings of a later source that the device lacks.
func (s *sighting) supplement(other Sample, rank int, stale time.Duration) {
	s.also = rank
	if other.At.IsZero() || s.At.Since(other.At) > stale {
		return
	}
	had := s.answers.with(s.Readings)
	var lacking []Reading
	for _, reading := range other.Readings {
		if !had.has(reading.Quantity) {
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
	s.answers = had.with(lacking)
}

// index finds the device that a sample means among those seen before.
type index struct {
	seen   []sighting
	byUUID map[string]int
	byPCI  map[string]int // whole devices only
}

func (x *index) find(d Device) (at int, known bool) {
	if d.UUID != "" {
		if at, known = x.byUUID[d.UUID]; known {
			return at, true
		}
	}
	if d.PCIBusID == "" || d.IsPartition() {
		return 0, false
	}
	at, known = x.byPCI[d.PCIBusID]
	return at, known && (d.UUID == "" || x.seen[at].Device.UUID == "")
}

func (x *index) add(sample Sample, rank int) {
	if x.byUUID == nil {
		x.byUUID, x.byPCI = make(map[string]int), make(map[string]int)
	}
	at, d := len(x.seen), sample.Device
	x.seen = append(x.seen, sighting{Sample: sample, rank: rank, also: rank})
	if d.UUID != "" {
		x.byUUID[d.UUID] = at
	}
	if _, taken := x.byPCI[d.PCIBusID]; d.PCIBusID != "" && !d.IsPartition() && !taken {
		x.byPCI[d.PCIBusID] = at
	}
}

func (x *index) samples() []Sample {
	slices.SortStableFunc(x.seen, func(a, b sighting) int {
		return cmp.Or(
			cmp.Compare(a.rank, b.rank),
			strings.Compare(a.Device.UUID, b.Device.UUID),
			strings.Compare(a.Device.PCIBusID, b.Device.PCIBusID),
		)
	})
	samples := make([]Sample, len(x.seen))
	for i, s := range x.seen {
		samples[i] = s.Sample
	}
	return samples
}
