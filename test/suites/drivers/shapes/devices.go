package main

import (
	"context"
	"fmt"
	"os"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"sigs.k8s.io/yaml"
)

// followPeriod is how often the devices file is looked at.
const followPeriod = 200 * time.Millisecond

// devicesFile is what the --devices file holds: the slices of the node's pool,
// written with the API's own field names. Devices that draw on shared counters
// and the counters themselves belong to different slices.
type devicesFile struct {
	Slices []struct {
		Devices        []resourceapi.Device     `json:"devices,omitempty"`
		SharedCounters []resourceapi.CounterSet `json:"sharedCounters,omitempty"`

		// Alpha in Kubernetes 1.37: without their gates the API server drops them.
		SkipNodeOperations     []resourceapi.SkipNodeOperation `json:"skipNodeOperations,omitempty"`
		PartitionTypeAttribute *resourceapi.FullyQualifiedName `json:"partitionTypeAttribute,omitempty"`
	} `json:"slices"`
}

// devicesSource is the file of the devices, and the node whose name is the
// pool's.
type devicesSource struct{ path, node string }

// read reads the file into one pool named after the node. An unknown field is
// an error, lest a misspelt shape be published as another.
func (s devicesSource) read() (resourceslice.DriverResources, error) {
	data, err := os.ReadFile(s.path)
	if err != nil {
		return resourceslice.DriverResources{}, fmt.Errorf("read devices: %w", err)
	}
	var file devicesFile
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return resourceslice.DriverResources{}, fmt.Errorf("parse %s: %w", s.path, err)
	}
	var pool resourceslice.Pool
	for _, slice := range file.Slices {
		pool.Slices = append(pool.Slices, resourceslice.Slice{
			Devices:        slice.Devices,
			SharedCounters: slice.SharedCounters,

			SkipNodeOperations:     slice.SkipNodeOperations,
			PartitionTypeAttribute: slice.PartitionTypeAttribute,
		})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{s.node: pool}}, nil
}

// follow calls publish with the devices, and again whenever the file has
// changed, until ctx is done. A file that cannot be read ends it.
func (s devicesSource) follow(ctx context.Context, publish func(resourceslice.DriverResources) error) error {
	var before time.Time
	for {
		info, err := os.Stat(s.path)
		if err != nil {
			return fmt.Errorf("read devices: %w", err)
		}
		if !info.ModTime().Equal(before) {
			resources, err := s.read()
			if err != nil {
				return err
			}
			if err := publish(resources); err != nil {
				return fmt.Errorf("publish devices: %w", err)
			}
			before = info.ModTime()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPeriod):
		}
	}
}
