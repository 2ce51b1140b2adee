package page

import "net/http"

// NodeDevice is a device of the node in the document of /api/v1/claims: a whole
// device or a partition, held or not. docs/api.md describes it.
type NodeDevice struct {
	UUID       string `json:"uuid"`
	ParentUUID string `json:"parentUuid,omitempty"` // of a partition
	ParentName string `json:"parentName,omitempty"` // likewise
	Driver     string `json:"driver,omitempty"`
	Pool       string `json:"pool,omitempty"`
	Device     string `json:"device,omitempty"` // its published name
	Model      string `json:"model,omitempty"`
	Profile    string `json:"profile,omitempty"`    // of a partition
	PCIeRoot   string `json:"pcieRoot,omitempty"`   // root complex
	NUMANode   string `json:"numaNode,omitempty"`   // number
	LinkDomain string `json:"linkDomain,omitempty"` // NVLink domain or xGMI hive
	Free       bool   `json:"free"`                 // neither it nor a partition of it is held

	Hardware Hardware `json:"hardware,omitzero"` // of a whole device

	// PluginPods are the pods, as namespace/name, that got the device through a
	// device plugin.
	PluginPods []string `json:"devicePluginPods,omitempty"`

	Utilization *float64 `json:"utilizationRatio,omitempty"`
	MemoryUsed  *float64 `json:"memoryUsedBytes,omitempty"`
	MemorySize  *float64 `json:"memorySizeBytes,omitempty"`
	Power       *float64 `json:"powerWatts,omitempty"`
	Temperature *float64 `json:"temperatureCelsius,omitempty"`
	Health      *Health  `json:"health,omitempty"`
}

// nodeDevices returns the devices of the node if the query asks for them, else
// nil. Pods are those of the namespaces that it names.
func nodeDevices(r *http.Request, view View) []NodeDevice {
	if r.URL.Query().Get("devices") != "all" {
		return nil
	}
	devices, namespaces := []NodeDevice{}, requestedNamespaces(r)
	for _, whole := range view.Devices {
		devices = append(devices, newNodeDevice(whole, namespaces))
		for _, partition := range whole.Partitions {
			devices = append(devices, newNodeDevice(partition, namespaces))
		}
	}
	return devices
}

func newNodeDevice(d Device, namespaces map[string]bool) NodeDevice {
	name := d.name()
	device := NodeDevice{
		UUID: d.UUID, ParentUUID: d.ParentUUID, ParentName: d.ParentName,
		Driver: name.Driver, Pool: name.Pool, Device: name.Device, Model: d.Model, Profile: d.Profile, Free: d.Free(),
		PCIeRoot: d.PCIeRoot, NUMANode: d.NUMANode, LinkDomain: d.LinkDomain, Hardware: d.Hardware,
		Utilization: d.Utilization, MemoryUsed: d.MemoryUsed, MemorySize: d.MemorySize, Power: d.Power, Temperature: d.Temperature,
		Health: d.Health.known(),
	}
	for _, holder := range d.Holders {
		if holder.Kind != ByDevicePlugin || len(namespaces) > 0 && !namespaces[holder.Namespace] {
			continue
		}
		for _, pod := range holder.Pods {
			device.PluginPods = append(device.PluginPods, pod.Namespace+"/"+pod.Name)
		}
	}
	return device
}
