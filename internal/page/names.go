package page

import "strings"

// name is the device's published name. NVIDIA's driver publishes no GPU in MIG
// mode, but its MIG devices, whose names begin with the GPU's: gpu-5 of
// gpu-5-mig-1g10gb-19-6. If all of them agree, that is the GPU's name.
func (d Device) name() DeviceName {
	if d.Published.Device != "" || len(d.Partitions) == 0 {
		return d.Published
	}
	var name DeviceName
	for _, partition := range d.Partitions {
		stem, _, isMIG := strings.Cut(partition.Published.Device, "-mig-")
		of := DeviceName{Driver: partition.Published.Driver, Pool: partition.Published.Pool, Device: stem}
		switch {
		case partition.Published.Device == "": // it says nothing
		case !isMIG || of.Driver != nvidiaDriver || name.Device != "" && name != of:
			return d.Published
		default:
			name = of
		}
	}
	return name
}

// nvidiaDriver is the driver whose naming rule name knows.
const nvidiaDriver = "gpu.nvidia.com"

// nameParents tells partitions, and what claims get of them, the names of
// their whole devices.
func (v *View) nameParents() {
	names := map[string]string{}
	for i := range v.Devices {
		whole := &v.Devices[i]
		if len(whole.Partitions) == 0 {
			continue
		}
		names[whole.UUID] = whole.Title()
		for j := range whole.Partitions {
			whole.Partitions[j].ParentName = whole.Title()
		}
	}
	for i := range v.Claims {
		for j := range v.Claims[i].Devices {
			device := &v.Claims[i].Devices[j]
			device.ParentName = names[device.ParentUUID]
		}
	}
}
