package apiserver

import (
	"cmp"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// poolID names a pool within the cluster.
type poolID struct{ driver, name string }

func poolOf(device dra.DeviceID) poolID { return poolID{driver: device.Driver, name: device.Pool} }

// poolSlice is one ResourceSlice, so far as it is used.
type poolSlice struct {
	name       string
	pool       poolID
	generation int64
	count      int64 // of slices that the whole pool has in this generation
	devices    []dra.PublishedDevice
}

func decodePoolSlice(slice *resourcev1.ResourceSlice) poolSlice {
	return poolSlice{
		name:       slice.Name,
		pool:       poolID{driver: clean(slice.Spec.Driver), name: clean(slice.Spec.Pool.Name)},
		generation: slice.Spec.Pool.Generation,
		count:      slice.Spec.Pool.ResourceSliceCount,
		devices:    decodeSlice(slice),
	}
}

// pools holds the devices of each pool as of its newest complete generation:
// while a driver is replacing its slices one by one, the generation before
// stays. A pool of which no slice is left has no devices; the kubelet
// deletes a driver's slices thirty seconds after the driver has gone, and
// whoever needs to know their devices longer must remember them.
type pools map[poolID][]dra.PublishedDevice

// update brings the pools up to date with the slices that there are.
func (p pools) update(present []poolSlice) {
	slices.SortFunc(present, func(a, b poolSlice) int { return cmp.Compare(a.name, b.name) })
	byPool := make(map[poolID][]poolSlice)
	for _, slice := range present {
		byPool[slice.pool] = append(byPool[slice.pool], slice)
	}
	maps.DeleteFunc(p, func(pool poolID, _ []dra.PublishedDevice) bool { return len(byPool[pool]) == 0 })
	for pool, all := range byPool {
		if devices, complete := newestGeneration(all); complete {
			p[pool] = devices
		}
	}
}

// newestGeneration returns the devices of the newest generation, and whether
// all its slices are there. Should a pool name a device twice, the first
// stands: no claim can be given a device of such a pool.
func newestGeneration(all []poolSlice) (devices []dra.PublishedDevice, complete bool) {
	newest := slices.MaxFunc(all, func(a, b poolSlice) int { return cmp.Compare(a.generation, b.generation) })
	seen := make(map[string]bool)
	present := int64(0)
	for _, slice := range all {
		if slice.generation != newest.generation {
			continue
		}
		present++
		for _, device := range slice.devices {
			if !seen[device.ID.Name] {
				seen[device.ID.Name] = true
				devices = append(devices, device)
			}
		}
	}
	return devices, present >= newest.count
}
