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

	// DevicesKnown is set if slices and claims are known: otherwise neither the states of
	// devices nor the consumption of capacities are.
	DevicesKnown bool
	// NodesKnown is set if nodes are known: otherwise neither the stage best_node of a
	// diagnosis nor the devices of classes that are down are.
	NodesKnown bool

	Pending []*PendingRef // those of gated pods included, the oldest first; shared
	Phases  []*Phase      // the longest first; shared
	Claims  []*ClaimCount // sorted by namespace and class; shared

	Pools     []*dra.PoolSupply     // sorted by driver and pool; shared
	Taints    []dra.TaintCount      // of devices of pools, sorted; shared
	Classes   []dra.ClassSupply     // sorted; shared
	Shapes    []dra.ShapeHeadroom   // what more could be allocated, sorted by class and shape; shared
	Stranded  []dra.StrandedDevices // sorted; shared
	KeptNodes []dra.KeptNode        // idle nodes that autoscalers do not remove, sorted; shared

	ComputeDomains  []ComputeDomain  // sorted; shared
	QueuedWorkloads []QueuedWorkload // that wait in a queue of Kueue, sorted; shared

	TerminatingClaims []TerminatingClaim // sorted; shared
	OrphanedClaims    []dra.ClaimRef     // reserved for pods alone that no longer exist, sorted; shared
	DeletedPods       []DeletedPod       // sorted; shared
	Disagreements     []dra.DeviceID     // driver and kubelet disagree on their health; sorted; shared

	Evictions     []Counter // pods that the taint of a device evicted, by namespace; shared
	ClockErrors   []Counter // durations for which clocks contradict each other, by phase; shared
	DroppedSeries []Counter // at the limit of a family, by family; shared
}

// PendingRef is a pod's claim reference, or its request of an extended resource,
// that is not satisfied. It is immutable.
type PendingRef struct {
	Pod         dra.PodRef
	PodUID      string
	Node        string // where the pod is bound, or its allocation is for; empty before
	PodClaim    string // within the pod; of an extended resource, its name
	Claim       string // name of the ResourceClaim; empty until it exists
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
}
