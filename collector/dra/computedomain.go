package dra

import "time"

// ComputeDomain is a set of nodes whose GPUs exchange data over NVLink, an object
// of NVIDIA's DRA driver. Its controller creates the ResourceClaimTemplate of its
// channels, and the nodes of the pods that use them join it.
type ComputeDomain struct {
	Ref     PodRef // namespace and name of the domain
	UID     string
	Created time.Time

	Template string // name of the ResourceClaimTemplate of its channels
	NumNodes int64  // how many nodes it is to have; 0: it does not say
	Ready    bool   // by its status: enough nodes have joined, and all of them are ready
	Nodes    []ComputeDomainNode
}

// ComputeDomainNode is a node that has joined a ComputeDomain.
type ComputeDomainNode struct {
	Name   string
	Clique string // NVLink domain and clique; empty if the node's GPUs have no NVLink to other nodes
	Ready  bool   // its IMEX daemon is
}
