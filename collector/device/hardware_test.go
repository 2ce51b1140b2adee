package device

import (
	"strings"
	"testing"
)

func TestCleanHardware(t *testing.T) {
	for written, want := range map[string]string{
		"1650923004310":            "1650923004310",
		" 692-2G520-0200-000\t\n":  "692-2G520-0200-000",
		"0":                        "0",
		"":                         "",
		"N/A":                      "",
		"[N/A]":                    "",
		"<<<NULL>>>":               "",
		"Unknown":                  "",
		"Not Specified":            "",
		"12\x0034":                 "",
		"12\n34":                   "",
		"\uFFFD\uFFFD":             "",
		"\xff":                     "",
		"12\u202e34":               "",
		strings.Repeat("1", 80):    strings.Repeat("1", 80),
		strings.Repeat("1", 81):    "",
		strings.Repeat("1", 1<<20): "",
	} {
		if got := (Hardware{VBIOS: written}).clean().VBIOS; got != want {
			t.Errorf("%.40q becomes %q, want %q", written, got, want)
		}
	}
	zeros := Hardware{Serial: "0000000000000", ChassisSerial: "0", Index: "0", Slot: "0", Tray: "0"}
	if got, want := zeros.clean(), (Hardware{Index: "0", Slot: "0", Tray: "0"}); got != want {
		t.Errorf("zeros become %+v, want %+v", got, want)
	}
}

// What one source lacks is taken from the next.
func TestMergeHardware(t *testing.T) {
	first := Sample{Device: Device{UUID: "GPU-a", Hardware: Hardware{Serial: "1", Index: "0"}}}
	second := Sample{Device: Device{UUID: "GPU-a", Hardware: Hardware{Serial: "2", VBIOS: "96.00"}}}
	third := Sample{Device: Device{UUID: "GPU-a", Hardware: Hardware{VBIOS: "97.00", Slot: "3"}}}
	merged, _ := Merge([][]Sample{{first}, {second}, {third}}, 0)
	want := Hardware{Serial: "1", VBIOS: "96.00", Index: "0", Slot: "3"}
	if len(merged) != 1 || merged[0].Device.Hardware != want {
		t.Errorf("merged %+v, want %+v", merged, want)
	}
	if first.Device.Hardware.VBIOS != "" {
		t.Error("the sample given was changed")
	}
}

// Serial numbers that are not wanted are in no sample, and no partition has hardware.
func TestKeptHardware(t *testing.T) {
	all := Hardware{
		Serial: "1", BoardPartNumber: "692", VBIOS: "96.00\x1b[2J", Index: "0",
		ModuleID: "1", ChassisSerial: "2", Slot: "3", Tray: "4",
	}
	for name, test := range map[string]struct {
		state readerState
		of    Device
		want  Hardware
	}{
		"a device":        {readerState{}, Device{Hardware: all}, Hardware{Serial: "1", BoardPartNumber: "692", Index: "0", ModuleID: "1", ChassisSerial: "2", Slot: "3", Tray: "4"}},
		"without serials": {readerState{secret: true}, Device{Hardware: all}, Hardware{BoardPartNumber: "692", Index: "0", ModuleID: "1", Slot: "3", Tray: "4"}},
		"a partition":     {readerState{}, Device{ParentUUID: "GPU-a", Hardware: all}, Hardware{}},
	} {
		if got := test.state.hardware(test.of); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func FuzzCleanHardware(f *testing.F) {
	f.Add("1650923004310")
	f.Add("[N/A]")
	f.Add("\xff\x00")
	f.Fuzz(func(t *testing.T, text string) {
		once := cleanHardwareText(text)
		if twice := cleanHardwareText(once); twice != once {
			t.Errorf("%q becomes %q, and then %q", text, once, twice)
		}
		if len(once) > maxHardwareText || strings.ContainsAny(once, "\n\x00\x1b\uFFFD") {
			t.Errorf("%q becomes %q", text, once)
		}
	})
}
