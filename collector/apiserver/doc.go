// Package apiserver tells what the API server knows, of one node (Node) or of
// the whole cluster (Cluster). It turns objects of Kubernetes into values of
// package dra as they come in and keeps nothing else of them.
//
// Of a node these are the pods that are bound to it and use claims, the claims
// that they name, and the devices that are published for it. Pods and ResourceSlices of the node are watched with a field selector.
// Claims have no field that names a node, so a watch of them from every node
// would carry every change of the cluster to every node: each claim that a
// pod of this node names is read by GET instead, when the pod appears, again
// while it is not yet allocated and reserved, and then every ten minutes.
// Pools whose slices name no node (network-attached devices) are listed when
// a claim has been given one of their devices.
//
// Of the cluster, everything that has to do with claims is watched, and told
// as a stream of changes rather than as a state: each with the instant at
// which it was told, and whether it has happened just then. What a list brings
// has happened before, and so may have what a watch tells in its first second
// after a gap or a long list. Objects of a list are taken in one by one as they
// come, so that a large one is never held as a whole. The objects that only
// judging needs are handed to a Keeper.
//
// Pods may come from the kubelet instead (PodFeed), which does not tell the
// names of claims that were made for them. Those are learned: from what the
// kubelet lists, from the claims themselves, and, for claims that only init
// containers use, from a list of their namespace's.
//
// Everything is read-only: get, list and watch. Of a node: pods unless they are
// fed, resourceclaims and resourceslices. Of the cluster: list and watch of these,
// nodes, events, deviceclasses, resourceclaimtemplates, devicetaintrules, and
// podgroups of scheduling.k8s.io; the last two need not be served. What one
// permission lacks does not stop the others.
package apiserver
