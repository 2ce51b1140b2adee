package apiserver

import (
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Keeper is given the objects by which it is judged what can be allocated, as
// they come, change and go; a nil object is gone. Objects are the keeper's own
// from then on. They are without managed fields, labels and annotations (but a
// node has its labels), and without what drivers are configured with and wrote
// of devices. Names are valid UTF-8; what objects contain need not be. Of each
// object it is called by one goroutine at a time and in order, of different
// kinds by several at once, and it should be quick.
type Keeper interface {
	Slice(name string, slice *resourcev1.ResourceSlice)
	Class(name string, class *resourcev1.DeviceClass)
	Rule(name string, rule *resourcev1.DeviceTaintRule)
	Node(name string, node *corev1.Node)
	Template(namespace, name string, template *resourcev1.ResourceClaimTemplate)
	Claim(namespace, name string, claim *resourcev1.ResourceClaim)
}

// Change is one thing that the API server told of: an object that is new or
// different, or one that is gone. Exactly one of the pointers is set; with Gone
// it is the object as it was last known. What they point to is immutable.
type Change struct {
	At   clock.Instant // when it was told
	Live bool          // told by a watch as it happened; false: found in a list
	Gone bool

	Claim   *dra.ClaimLife
	Pod     *dra.PodLife
	Group   *dra.Group
	Node    *dra.NodeLife
	Trouble *dra.Trouble
}
