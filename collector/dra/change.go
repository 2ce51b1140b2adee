package dra

import "github.com/dra-exporter/dra-exporter/collector/clock"

// Change is one event of the API server: an object that is new or different, or
// one that is gone. Exactly one of the pointers is set; with Gone it is the
// object as it was last known. What they point to is immutable.
type Change struct {
	At   clock.Instant // when it was received
	Live bool          // delivered by a watch as it happened; false: found in a list
	Gone bool

	Claim   *ClaimLifecycle
	Pod     *PodLifecycle
	Group   *Group
	Node    *Node
	Warning *Warning

	KueueWorkload *KueueWorkload
	ComputeDomain *ComputeDomain
	Autoscaling   *Autoscaling
}

// Synced records which collections are known as a whole. A collection stays so
// while its watch is interrupted; one that cannot be read (without permission,
// or because it is not served) never is.
type Synced struct {
	Claims, Pods, Slices, Classes, Nodes, Events bool
}

// Diagnosable reports whether diagnoses have everything that they need.
func (s Synced) Diagnosable() bool { return s.Claims && s.Slices && s.Classes }
