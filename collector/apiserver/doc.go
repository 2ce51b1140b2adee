// Package apiserver tells what the API server knows of one node: the pods
// that are bound to it and use claims, the claims that they name, and the
// devices that are published for it. It turns objects of Kubernetes into
// values of package dra as they come in and keeps nothing else of them.
//
// Pods and ResourceSlices of the node are watched with a field selector.
// Claims have no field that names a node, so a watch of them from every node
// would carry every change of the cluster to every node: each claim that a
// pod of this node names is read by GET instead, when the pod appears, again
// while it is not yet allocated and reserved, and then every ten minutes.
// Pools whose slices name no node (network-attached devices) are listed when
// a claim has been given one of their devices.
//
// Everything is read-only: get, list and watch of pods, resourceclaims and
// resourceslices. What one permission lacks does not stop the others.
package apiserver
