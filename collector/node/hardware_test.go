package node

import (
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// hardwareRows returns the rows of dra_device_hardware_info as text.
func hardwareRows(rows []metric.Row) (texts []string) {
	for _, row := range rows {
		if row.Family.Name != metric.DeviceHardwareInfo {
			continue
		}
		var text string
		for name, value := range row.Labels.Each {
			if value != "" {
				text += name + "=" + value + " "
			}
		}
		texts = append(texts, text)
	}
	return texts
}

func TestHardwareInfo(t *testing.T) {
	whole := device.Device{
		UUID: "GPU-a", Vendor: "nvidia", Minor: 3, RenderMinor: device.Unknown, Placement: device.Unknown,
		GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		Hardware: device.Hardware{
			Serial: "1650923004310", BoardPartNumber: "692-2G520", VBIOS: "96.00", Index: "2", ModuleID: "1",
			ChassisSerial: "1821325191344", Slot: "9", Tray: "4",
		},
	}
	part := whole
	part.UUID, part.ParentUUID = "MIG-a", "GPU-a"
	bare := unidentified()
	bare.UUID, bare.Vendor = "GPU-b", "amd"
	half := bare
	half.UUID, half.Hardware = "GPU-c", device.Hardware{VBIOS: "113-M3"}
	now, state := origin(), NewState(Config{Node: "n"})
	step := func(devices ...device.Device) []string {
		var samples []device.Sample
		for _, d := range devices {
			samples = append(samples, device.Sample{Device: d, Source: "nvml"})
		}
		var snapshot Snapshot
		state, snapshot, _ = Step(state, Facts{Samples: samples}, now)
		return hardwareRows(snapshot.Rows())
	}
	const all = "board_part_number=692-2G520 chassis_serial=1821325191344 index=2 minor_number=3 module_id=1 node=n serial=1650923004310 slot=9 tray=4 uuid=GPU-a vbios=96.00 "
	expect := func(when string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", when, got, want)
		}
	}
	expect("all", step(whole, part, bare, half), all, "node=n uuid=GPU-c vbios=113-M3 ")
	expect("lost", step(part, bare, half), all, "node=n uuid=GPU-c vbios=113-M3 ")
	flashed := whole
	flashed.Hardware = device.Hardware{VBIOS: "97.00"}
	expect("flashed", step(flashed), "minor_number=3 node=n uuid=GPU-a vbios=97.00 ", "node=n uuid=GPU-c vbios=113-M3 ")
}
