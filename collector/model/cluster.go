package model

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Cluster is what the cluster role knows. A list that needs a collection which cannot be
// read is empty, since half of it would be wrong.
type Cluster struct {
	Version string // of the exporter
	Sources []source.Status

	// ClaimsKnown and PodsKnown are set if claims, and pods, are known as a whole.
	ClaimsKnown, PodsKnown bool
	// DevicesKnown is set if slices and claims are known: otherwise neither the states of
	// devices nor the consumption of capacities are.
	DevicesKnown bool
	// NodesKnown is set if nodes are known: otherwise neither the stage best_node of a
	// diagnosis nor the devices of classes that are down are.
	NodesKnown bool

	Pending []*PendingRef // those of gated pods included, the oldest first; shared
	Phases  []*Phase      // the longest first; shared
	Claims  []*ClaimCount // sorted by namespace and class; shared

	Undiagnosed []Undiagnosed    // the oldest reference of each cause; shared
	Autoscalers []AutoscalerPods // sorted; shared
	Failures    []*FailureCount  // sorted by class; shared

	Pools     []*dra.PoolSupply     // sorted by driver and pool; shared
	Taints    []dra.TaintCount      // of devices of pools, sorted; shared
	Classes   []dra.ClassSupply     // sorted; shared
	Shapes    []dra.ShapeHeadroom   // what more could be allocated, sorted by class and shape; shared
	Stranded  []dra.StrandedDevices // sorted; shared
	KeptNodes []dra.KeptNode        // idle nodes that autoscalers do not remove, sorted; shared

	RuleEvictions   []dra.RuleEviction       // sorted; shared
	Fragmentation   []dra.ClassFragmentation // sorted; shared
	StrandedSeconds []StrandedTime           // sorted; shared
	Oversized       []Counter                // specifications that are too large to be diagnosed now, by limit; shared

	NodeDomains  []NodeDomains // of the nodes that have any, sorted; shared
	NodeReleases []NodeRelease // sorted; shared

	ComputeDomains  []ComputeDomain  // sorted; shared
	DomainWorkloads []DomainWorkload // sorted; shared
	Workloads       []*Workload      // sorted; shared
	QueuedWorkloads []QueuedWorkload // that wait in a queue of Kueue, sorted; shared

	TerminatingClaims []TerminatingClaim // sorted; shared
	OrphanedClaims    []dra.ClaimRef     // reserved for pods alone that no longer exist, sorted; shared
	DeletedPods       []DeletedPod       // sorted; shared
	Health            []*DeviceHealth    // of devices of which driver and kubelet report, sorted; shared
	Disagreements     []dra.DeviceID     // driver and kubelet disagree on their health; sorted; shared

	Evictions     []Counter // pods that the taint of a device evicted, by namespace; shared
	ClockErrors   []Counter // durations for which clocks contradict each other, by phase; shared
	DroppedSeries []Counter // at the limit of a family, by family; shared

	DiagnosisSeconds []Counter // that diagnoses took, by namespace; shared
	QueuedDiagnoses  []Counter // now: first, and again; shared
}

// PendingRef is a pod's claim reference, or its request of an extended resource,
// that is not satisfied. It is immutable.
type PendingRef struct {
	Pod         dra.PodRef
	PodUID      string
	Node        string        // where the pod is bound, or its allocation is for; empty before
	PodClaim    string        // within the pod; of an extended resource, its name
	Workload    *dra.Workload // of the pod; nil: none
	Claim       string        // name of the ResourceClaim; empty until it exists
	DeviceClass string
	Since       time.Time
	Reason      dra.PendingReason
	Message     string // the scheduler's on the pod, the controller's on the claim, or the diagnosis's
	Diagnosis   *dra.Diagnosis
}

// Phase is the phase under way of a pod and one of its allocated claims. It is immutable.
type Phase struct {
	Pod   dra.PodRef
	Claim string
	Name  string // binding, scheduling, preparation, start, preparation_start
	Since time.Time
}

