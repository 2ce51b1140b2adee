// Package simulated is a kubelet, so far as its PodResources API goes: a gRPC
// server on a real unix socket over a model of pods that the caller sets, and
// with the oddities and faults of real kubelets to be switched on by name.
// Tests and the demo use it. Pods is the same of its Pods API, over objects that
// the caller puts.
package simulated

// Pod is a pod that the kubelet runs.
type Pod struct {
	Namespace, Name string
	Claims          []Claim // of the pod's own namespace
	Containers      []Container
}

// Claim is a ResourceClaim of a pod, as far as the kubelet has come with it.
type Claim struct {
	Name    string
	Stage   Stage
	Devices []Device // that were allocated; listed once the claim is prepared
}

// Stage is how far the kubelet has come with a claim.
type Stage int

// The stages of a claim, from last to first.
const (
	Prepared Stage = iota // its drivers have prepared its devices
	Named                 // the kubelet knows it, its drivers have not answered yet
	Unknown               // the kubelet has not seen it yet
)

// Device is an allocated device.
type Device struct {
	Request            string // that it was allocated for
	Driver, Pool, Name string
	ShareID            string   // empty unless several claims may share the device
	CDI                []string // the device's own CDI names
}

// Container is a container of a pod. Sidecars, which are init containers that
// keep running, are listed like any other and so have no mark here.
type Container struct {
	Name    string
	Init    bool // runs before the others and ends
	Uses    []Use
	Plugins []Plugin
}

// Use names a claim of the pod that a container uses: one request of it, or
// all of them where Request is empty.
type Use struct {
	Claim, Request string
}

// Plugin is what a device plugin gave to a container.
type Plugin struct {
	Resource  string
	DeviceIDs []string
}
