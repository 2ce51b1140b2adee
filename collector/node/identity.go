package node

import (
	"fmt"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// hardwareUUID is the one identity of a piece of hardware: the vendor's
// UUID, or its address on this node, and its place there if it is a part: the
// ids of its instances, of which two may begin at the same memory slice, or
// its profile and that slice.
func hardwareUUID(node string, d device.Device) string {
	address := node + "/pci-" + d.PCIBusID
	switch {
	case d.UUID != "":
		return d.UUID
	case !d.IsPartition():
		return address
	case placed(d):
		return fmt.Sprintf("%s/gi%d-ci%d", address, d.GPUInstance, d.ComputeInstance)
	default:
		return fmt.Sprintf("%s/%s-%d", address, plainProfile(d.Profile), d.Placement)
	}
}

// unknownUUID is the identity of a held device whose hardware nobody knows.
func unknownUUID(node string, id dra.DeviceID) string {
	return node + "/" + id.String()
}

// plainProfile spells a partition profile the way device names do: without
// dots, in lower case.
func plainProfile(profile string) string {
	return strings.ToLower(strings.ReplaceAll(profile, ".", ""))
}
