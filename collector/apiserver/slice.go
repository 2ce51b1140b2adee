package apiserver

import (
	"math"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// decodeSlice returns the devices of a ResourceSlice. It neither keeps nor
// changes anything of the slice.
func decodeSlice(slice *resourcev1.ResourceSlice) []dra.PublishedDevice {
	names := driverSpellings()
	devices := make([]dra.PublishedDevice, 0, len(slice.Spec.Devices))
	for i := range slice.Spec.Devices {
		devices = append(devices, decodeDevice(&slice.Spec, &slice.Spec.Devices[i], names))
	}
	return devices
}

func decodeDevice(spec *resourcev1.ResourceSliceSpec, device *resourcev1.Device, names spellings) dra.PublishedDevice {
	known := attributes{driver: spec.Driver, values: device.Attributes}
	profile, placement := migName(device.Name)
	if published := known.text(names.profile); published != "" {
		profile = published
	}
	if inOnePiece(profile) {
		profile = ""
	}
	address, parentAddress := known.pciAddresses(names, profile)
	return dra.PublishedDevice{
		ID:                  dra.DeviceID{Driver: clean(spec.Driver), Pool: clean(spec.Pool.Name), Name: clean(device.Name)},
		Node:                nodeOf(spec, device),
		Passthrough:         known.text(names.kind) == "vfio",
		UUID:                known.text(names.uuid),
		ParentUUID:          known.text(names.parentUUID),
		PCIAddress:          address,
		ParentPCIAddress:    parentAddress,
		Profile:             clean(profile),
		Placement:           placement,
		Model:               known.text(names.model),
		Version:             known.text(names.version),
		MultipleAllocations: device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations,
		Capacity:            decodeCapacity(device.Capacity),
		Taints:              decodeTaints(device.Taints),
	}
}

// nodeOf is the node of the slice, or of the single device where the slice
// says so.
func nodeOf(spec *resourcev1.ResourceSliceSpec, device *resourcev1.Device) string {
	if spec.PerDeviceNodeSelection != nil && *spec.PerDeviceNodeSelection {
		return cleanOr(device.NodeName)
	}
	return cleanOr(spec.NodeName)
}

func decodeCapacity(capacity map[resourcev1.QualifiedName]resourcev1.DeviceCapacity) map[string]float64 {
	if len(capacity) == 0 {
		return nil
	}
	values := make(map[string]float64, len(capacity))
	for name, entry := range capacity {
		putAmount(values, name, entry.Value)
	}
	return values
}

// putAmount leaves out what is beyond a float64: Kubernetes lets it pass, but
// nothing can be computed from it.
func putAmount(amounts map[string]float64, name resourcev1.QualifiedName, quantity resource.Quantity) {
	if value := quantity.AsApproximateFloat64(); !math.IsInf(value, 0) && !math.IsNaN(value) {
		amounts[clean(string(name))] = value
	}
}

func decodeTaints(taints []resourcev1.DeviceTaint) []dra.Taint {
	if len(taints) == 0 {
		return nil
	}
	values := make([]dra.Taint, len(taints))
	for i, taint := range taints {
		values[i] = dra.Taint{Key: clean(taint.Key), Value: clean(taint.Value), Effect: clean(string(taint.Effect))}
	}
	return values
}
