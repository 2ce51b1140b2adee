package sysfs_test

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs/sysfstest"
)

func TestAddress(t *testing.T) {
	for name, want := range map[string]string{
		"0000:c1:00.0":   "0000:c1:00.0",
		"0000:C1:1F.7":   "0000:c1:1f.7",
		"10000:e1:00.0":  "10000:e1:00.0", // behind a volume management device
		"module":         "",
		"":               "",
		"0000:c1:00":     "",
		"0000:c1:20.0":   "",
		"0000:c1:00.8":   "",
		"0000:c1:0:0.0":  "",
		"0000:c1:00.0 ":  "",
		"mlx5_core.sf.4": "",
	} {
		if got := sysfs.Address(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("0000:c1:00.0")
	f.Add("::.")
	f.Fuzz(func(t *testing.T, name string) {
		if address := sysfs.Address(name); address != "" && (sysfs.Address(address) != address || strings.ToLower(address) != address) {
			t.Errorf("%q is %q, and that is %q", name, address, sysfs.Address(address))
		}
	})
}

func TestFunction(t *testing.T) {
	tree := sysfstest.Plant(t, "amdgpu")
	folder := sysfs.FunctionFolder(tree.Root, "0000:c1:00.0")
	var files sysfs.Files
	function, err := files.Function(folder)
	if want := (sysfs.Function{Vendor: "1002", Device: "74a1", DriverVersion: "6.12.12"}); function != want || err != nil {
		t.Errorf("%+v (%v), want %+v", function, err, want)
	}
	if function.ID() != "1002:74a1" || (sysfs.Function{Vendor: "1002"}).ID() != "" {
		t.Errorf("its number is %q", function.ID())
	}
	if bound, err := sysfs.Link(folder + "/driver"); bound != "amdgpu" || err != nil {
		t.Errorf("its driver is %q (%v)", bound, err)
	}
	tree.Remove("module/amdgpu/version")
	tree.Set("bus/pci/devices/0000:c1:00.0/uevent", "DRIVER=amdgpu\n")
	if function, err := files.Function(folder); (function != sysfs.Function{}) || err != nil {
		t.Errorf("without a version and a number: %+v (%v)", function, err)
	}
	if _, err := files.Function(sysfs.FunctionFolder(tree.Root, "0000:ff:00.0")); err == nil {
		t.Error("a function that is not there was found")
	}
}
