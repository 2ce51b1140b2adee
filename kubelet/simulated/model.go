// Package simulated simulates a kubelet's PodResources API: a gRPC server on a real
// unix socket over a model of pods that the caller sets. The faults of real kubelets
// can be added by name. Tests and the demo use it. Pods simulates the Pods API over
// objects that the caller puts.
package simulated

// Pod is a pod that the kubelet runs.
type Pod struct {
	Namespace, Name string
	Claims          []Claim // of the pod's own namespace
	Containers      []Container
}

// Claim is a ResourceClaim of a pod, and how far the kubelet has prepared it.
type Claim struct {
	Name    string
	Stage   Stage
	Devices []Device // that were allocated; listed once the claim is prepared
}

// Stage is how far the kubelet has prepared a claim.
type Stage int

// The stages of a claim, from last to first.
const (
	Prepared Stage = iota // its drivers have prepared its devices
	Named                 // the kubelet has it in its cache; its drivers have not responded yet
	Unknown               // the kubelet does not have it yet
)

// Device is an allocated device.
type Device struct {
	Request            string // that it was allocated for
	Driver, Pool, Name string
	ShareID            string   // empty unless several claims may share the device
	CDI                []string // the device's own CDI names
}

// Container is a container of a pod. Sidecars, which are init containers that
// keep running, are listed like any other container and have no field here.
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

// Plugin has the devices that a device plugin allocated to a container.
type Plugin struct {
	Resource  string
	DeviceIDs []string
}
