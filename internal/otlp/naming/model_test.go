package naming

import (
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// parseNode makes the model that rows are of, as far as facts need it: a naming that
// reads the model must push what the rows alone would lead to. A device or claim is in it
// if its info row is on the page.
func parseNode(rows []metric.Row) *model.Node {
	node, places := &model.Node{}, map[string]int{}
	for _, row := range rows {
		label := row.Labels.Get
		switch row.Family.Name {
		case metric.DeviceInfo:
			places[label("uuid")] = len(node.Devices)
			node.Devices = append(node.Devices, model.Device{
				Identity: &model.Identity{
					UUID: label("uuid"), Vendor: label("vendor"), Model: label("model"), DriverVersion: label("driver_version"), Source: label("source"),
				},
				Details: &model.Details{Minor: device.Unknown}, Fresh: true,
			})
		case metric.ClaimInfo:
			node.Claims = append(node.Claims, &model.Claim{
				Ref: dra.ClaimRef{Namespace: label("namespace"), Name: label("resourceclaim")}, UID: label("claim_uid"),
			})
		}
	}
	quantities := map[string]device.Quantity{
		metric.DeviceMemorySizeBytes: device.MemorySize, metric.DeviceNetworkReceiveBytes: device.NetworkReceive, metric.DeviceNetworkLinkState: device.NetworkLinks,
	}
	for _, row := range rows {
		label := row.Labels.Get
		place, ok := places[label("uuid")]
		if !ok {
			continue
		}
		d, name := &node.Devices[place], row.Family.Name
		if quantity, ok := quantities[name]; ok {
			d.Readings = append(d.Readings, device.Reading{Quantity: quantity, Value: row.Value})
		}
		switch name {
		case metric.DeviceHardwareInfo:
			d.Minor, d.Hardware.Serial, d.Hardware.VBIOS = 0, label("serial"), label("vbios")
		case "dra_device_health_signal_info":
			d.Signals = append(d.Signals, model.Signal{Name: label("signal"), Critical: label("severity") != "warning"})
		}
	}
	return node
}
