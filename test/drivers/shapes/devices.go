package main

import (
	"fmt"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"sigs.k8s.io/yaml"
)

// devicesFile is what the --devices file holds: the slices of the node's pool,
// written with the API's own field names. Devices that draw on shared counters
// and the counters themselves belong to different slices.
type devicesFile struct {
	Slices []struct {
		Devices        []resourceapi.Device     `json:"devices,omitempty"`
		SharedCounters []resourceapi.CounterSet `json:"sharedCounters,omitempty"`
	} `json:"slices"`
}

// readResources reads the devices file into one pool named after the node. An
// unknown field is an error, lest a misspelt shape be published as another.
func readResources(path, node string) (resourceslice.DriverResources, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return resourceslice.DriverResources{}, fmt.Errorf("read devices: %w", err)
	}
	var file devicesFile
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return resourceslice.DriverResources{}, fmt.Errorf("parse %s: %w", path, err)
	}
	var pool resourceslice.Pool
	for _, slice := range file.Slices {
		pool.Slices = append(pool.Slices, resourceslice.Slice{
			Devices:        slice.Devices,
			SharedCounters: slice.SharedCounters,
		})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: pool}}, nil
}
