package decode

import (
	"math"
	"strconv"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// PoolID identifies a pool in the cluster.
type PoolID struct{ Driver, Name string }

// SliceRecord is what the node role keeps of a ResourceSlice.
type SliceRecord struct {
	Name       string
	Created    time.Time // in seconds
	Version    string    // resource version
	Pool       PoolID
	Generation int64
	Count      int64 // of slices that the whole pool has in this generation
	Devices    []dra.PublishedDevice
}

// NewSliceRecord returns what is kept of the slice. It neither keeps nor
// changes anything of the slice.
func NewSliceRecord(slice *resourcev1.ResourceSlice) SliceRecord {
	return SliceRecord{
		Name:       slice.Name,
		Created:    slice.CreationTimestamp.Time,
		Version:    slice.ResourceVersion,
		Pool:       PoolID{Driver: Text(slice.Spec.Driver), Name: Text(slice.Spec.Pool.Name)},
		Generation: slice.Spec.Pool.Generation,
		Count:      slice.Spec.Pool.ResourceSliceCount,
		Devices:    publishedDevices(&slice.Spec),
	}
}

func publishedDevices(spec *resourcev1.ResourceSliceSpec) []dra.PublishedDevice {
	devices := make([]dra.PublishedDevice, 0, len(spec.Devices))
	for i := range spec.Devices {
		device := &spec.Devices[i]
		devices = append(devices, vendors.Identify(dra.PublishedDevice{
			ID:                  dra.DeviceID{Driver: Text(spec.Driver), Pool: Text(spec.Pool.Name), Name: Text(device.Name)},
			Node:                nodeName(spec, device),
			MultipleAllocations: device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations,
			Capacity:            deviceCapacity(device.Capacity),
			Taints:              deviceTaints(device.Taints),
		}, attributes{driver: spec.Driver, values: device.Attributes}.lookup))
	}
	return devices
}

// nodeName returns the node of the slice, or of the device where the slice
// selects nodes by device.
func nodeName(spec *resourcev1.ResourceSliceSpec, device *resourcev1.Device) string {
	if spec.PerDeviceNodeSelection != nil && *spec.PerDeviceNodeSelection {
		return OptionalText(device.NodeName)
	}
	return OptionalText(spec.NodeName)
}

func deviceCapacity(capacity map[resourcev1.QualifiedName]resourcev1.DeviceCapacity) map[string]float64 {
	if len(capacity) == 0 {
		return nil
	}
	values := make(map[string]float64, len(capacity))
	for name, entry := range capacity {
		putQuantity(values, name, entry.Value)
	}
	return values
}

// putQuantity leaves out what exceeds a float64: Kubernetes accepts it, but
// nothing can be computed from it.
func putQuantity(values map[string]float64, name resourcev1.QualifiedName, quantity resource.Quantity) {
	if value := quantity.AsApproximateFloat64(); !math.IsInf(value, 0) && !math.IsNaN(value) {
		values[Text(string(name))] = value
	}
}

func deviceTaints(taints []resourcev1.DeviceTaint) []dra.Taint {
	if len(taints) == 0 {
		return nil
	}
	values := make([]dra.Taint, len(taints))
	for i, taint := range taints {
		values[i] = dra.Taint{Key: Text(taint.Key), Value: Text(taint.Value), Effect: Text(string(taint.Effect))}
	}
	return values
}

// attributes are the attributes of one published device. A name without a
// domain belongs to the driver's own, so "uuid" and "gpu.nvidia.com/uuid"
// are the same attribute of a device of gpu.nvidia.com.
type attributes struct {
	driver string
	values map[resourcev1.QualifiedName]resourcev1.DeviceAttribute
}

// lookup returns an attribute that is a string, a version or a number, or the first
// number of a list; see vendors.Lookup.
func (a attributes) lookup(name string) (text string, found bool) {
	for _, qualified := range [...]string{name, a.driver + "/" + name} {
		value, ok := a.values[resourcev1.QualifiedName(qualified)]
		switch {
		case ok && value.StringValue != nil:
			return Text(*value.StringValue), true
		case ok && value.VersionValue != nil:
			return Text(*value.VersionValue), true
		case ok && value.IntValue != nil:
			return strconv.FormatInt(*value.IntValue, 10), true
		case ok && len(value.IntValues) > 0:
			return strconv.FormatInt(value.IntValues[0], 10), true
		}
	}
	return "", false
}
