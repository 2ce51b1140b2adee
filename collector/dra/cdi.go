package dra

// CDIDevice is one device of a CDI specification on this node, so far as it
// can identify hardware.
type CDIDevice struct {
	Name  string   // fully qualified: vendor.com/class=name
	Nodes []string // paths of its own device nodes in the container, e.g. /dev/nvidia3
}
