package apiserver

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func poolOf(device dra.DeviceID) decode.PoolID {
	return decode.PoolID{Driver: device.Driver, Name: device.Pool}
}

// pools holds the devices of each pool as of its newest complete generation:
// while a driver is replacing its slices one by one, the generation before
// stays. A pool of which no slice is left has no devices; the kubelet
// deletes a driver's slices thirty seconds after the driver has gone, and
// whoever needs to know their devices longer must remember them.
type pools map[decode.PoolID][]dra.PublishedDevice

// update brings the pools up to date with the slices that there are.
func (p pools) update(present []decode.SliceRecord) {
	byPool := make(map[decode.PoolID][]decode.SliceRecord)
	for _, slice := range present {
		byPool[slice.Pool] = append(byPool[slice.Pool], slice)
	}
	maps.DeleteFunc(p, func(pool decode.PoolID, _ []dra.PublishedDevice) bool { return len(byPool[pool]) == 0 })
	for pool, all := range byPool {
		if newest := newestGeneration(all); !newest.missing {
			p[pool] = newest.devices
		}
	}
}

// generation is the newest of a pool, as far as its slices are there.
type generation struct {
	devices []dra.PublishedDevice
	missing bool // some slices
	surplus bool // more slices than there should be: some will go
}

// newestGeneration returns the devices of the newest generation; of no
// slices, none. A driver that starts again may publish the generation that
// is there under new names before it deletes the old slices: where two name
// the same device, the newer slice stands.
func newestGeneration(present []decode.SliceRecord) generation {
	if len(present) == 0 {
		return generation{}
	}
	all := slices.SortedFunc(slices.Values(present), newestFirst)
	newest := all[0]
	seen := make(map[string]bool)
	found := int64(0)
	var devices []dra.PublishedDevice
	for _, slice := range all {
		if slice.Generation != newest.Generation {
			break
		}
		found++
		for _, device := range slice.Devices {
			if !seen[device.ID.Name] {
				seen[device.ID.Name] = true
				devices = append(devices, device)
			}
		}
	}
	return generation{devices: devices, missing: found < newest.Count, surplus: found > newest.Count}
}

func newestFirst(a, b decode.SliceRecord) int {
	return cmp.Or(
		cmp.Compare(b.Generation, a.Generation),
		b.Created.Compare(a.Created),
		compareVersions(b.Version, a.Version),
		cmp.Compare(a.Name, b.Name),
	)
}

// compareVersions takes resource versions that are none for equal.
func compareVersions(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}
