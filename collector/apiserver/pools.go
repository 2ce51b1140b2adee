package apiserver

import (
	"cmp"
	"maps"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// poolID names a pool within the cluster.
type poolID struct{ driver, name string }

func poolOf(device dra.DeviceID) poolID { return poolID{driver: device.Driver, name: device.Pool} }

// poolSlice is one ResourceSlice, so far as it is used.
type poolSlice struct {
	name       string
	created    time.Time // in seconds
	version    string    // resource version
	pool       poolID
	generation int64
	count      int64 // of slices that the whole pool has in this generation
	devices    []dra.PublishedDevice
}

func decodePoolSlice(slice *resourcev1.ResourceSlice) poolSlice {
	return poolSlice{
		name:       slice.Name,
		created:    slice.CreationTimestamp.Time,
		version:    slice.ResourceVersion,
		pool:       poolID{driver: clean(slice.Spec.Driver), name: clean(slice.Spec.Pool.Name)},
		generation: slice.Spec.Pool.Generation,
		count:      slice.Spec.Pool.ResourceSliceCount,
		devices:    decodeSlice(slice),
	}
}

func recordSlice(slice *resourcev1.ResourceSlice) (poolSlice, bool) {
	return decodePoolSlice(slice), true
}

// pools holds the devices of each pool as of its newest complete generation:
// while a driver is replacing its slices one by one, the generation before
// stays. A pool of which no slice is left has no devices; the kubelet
// deletes a driver's slices thirty seconds after the driver has gone, and
// whoever needs to know their devices longer must remember them.
type pools map[poolID][]dra.PublishedDevice

// update brings the pools up to date with the slices that there are.
func (p pools) update(present []poolSlice) {
	byPool := make(map[poolID][]poolSlice)
	for _, slice := range present {
		byPool[slice.pool] = append(byPool[slice.pool], slice)
	}
	maps.DeleteFunc(p, func(pool poolID, _ []dra.PublishedDevice) bool { return len(byPool[pool]) == 0 })
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
func newestGeneration(present []poolSlice) generation {
	if len(present) == 0 {
		return generation{}
	}
	all := slices.SortedFunc(slices.Values(present), newestFirst)
	newest := all[0]
	seen := make(map[string]bool)
	found := int64(0)
	var devices []dra.PublishedDevice
	for _, slice := range all {
		if slice.generation != newest.generation {
			break
		}
		found++
		for _, device := range slice.devices {
			if !seen[device.ID.Name] {
				seen[device.ID.Name] = true
				devices = append(devices, device)
			}
		}
	}
	return generation{devices: devices, missing: found < newest.count, surplus: found > newest.count}
}

func newestFirst(a, b poolSlice) int {
	return cmp.Or(
		cmp.Compare(b.generation, a.generation),
		b.created.Compare(a.created),
		compareVersions(b.version, a.version),
		cmp.Compare(a.name, b.name),
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
