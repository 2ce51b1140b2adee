//go:build cgo

package nvml

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// What claims accrue must be read at every sample.
func TestAccruedQuantitiesAreFast(t *testing.T) {
	accrued := map[device.Quantity]bool{
		device.Utilization: true, device.Energy: true, device.Throttled: true,
		device.NVLinkTransmit: true, device.NVLinkReceive: true, device.PCIeTransmit: true, device.PCIeReceive: true,
	}
	for _, rows := range [][]row{wholeRows(true), migRows()} {
		for _, r := range rows {
			if accrued[r.quantity] && r.tier != device.Fast {
				t.Errorf("%s is read in the slow tier", device.Specs()[r.quantity].Name)
			}
		}
	}
}
