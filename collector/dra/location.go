package dra

// Alignment is how near devices of one node are to each other, the nearest first.
type Alignment uint8

// The alignments. The first three are also the levels at which devices have a place in
// common.
const (
	AlignedLink    Alignment = iota // they reach each other over NVLink or xGMI
	AlignedRoot                     // they are behind one PCIe root complex
	AlignedNUMA                     // they are next to one NUMA node
	AlignedUnknown                  // it is not known where some of them are
	Crossing                        // they are next to several NUMA nodes
	Alignments     = iota
)

// AlignmentLevels is how many of the alignments are levels.
const AlignmentLevels = AlignedUnknown

// String returns the name of the alignment in labels and documents.
func (a Alignment) String() string {
	return [Alignments]string{"link", "pcie_root", "numa_node", "unknown", "crossing"}[a]
}

// LinkUnknown is the link domain of a device that has NVLinks if it is not known which
// devices it reaches over them.
const LinkUnknown = "unknown"

// Location is where a device is in its node. Unknown texts are empty.
type Location struct {
	Link string // NVLink domain or xGMI hive; LinkUnknown
	Root string // PCIe root complex
	NUMA string // number of the NUMA node
}

// At returns the place of the location at one of the levels: what all devices that are
// aligned so have in common; empty: unknown, or none.
func (l Location) At(level Alignment) string {
	if level == AlignedLink && l.Link == LinkUnknown {
		return ""
	}
	return [AlignmentLevels]string{AlignedLink: l.Link, AlignedRoot: l.Root, AlignedNUMA: l.NUMA}[level]
}

// AlignmentWith returns how near two devices are.
func (l Location) AlignmentWith(other Location) Alignment {
	for level := range AlignmentLevels {
		if at := l.At(level); at != "" && at == other.At(level) {
			return level
		}
	}
	if l.NUMA == "" || other.NUMA == "" || l.Link == LinkUnknown && other.Link == LinkUnknown {
		return AlignedUnknown
	}
	return Crossing
}

// AlignmentOf returns how near the two devices are that are farthest apart.
func AlignmentOf(locations []Location) Alignment {
	worst := AlignedLink
	for i, location := range locations {
		for _, other := range locations[:i] {
			worst = max(worst, location.AlignmentWith(other))
		}
	}
	return worst
}

// AlignmentWithNearest returns how near that device is to its nearest network adapter
// that has none nearer.
func AlignmentWithNearest(locations, adapters []Location) Alignment {
	worst := AlignedLink
	for _, location := range locations {
		nearest := Crossing
		for _, adapter := range adapters {
			nearest = min(nearest, location.AlignmentWith(adapter))
		}
		worst = max(worst, nearest)
	}
	return worst
}
