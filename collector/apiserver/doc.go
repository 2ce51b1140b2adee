// Package apiserver reads from the API server what concerns one node (NodeWatch) or
// the whole cluster (ClusterWatch). Objects are decoded to values of package dra when
// they arrive (package decode), and nothing else of them is kept. Package watch
// lists and watches.
//
// NodeWatch has the pods that are bound to the node and use claims, these claims, and
// the devices that are published for the node. Pods and ResourceSlices of the
// node are watched with a field selector. Claims have no field for the node, and
// a watch of all claims by every node would send every change in the cluster to
// every node: a claim that a pod of the node references is read by GET instead,
// when the pod appears, again while it is not allocated and reserved, and then
// every ten minutes. Pools whose slices have no node name (network-attached
// devices) are listed when a claim is allocated one of their devices.
//
// ClusterWatch watches everything that concerns claims and records the changes, each
// with the time at which it was received and whether it had just happened.
// Objects of a list existed before, and events that a watch delivers in the
// first second after a gap or a long list may have happened before. The objects
// of a list are applied one by one when they are received, so that a large list
// is never held as a whole. Objects that only a diagnosis needs are passed to a
// Keeper.
//
// Pods may come from the kubelet instead (PodFeed), without the names of the
// claims that were made for them. These are learned from the kubelet's
// PodResources, from the claims themselves and, for claims that only init
// containers use, from a list of the claims of their namespace.
//
// All requests are get, list and watch. NodeWatch reads pods unless they are fed,
// resourceclaims and resourceslices. ClusterWatch lists and watches these, nodes,
// events, deviceclasses, resourceclaimtemplates, devicetaintrules, podgroups of
// scheduling.k8s.io, workloads of kueue.x-k8s.io and computedomains of
// resource.nvidia.com; the last four are optional. A missing permission affects only
// its own resource.
package apiserver
