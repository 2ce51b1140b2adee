package dra

// Headroom is what could be allocated beside what is, as of one version of the
// inventory. It is immutable.
type Headroom struct {
	Shapes  []ShapeHeadroom // sorted by class and shape
	Classes []ClassFragmentation

	// Stranded is sorted by driver, node and reason; StrandedKnown is false if what is
	// left of nodes is not known, without which most of it would be missing.
	Stranded      []StrandedDevices
	StrandedKnown bool

	// KeptNodes are known if StrandedKnown is true.
	KeptNodes []KeptNode // sorted by node and reason
}

// KeptNode is a node with devices, none of which is allocated, that an autoscaler does
// not remove.
type KeptNode struct {
	Node   string
	Reason RemovalObstacle
	Pods   int // that are the reason; 1 for the node itself
}

// ShapeHeadroom is how many more claims of one shape could be allocated.
type ShapeHeadroom struct {
	Class string // of its first request
	Shape string // a number of devices of the class on one node, or what claims request

	Requests int // claims that request it, allocated or not

	Claims int
	// Exact reports whether Claims and Pods are exact: otherwise they are lower bounds,
	// because not all nodes have been searched to the end.
	Exact bool
	// Limit is the reason for which one claim more would be pending; ReasonNone if that
	// is not known.
	Limit PendingReason

	// Pods is how many pods with one such claim each could be bound as well, as far as
	// the rest of the nodes goes: CPU, memory, number of pods, taints, cordons.
	// PodsKnown is false if that cannot be known.
	Pods      int
	PodsKnown bool
}

// ClassFragmentation is the expected share of the free devices of a class that a claim
// cannot use, given the shapes of the claims and templates that there are.
type ClassFragmentation struct {
	Class string
	Ratio float64 // from 0 to 1
}

// StrandedDevices are devices that are not allocated, and that no claim can have as
// things are.
type StrandedDevices struct {
	Driver string
	Node   string // empty where several nodes can use them
	Reason StrandedReason
	// Devices counts a device from which partitions can be cut by the part of it that is
	// left.
	Devices float64
}

// StrandedReason is why devices are stranded.
type StrandedReason string

// The reasons, in the order in which they are looked for.
const (
	StrandedPoolIncomplete StrandedReason = "pool_incomplete" // or invalid: nothing is allocated from it
	StrandedDriverTaint    StrandedReason = "driver_taint"    // the driver taints it, as most do when it is unhealthy
	StrandedRuleTaint      StrandedReason = "rule_taint"      // a DeviceTaintRule taints it
	StrandedPartitionRest  StrandedReason = "partition_rest"  // partitions are cut from it, and none can be cut from the rest
	StrandedNodeFeature    StrandedReason = "node_feature"    // no node declares a feature that it needs
	StrandedNoNode         StrandedReason = "no_node"         // no node is as the pool says that it must be, or the node is gone
	StrandedNodeCordoned   StrandedReason = "node_cordoned"
	StrandedNodeNotReady   StrandedReason = "node_not_ready"
	StrandedNodeTainted    StrandedReason = "node_tainted" // by a taint that no pod with claims tolerates
	StrandedNodePods       StrandedReason = "node_pods"    // the node has as many pods as it may
	StrandedNodeCPU        StrandedReason = "node_cpu"     // too little is left for what pods typically request with a device
	StrandedNodeMemory     StrandedReason = "node_memory"
	StrandedPartnerMissing StrandedReason = "partner_missing" // claims for it request other devices too, which its node cannot give
)

// StrandedReasons returns all reasons, in their order.
func StrandedReasons() []StrandedReason {
	return []StrandedReason{
		StrandedPoolIncomplete, StrandedDriverTaint, StrandedRuleTaint, StrandedPartitionRest, StrandedNodeFeature,
		StrandedNoNode, StrandedNodeCordoned, StrandedNodeNotReady, StrandedNodeTainted, StrandedNodePods, StrandedNodeCPU, StrandedNodeMemory,
		StrandedPartnerMissing,
	}
}