// ClaimCount is the claims of a class in a namespace by their states. Those that depend on
// pods are unknown while these are.
type ClaimCount struct {
	Namespace, Class string
	States           [ClaimStates]Optional
}

// ClaimState is what a claim is used for. A claim is in one state.
type ClaimState uint8

// The states.
const (
	ClaimUnused    ClaimState = iota // no pod that is alive references it, and it is not allocated
	ClaimPending                     // a pod that is alive references it, and it is not allocated
	ClaimAllocated                   // and not reserved
	ClaimReserved
	ClaimTerminating // its deletion has begun
	ClaimStates      = iota
)

// String returns the value of the label state.
func (s ClaimState) String() string {
	return [ClaimStates]string{"unused", "pending", "allocated", "reserved", "terminating"}[s]
}

// Undiagnosed is since when the oldest of the references has no diagnosis that have none
// for the same cause: queued, or over_limit.
type Undiagnosed struct {
	Cause string
	Since time.Time
}

// AutoscalerPods is how many pods with pending claims an autoscaler has reported last
// with one state.
type AutoscalerPods struct {
	Autoscaler dra.Autoscaler
	State      dra.AutoscalingState
	Pods       int
}

// FailureCount is what went wrong with claims of a class. It is immutable.
type FailureCount struct {
	Class   string    // empty: of what has no class that is known
	Reasons []Counter // sorted
}

// StrandedTime is for how many seconds, times devices, devices of a driver were stranded
// for one reason.
type StrandedTime struct {
	Driver  string
	Reason  dra.StrandedReason
	Seconds float64
	Since   time.Time // when counting began
}

// NodeDomains is where a node is.
type NodeDomains struct {
	Node    string
	Domains dra.Domains
}

// NodeRelease is a node whose label asks for its GPUs to be released.
type NodeRelease struct {
	Node  string
	Label dra.ReleaseLabel
}

// PodState is the state of a pod of a workload.
type PodState uint8

// The states.
const (
	PodGated    PodState = iota // has scheduling gates
	PodPending                  // is not bound to a node
	PodStarting                 // no container has started
	PodRunning
	PodEnded  // has ended, or is being deleted
	PodStates = iota
)

// String returns the value of the label state.
func (s PodState) String() string {
	return [PodStates]string{"gated", "pending", "starting", "running", "ended"}[s]
}

// Workload is a workload that has pods, or waits in a queue. It is immutable.
type Workload struct {
	Namespace, Kind, Name string
	Queue                 string
	Pods                  [PodStates]int
	MinPods               int // that it needs in order to run; 0: not known

	// Domains is over how many domains its devices are spread, and LeastDomains how
	// many would hold so many at least, by level; 0: not known.
	Domains, LeastDomains [dra.TopologyLevels]int
}

// DomainWorkload is a workload whose pods use a ComputeDomain.
type DomainWorkload struct{ Namespace, Domain, Kind, Name string }

// DeviceHealth is a device of which driver and kubelet report. It is immutable.
type DeviceHealth struct {
	Device   dra.DeviceID
	Disagree bool
}

// ComputeDomain is a ComputeDomain and its use.
type ComputeDomain struct {
	*dra.ComputeDomain
	NotReadySince time.Time // zero: it is ready, or was not before the exporter started
	Pods          Optional  // that use it, are bound to a node and have not ended
}

// QueuedWorkload is a workload that Kueue has not admitted.
type QueuedWorkload struct {
	Namespace, Kind, Name string
	Reason                string // that Kueue reports
	Since                 time.Time
}

// TerminatingClaim is a claim whose deletion waits for finalizers.
type TerminatingClaim struct {
	Ref   dra.ClaimRef
	Since time.Time
}

// DeletedPod is a pod with claims that is being deleted.
type DeletedPod struct {
	Pod  dra.PodRef
	Node string
	Due  time.Time // the end of its grace period
}

// Counter is what has been counted of something since the exporter started.
type Counter struct {
	Name  string
	Count float64
	Since time.Time // when it was 0; zero where it is no counter, but a number of now
}
