package apiserver

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// attributes are the attributes of one published device. A name without a
// domain belongs to the driver's own, so "uuid" and "gpu.nvidia.com/uuid"
// are the same attribute of a device of gpu.nvidia.com.
type attributes struct {
	driver string
	values map[resourcev1.QualifiedName]resourcev1.DeviceAttribute
}

// text returns the first of the named attributes that is there as a string
// or a version, empty if none is.
func (a attributes) text(names []string) string {
	for _, name := range names {
		for _, spelling := range []string{name, a.driver + "/" + name} {
			value, found := a.values[resourcev1.QualifiedName(spelling)]
			switch {
			case found && value.StringValue != nil:
				return clean(*value.StringValue)
			case found && value.VersionValue != nil:
				return clean(*value.VersionValue)
			}
		}
	}
	return ""
}

// address returns the first of the named attributes that is a PCI address.
func (a attributes) address(names []string) string {
	for _, name := range names {
		if address := pciAddress(a.text([]string{name})); address != "" {
			return address
		}
	}
	return ""
}

// spellings says under which names drivers publish one fact, the best first.
// The names are those of gpu.nvidia.com, gpu.amd.com, gpu.intel.com, dra.net
// and dra-example-driver; resource.kubernetes.io/ is Kubernetes' own domain.
type spellings struct {
	uuid, parentUUID, address, parentAddress, profile, kind, model, version []string
}

func driverSpellings() spellings {
	return spellings{
		uuid:          []string{"uuid"},
		parentUUID:    []string{"parentUUID"},
		address:       []string{"resource.kubernetes.io/pciBusID", "pciBusID", "pciAddr", "pciAddress", "pcieBusID"},
		parentAddress: []string{"parentPciAddr"},
		profile:       []string{"profile", "partitionProfile", "computePartition"},
		kind:          []string{"type"},
		model:         []string{"productName", "model"},
		version:       []string{"driverVersion"},
	}
}
