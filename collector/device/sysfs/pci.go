package sysfs

import (
	"os"
	"path/filepath"
	"strings"
)

// Function describes a PCI function. Unknown strings are empty.
type Function struct {
	Vendor, Device string // four hexadecimal digits, lower case
	DriverVersion  string // of a driver that has one of its own: those of the kernel do not
}

// FunctionFolder is the folder of the PCI function with an address.
func FunctionFolder(root, address string) string {
	return filepath.Join(root, "bus/pci/devices", address)
}

// Function reads a PCI function in a folder. It fails if the function was
// removed.
func (f *Files) Function(folder string) (Function, error) {
	uevent, err := f.Text(filepath.Join(folder, "uevent"))
	if err != nil {
		return Function{}, err
	}
	var known Function
	for line := range strings.Lines(uevent) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "PCI_ID="); ok {
			known.Vendor, known.Device, _ = strings.Cut(strings.ToLower(id), ":")
		}
	}
	// A driver without a version, or one that cannot be read, leaves it unknown.
	known.DriverVersion, _ = f.Text(filepath.Join(folder, "driver/module/version"))
	return known, nil
}

// ID is the vendor's and the device's number as lspci writes them, such as
// 1002:74a1; empty where they are unknown.
func (f Function) ID() string {
	if f.Vendor == "" || f.Device == "" {
		return ""
	}
	return f.Vendor + ":" + f.Device
}

// Link returns the last part of what a symbolic link points to.
func Link(path string) (string, error) {
	target, err := os.Readlink(path)
	if err != nil {
		return "", err
	}
	return filepath.Base(target), nil
}
