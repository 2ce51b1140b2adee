// Package vendors is what is known of the vendors of devices and of their DRA
// drivers: how a driver names devices and partitions, under which attributes
// it publishes what identifies hardware, how its opaque configuration is
// shaped. There is one row for each vendor. The package knows neither
// Kubernetes' API types nor the libraries that read hardware.
package vendors

// Names of vendors that have rules of their own elsewhere.
const (
	NVIDIA   = "nvidia"
	AMD      = "amd"
	Intel    = "intel"
	Mellanox = "mellanox"
)

// Vendor is one row: a vendor and its DRA driver. What a vendor does not have
// is empty or nil.
type Vendor struct {
	Name   string // label value vendor; empty: the driver publishes devices of many vendors
	PCI    uint16 // number in the PCI ID repository
	Driver string // name of the DRA driver

	// Kind is what the driver's devices are.
	Kind DeviceKind

	// Sources are the device sources that read the driver's devices; empty: none does.
	Sources [2]string

	// Resources begin the names of the resources of its device plugins.
	Resources [2]string

	// DecodeName decodes the name of a device. Names that say nothing of a
	// partition give no profile and dra.PlacementUnknown.
	DecodeName func(name string) (profile string, placement int)

	// WholeProfile begins, in lower case, the profiles of devices that are not
	// partitioned.
	WholeProfile string

	// PartitionType is the attribute "type" of partitions that are published
	// with the PCI address of their parent.
	PartitionType string

	// DecodeSharing returns the sharing strategy in opaque parameters:
	// time_slicing, mps, or empty.
	DecodeSharing func(parameters []byte) string
}

// IsMeasured reports whether a source of this exporter reads the driver's devices.
func (v Vendor) IsMeasured() bool { return v.Sources[0] != "" }

// DeviceKind is what the devices of a driver are.
type DeviceKind uint8

// The kinds.
const (
	Unknown DeviceKind = iota
	GPU                // or another accelerator
	Network            // an adapter, or a function of one
	CPU
	Channel // no hardware: a channel or daemon of a fabric
)
