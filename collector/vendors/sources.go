package vendors

// DeviceSource is a device source of this exporter. What builds it is in the table of
// cmd/dra-exporter, which has the same rows.
type DeviceSource struct {
	Name string     // of --device.source, and label value source
	Kind DeviceKind // what it reads; Unknown: devices of any kind
}

// Sources returns the device sources in the order of precedence.
func Sources() []DeviceSource {
	return []DeviceSource{
		{"nvml", GPU}, {"dcgm", GPU}, {"amdgpu", GPU}, {"intel", GPU}, {"rdma", Network},
		{"tpu", GPU}, {"neuron", GPU}, {"exporter", Unknown}, {"simulated", Unknown},
	}
}

// SourceByName returns a device source; false if there is none of the name.
func SourceByName(name string) (DeviceSource, bool) {
	for _, source := range Sources() {
		if source.Name == name {
			return source, true
		}
	}
	return DeviceSource{}, false
}
