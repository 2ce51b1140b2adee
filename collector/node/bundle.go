package node

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// bundledFrom is how many devices of a driver whose devices no source reads a claim
// has at least if they are a bundle: one device with the number of them. Nodes have
// sixteen accelerators or adapters at most, and more CPUs. A claim has one CPU, or
// many; a driver that publishes CPUs in groups shares them between claims.
func bundledFrom(driver string) int {
	if vendors.ByDriver(driver).Kind == vendors.CPU {
		return 2
	}
	return 17
}

// bundles are devices of a claim that no source reads, by their driver. The value of a
// device is true unless the claim has admin access to it.
type bundles map[string]map[dra.DeviceID]bool

func (b *bundles) add(d *claimDevice) {
	if *b == nil {
		*b = make(bundles)
	}
	devices := (*b)[d.id.Driver]
	if devices == nil {
		devices = make(map[dra.DeviceID]bool)
		(*b)[d.id.Driver] = devices
	}
	devices[d.id] = devices[d.id] || !d.admin
}

// apply gives the devices of each bundle its uuid, and returns the number of devices
// that the claim holds by each.
func (b bundles) apply(node string, view *claimView) map[string]int {
	var counts map[string]int
	for driver, devices := range b {
		if len(devices) < bundledFrom(driver) {
			continue
		}
		if counts == nil {
			counts = make(map[string]int)
		}
		uuid := bundleUUID(node, driver, view.ref)
		counts[uuid] = 0
		for _, held := range devices {
			if held {
				counts[uuid]++
			}
		}
		for i := range view.devices {
			if d := &view.devices[i]; d.id.Driver == driver && d.shareID == "" {
				if _, ok := devices[d.id]; ok {
					d.uuid, d.bundled = uuid, true
				}
			}
		}
	}
	return counts
}

// bundleUUID returns the identity of a bundle. No device has it, because no name of a
// pool has a colon.
func bundleUUID(node, driver string, claim dra.ClaimRef) string {
	return node + "/" + driver + metric.BundleMark + claim.String()
}
