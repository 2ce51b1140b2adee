package check

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A virtual function does not count as a GPU.
func TestPCIFunctions(t *testing.T) {
	t.Parallel()
	sysfs := t.TempDir()
	for address, files := range map[string]map[string]string{
		"0000:10:00.0": {"class": "0x030200\n", "vendor": "0x10de\n"},
		"0000:10:00.4": {"class": "0x030200\n", "vendor": "0x10de\n", "physfn": ""},
		"0000:20:00.0": {"class": "0x020000\n", "vendor": "0x15b3\n"},
		"0000:30:00.0": {"class": "0x030000\n", "vendor": "0x1a03\n"},
	} {
		folder := filepath.Join(sysfs, "bus/pci/devices", address)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []PCIFunction{{Address: "0000:10:00.0", Vendor: "nvidia", GPU: true}, {Address: "0000:20:00.0", Vendor: "mellanox"}}
	if got := pciFunctions(sysfs); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
