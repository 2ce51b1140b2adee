package sysfs_test

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

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
