package dra

// TopologyLevel is a level of what connects nodes, the nearest first.
type TopologyLevel uint8

// The levels, of which a node is in one domain each.
const (
	LevelLink  TopologyLevel = iota // GPUs of several nodes reach each other over NVLink or a like fabric
	LevelRack                       // a rack, or the nodes of one switch
	LevelBlock                      // several racks with full bandwidth between them

	TopologyLevels = iota
)

// String returns the name of the level in flags and labels.
func (l TopologyLevel) String() string {
	return [TopologyLevels]string{"link_domain", "rack", "block"}[l]
}

// Domains is the domain of a node at each level; empty: unknown, or none.
type Domains [TopologyLevels]string
