//go:build cgo

package nvml

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
)

// boundGPUs returns the PCI addresses of what NVIDIA's kernel driver is bound to,
// from sysfs: GPUs, and perhaps more. They are not known if sysfs or the driver is
// missing.
//
// The library lists the GPUs that were there when it was initialized. The addresses
// show that another one was added since, or that one was removed properly.
func boundGPUs(root string) (addresses map[string]bool, known bool) {
	if root == "" {
		return nil, false
	}
	addresses, err := sysfs.Bound(root, "nvidia")
	return addresses, err == nil
}

// driverVersion returns the version of NVIDIA's kernel driver that is loaded, from
// sysfs; empty if it is not known.
func driverVersion(root string) string {
	if root == "" {
		return ""
	}
	text, _ := os.ReadFile(filepath.Join(root, "module/nvidia/version"))
	return strings.TrimSpace(string(text))
}

// unlistedAddresses are PCI addresses that the driver is bound to and the library
// does not list, each with the connection in which it was first missing.
type unlistedAddresses map[string]uint64

// update applies which addresses are bound and which of them are listed. It
// reports whether there is one for which the library has not been initialized
// again yet: one attempt is enough for what it does not list at all.
func (s unlistedAddresses) update(bound, listed map[string]bool, connection uint64) bool {
	for address := range s {
		if !bound[address] || listed[address] {
			delete(s, address)
		}
	}
	untried := false
	for address := range bound {
		if listed[address] {
			continue
		}
		first, ok := s[address]
		if !ok {
			s[address], first = connection, connection
		}
		untried = untried || first == connection
	}
	return untried
}
