package dra

// Supply is what is published, and what of it is left. It is immutable; what
// did not change since the Supply before is shared with it.
type Supply struct {
	Version uint64          // of the inventory
	Pools   []*PoolSupply   // sorted by driver and pool; an equal pointer means that nothing changed
	Classes []ClassSupply   // sorted by name; only those whose devices have been counted
	Taints  []TaintCount    // sorted
	Tainted []TaintedDevice // devices with any taint, sorted

	Evictions  []RuleEviction // sorted by rule; only of rules for which that is reported
	BroadRules []BroadRule    // sorted by rule

	// Oversized counts claims that are not allocated, and templates, which
	// cannot be diagnosed because of a limit. All limits are in it.
	Oversized map[SpecLimit]int
}

// PoolSupply is one pool at its newest generation.
type PoolSupply struct {
	Driver, Pool string
	Node         string // empty where its devices are not one node's
	Generation   int64
	Slices       int  // of the newest generation; 0: all are gone, and something still holds a device of it
	Complete     bool // as many slices as the pool's resourceSliceCount
	Devices      [DeviceStates]int
	Names        []string         // of the devices, sorted
	Capacity     []CapacitySupply // of devices that several claims may share

	// Counters is set if a device consumes counters; Overdrawn if devices are
	// allocated, at least one of them in shares, that consume more of a counter
	// together than the pool has.
	Counters, Overdrawn bool

	// Partitions are the devices that consume counters, by the attribute that
	// their slice names, sorted by type. They are left out if there are more
	// than PartitionTypes.
	Partitions []PartitionSupply
}

// DistinctCapacities yields the capacities that occur once, with their places in Capacity.
// A pool that contradicts itself may have a device twice: it is not known which of the two
// applies.
func (p *PoolSupply) DistinctCapacities(yield func(int, *CapacitySupply) bool) {
	type key struct{ device, capacity string }
	counts := make(map[key]int, len(p.Capacity))
	for i := range p.Capacity {
		counts[key{p.Capacity[i].Device, p.Capacity[i].Capacity}]++
	}
	for i := range p.Capacity {
		if c := &p.Capacity[i]; counts[key{c.Device, c.Capacity}] == 1 && !yield(i, c) {
			return
		}
	}
}

// PartitionTypes is how many types of partitions a pool may have. More are an
// error for Kubernetes too (ResourcePoolStatusRequest).
const PartitionTypes = 32

// PartitionSupply is the partitions of one type of a pool.
type PartitionSupply struct {
	Type    string
	Devices [DeviceStates]int
}

// DeviceState is what can be done with a published device.
type DeviceState uint8

// Each device of the newest generation is in one of these: something holds it
// (wholly or in part), it can be allocated now, or it cannot: it has a taint,
// what it is cut from is spent, or its pool is not complete.
const (
	DeviceAllocated DeviceState = iota
	DeviceFree
	DeviceUnavailable
	DeviceStates = iota
)

func (s DeviceState) String() string {
	return [DeviceStates]string{"allocated", "free", "unavailable"}[s]
}

// DownReason is why a published device is down, allocated or not.
type DownReason uint8

// The reasons, in the order in which they are looked for: a device has the first that
// applies. Cordons are the last, because most of them are planned.
const (
	DownNodeNotReady   DownReason = iota
	DownPoolIncomplete            // or invalid: nothing is allocated from it
	DownDriverTaint
	DownRuleTaint
	DownNodeCordoned
	DownReasons = iota
)

func (r DownReason) String() string {
	return [DownReasons]string{"node_not_ready", "pool_incomplete", "driver_taint", "rule_taint", "node_cordoned"}[r]
}

// CapacitySupply is one capacity of one device that may be shared, in the
// capacity's own unit.
type CapacitySupply struct {
	Device, Capacity string
	Total, Consumed  float64
}

// ClassSupply is a device class and the devices that it selects.
type ClassSupply struct {
	Class            string
	ExtendedResource string // empty without one
	Counted          bool   // its selectors have been evaluated for all devices
	Devices          [DeviceStates]int
	Down             [DownReasons]int // of them, by reason
	Error            string           // why its selectors cannot be evaluated; empty if they can
}

// TaintCount counts devices of one pool that have the taint, from a slice or
// from a DeviceTaintRule.
type TaintCount struct {
	Driver, Pool string
	Taint        Taint // without its value
	Devices      int
}

// RuleEviction is how far the eviction of the pods has come whose devices a
// DeviceTaintRule taints, as reported by the controller manager (condition
// EvictionInProgress).
type RuleEviction struct {
	Rule       string
	InProgress bool   // pods have yet to be evicted
	Reason     string // such as PodsPendingEviction, Completed, NotStarted, NoEffect
	Message    string // numbers of pods
}

// BroadRule is a DeviceTaintRule with an empty selector, which selects all devices
// of the cluster.
type BroadRule struct {
	Rule  string
	Taint Taint
}

// TaintedDevice is a device with its taints, those of rules included.
type TaintedDevice struct {
	Device  DeviceID
	Taints  []Taint // of its slice
	ByRules []Taint
	Holders []ClaimRef
}
