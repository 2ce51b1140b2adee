package dra

// PodResources is one answer of the kubelet's List: what each container of
// each active pod was given. Regular init containers are never in it.
type PodResources struct {
	Pods        []PodRef // all pods listed, with devices or without
	Assignments []Assignment
	Plugins     []PluginAssignment

	// WithoutDevices are the claims that the kubelet lists for a container without
	// a device: it has not prepared them yet, or their drivers need no preparation.
	WithoutDevices []ClaimRef
}

// Assignment is one device of one claim that the kubelet lists for one
// container. The kubelet lists every device of the claim for each container
// that uses the claim, whatever request the container names.
type Assignment struct {
	Pod        PodRef
	Container  string
	Claim      ClaimRef
	Device     DeviceID
	ShareID    string
	CDIDevices []string // the device's own, in its driver's order
}

// PluginAssignment is what a container got through a device plugin.
type PluginAssignment struct {
	Pod       PodRef
	Container string
	Resource  string // e.g. nvidia.com/gpu
	DeviceIDs []string
}
