package vendors

import (
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Lookup returns the text of a named attribute, which is valid UTF-8, and
// whether there is one. A name without a domain is one of the driver's own.
type Lookup func(name string) (text string, found bool)

// first returns the first of the named attributes that there is.
func (l Lookup) first(names ...string) string {
	for _, name := range names {
		if text, ok := l(name); ok {
			return text
		}
	}
	return ""
}

// Address returns the device's PCI address under the first name that has one,
// in the spelling of PCIAddress. resource.kubernetes.io/ is Kubernetes' own
// domain; the other names are those of gpu.nvidia.com, gpu.amd.com,
// gpu.intel.com, dra.net and dra-example-driver.
func (l Lookup) Address() string {
	return l.firstAddress("resource.kubernetes.io/pciBusID", "pciBusID", "pciAddr", "pciAddress", "pcieBusID")
}

func (l Lookup) firstAddress(names ...string) string {
	for _, name := range names {
		text, _ := l(name)
		if address := PCIAddress(text); address != "" {
			return address
		}
	}
	return ""
}

// PCIeRoot returns the PCIe root complex of the device, as Kubernetes' own attribute
// names it.
func (l Lookup) PCIeRoot() string { return l.first("resource.kubernetes.io/pcieRoot") }

// NUMANode returns the number of the NUMA node of the device: the attribute of
// Kubernetes, else those that drivers had before, which those of other vendors took
// over. Where there are several, the first is the device's own.
func (l Lookup) NUMANode() string {
	node := l.first("resource.kubernetes.io/numaNode", "numaNode", "numaNodeID", "dra.net/numaNode")
	if number, err := strconv.ParseInt(node, 10, 32); err != nil || number < 0 {
		return ""
	}
	return node
}

// UUID returns the device's UUID as the driver spells it.
func (l Lookup) UUID() string { return l.first("uuid") }

// Identify returns the published device with what its attributes and its name
// say of the hardware. Drivers that are not in a row are read by the same
// rules.
func Identify(device dra.PublishedDevice, attributes Lookup) dra.PublishedDevice {
	kind := attributes.first("type")
	device.Passthrough = kind == "vfio"
	device.UUID = attributes.UUID()
	device.ParentUUID = attributes.first("parentUUID")
	device.Model = attributes.first("productName", "model")
	device.Version = attributes.first("driverVersion")
	device.PCIAddress = attributes.Address()
	device.PCIeRoot, device.NUMANode = attributes.PCIeRoot(), attributes.NUMANode()
	device.ParentPCIAddress = attributes.firstAddress("parentPciAddr")
	device.Profile, device.Placement = "", dra.PlacementUnknown
	for _, vendor := range All() {
		if vendor.DecodeName != nil && device.Placement == dra.PlacementUnknown {
			device.Profile, device.Placement = vendor.DecodeName(device.ID.Name)
		}
	}
	if published := attributes.first("profile", "partitionProfile", "computePartition"); published != "" {
		device.Profile = published
	}
	for _, vendor := range All() {
		if vendor.isWhole(device.Profile) {
			device.Profile = ""
		}
		if vendor.isPartition(device, kind) && device.ParentPCIAddress == "" {
			device.PCIAddress, device.ParentPCIAddress = "", device.PCIAddress
		}
	}
	return device
}

// isWhole reports whether a profile is that of a device that is not
// partitioned.
func (v Vendor) isWhole(profile string) bool {
	return v.WholeProfile != "" && len(profile) >= len(v.WholeProfile) && strings.EqualFold(profile[:len(v.WholeProfile)], v.WholeProfile)
}

// isPartition reports whether the device is a partition of this vendor that is
// published with the address of its parent.
func (v Vendor) isPartition(device dra.PublishedDevice, kind string) bool {
	return v.PartitionType != "" && (kind == v.PartitionType || device.ID.Driver == v.Driver && device.Profile != "")
}

// SharingStrategy returns how opaque parameters configure a driver to share
// devices: time_slicing, mps, or empty. The shape of any vendor is decoded for
// any driver.
func SharingStrategy(parameters []byte) string {
	for _, vendor := range All() {
		if vendor.DecodeSharing == nil {
			continue
		}
		if strategy := vendor.DecodeSharing(parameters); strategy != "" {
			return strategy
		}
	}
	return ""
}
