//go:build cgo && linux

package dcgm

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

func TestHardware(t *testing.T) {
	node := stubs.NewNode(t, 2)
	node.Set(0, "model", "B200")
	node.Set(0, "serial", "1650923004310")
	node.Set(1, "serial", "none")
	node.Set(1, "module_id", "0")
	node.CreateMIG(1, "1g.10gb", -1)
	use(t, node)
	want := []device.Hardware{
		{Serial: "1650923004310", VBIOS: "97.00.82.00.2A", Index: "0", ModuleID: "1", ChassisSerial: "1821325191344", Slot: "9", Tray: "4"},
		{VBIOS: "96.00.74.00.01", Index: "1"},
		{}, // the partition
	}
	for mode, address := range modes(t, node) {
		t.Run(mode, func(t *testing.T) {
			observations := read(t, connected(t, newSource(t, Options{HostEngine: address})), device.Slow)
			if len(observations) != len(want) {
				t.Fatalf("%d devices, want %d", len(observations), len(want))
			}
			for i, o := range observations {
				if o.Device.Hardware != want[i] {
					t.Errorf("%s has %+v, want %+v", o.Device.UUID, o.Device.Hardware, want[i])
				}
			}
		})
	}
}

// An engine that refuses the fields of the chassis has the rest.
func TestHardwareOfAnOldEngine(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.Set(0, "model", "B200")
	node.SetNode("dcgm.version", "4.2.0")
	use(t, node)
	o := read(t, connected(t, newSource(t, Options{})), device.Slow)[0]
	if got := o.Device.Hardware; got.VBIOS != "97.00.82.00.2A" || got.Serial == "" || got.ChassisSerial != "" || got.Slot != "" {
		t.Errorf("got %+v", got)
	}
}
