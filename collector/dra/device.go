// Package dra is the vocabulary of Dynamic Resource Allocation: plain values
// that the kubelet client, the API server's client and the reducers exchange.
// It follows resource.k8s.io/v1 and the kubelet's PodResources API, and
// imports nothing of ours but the clock, and nothing of Kubernetes. All strings are valid
// UTF-8: whoever decodes foreign bytes sees to it.
package dra

// DeviceID names a published device within a cluster: the driver that
// publishes it, the pool (often the node's name) and the name in that pool.
type DeviceID struct {
	Driver, Pool, Name string
}

func (d DeviceID) String() string { return d.Driver + "/" + d.Pool + "/" + d.Name }

// PublishedDevice is a device of a ResourceSlice with what is needed to find
// its hardware. Empty strings and PlacementUnknown mean "not published".
type PublishedDevice struct {
	ID               DeviceID
	Node             string // empty for a network-attached device
	Passthrough      bool   // for virtual machines (vfio): the host has no counters of it
	UUID             string // the vendor's, as the driver spells it
	ParentUUID       string // of the GPU that a partition is cut from
	PCIAddress       string // lower case, domain of four digits: 0000:c1:00.0
	ParentPCIAddress string // likewise, of the GPU that a partition is cut from, where that is how its driver names it
	Profile          string // of a partition, e.g. 1g.10gb; of a device in one piece empty, whatever its driver calls that
	Placement        int    // first memory slice of a partition, or PlacementUnknown
	Model            string
	Version          string // of the driver, normalized by it to a semantic version
	PCIeRoot         string // pci<domain>:<bus> of the root complex that it is behind; empty: not published
	NUMANode         string // number of the NUMA node that it is next to; likewise

	MultipleAllocations bool               // several claims may share it
	Capacity            map[string]float64 // in the capacity's own unit (bytes for memory)
	Taints              []Taint
}

// PlacementUnknown is the Placement of a device that has none or hides it.
const PlacementUnknown = -1

// IsPartition reports whether the device is published as a part of another.
func (d PublishedDevice) IsPartition() bool {
	return d.ParentUUID != "" || d.Profile != "" || d.ParentPCIAddress != ""
}

// Taint is a device taint as its driver publishes it in a ResourceSlice.
type Taint struct {
	Key, Value, Effect string
}
