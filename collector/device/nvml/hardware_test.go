//go:build cgo && linux

package nvml

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// hardware reads a GPU again as after a new discovery and returns its hardware, by
// minor number.
func hardware(t *testing.T, from *Source) map[int]device.Hardware {
	t.Helper()
	found := map[int]device.Hardware{}
	for _, r := range readers(t, from) {
		observations, err := r.Read(t.Context(), device.Slow)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range observations {
			if o.Device.IsPartition() {
				if o.Device.Hardware != (device.Hardware{}) {
					t.Errorf("the partition %s has the hardware %+v", o.Device.UUID, o.Device.Hardware)
				}
				continue
			}
			found[o.Device.Minor] = o.Device.Hardware
		}
	}
	return found
}

func TestHardware(t *testing.T) {
	node, from := stubbed(t, 3, Options{})
	node.Set(0, "serial", "1650923004310")
	node.Set(0, "model", "B200")
	node.Set(1, "serial", "1650923004311")
	for _, key := range []string{"serial", "board_part_number", "vbios"} { // as on a board without an InfoROM
		node.Set(2, key, "none")
	}
	node.Set(2, "module_id", "0")
	node.Set(1, "mig.mode", "1")
	node.CreateMIG(1, "1g.10gb", -1)
	want := map[int]device.Hardware{
		0: {
			Serial: "1650923004310", BoardPartNumber: "692-2G525-0220-002", VBIOS: "97.00.82.00.2A", Index: "0", ModuleID: "1",
			ChassisSerial: "1821325191344", Slot: "9", Tray: "4",
		},
		1: {Serial: "1650923004311", BoardPartNumber: "692-2G520-0200-000", VBIOS: "96.00.74.00.01", Index: "1", ModuleID: "2"},
		2: {Index: "2"},
	}
	check := func(when string) {
		t.Helper()
		for minor, got := range hardware(t, from) {
			if got != want[minor] {
				t.Errorf("%s: GPU %d has %+v, want %+v", when, minor, got, want[minor])
			}
		}
	}
	check("at first")

	// What fails keeps its value; what was flashed is new.
	for _, function := range hardwareFunctions() {
		node.Set(0, "return."+function, "NVML_ERROR_UNKNOWN")
	}
	node.Set(1, "vbios", "96.00.99.00.01")
	flashed := want[1]
	flashed.VBIOS = "96.00.99.00.01"
	want[1] = flashed
	check("later")
}

// The chassis' serial number fills its field without an end, or is bytes that are no text.
func TestHardwareOfWrongPlatforms(t *testing.T) {
	node, from := stubbed(t, 2, Options{})
	node.Set(0, "platform.chassis_serial", "0123456789abcdefXYZ")
	node.Set(0, "platform.slot", "300")
	node.Set(1, "platform.chassis_serial", "\xff\xfe")
	got := hardware(t, from)
	if got[0].ChassisSerial != "0123456789abcdef" || got[0].Slot != "44" {
		t.Errorf("a long serial number: %+v", got[0])
	}
	if got[1].ChassisSerial != "\uFFFD" {
		t.Errorf("bytes: %+v", got[1])
	}
}
