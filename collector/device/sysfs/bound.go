package sysfs

import (
	"path/filepath"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Bound returns the PCI addresses of the functions to which a kernel driver is bound. It
// fails with fs.ErrNotExist if the driver is not loaded. The root is where sysfs is
// mounted.
func Bound(root, driver string) (map[string]bool, error) {
	names, err := Names(filepath.Join(root, "bus/pci/drivers", driver))
	if err != nil {
		return nil, err
	}
	bound := make(map[string]bool)
	for _, name := range names {
		if address := device.PCIAddress(name); address != "" {
			bound[address] = true
		}
	}
	return bound, nil
}
