package phases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/child"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/node"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/sample"
)

// leastHeld is what a load holds at least, mostHeld at most: bytes.
const (
	leastHeld = 64 << 20
	mostHeld  = 1 << 30
)

// mostLine is how long a line of a command of gpukit may be, in bytes.
const mostLine = direct.MaxLine

// Device is the device that loads run on.
type Device struct {
	UUID, Name string
	Ready      load.Ready // of a load that did nothing; zero if there was none
	CUDA       error      // why no load can run
}

// held is the memory of each load of a phase: bytes.
func (d Device) held(loads int) uint64 {
	return min(mostHeld, max(leastHeld, d.Ready.FreeBytes/uint64(4*max(loads, 1))))
}

// published are the devices of a sample, as the node publishes them.
func published(s direct.Sample) []node.Device {
	number := func(value *float64) int {
		if value == nil {
			return 0
		}
		return int(*value)
	}
	var all []node.Device
	for _, d := range s.Devices {
		device := node.Device{
			UUID: d.UUID, ParentUUID: d.ParentUUID, ProductName: d.Name, PCIBusID: d.PCIBusID, DriverVersion: s.DriverVersion,
			GPUInstance: number(d.GPUInstance), ComputeInstance: number(d.ComputeInstance),
		}
		if d.Memory.Total != nil {
			device.MemoryBytes = uint64(*d.Memory.Total)
		}
		all = append(all, device)
	}
	return all
}

// choose returns the device that loads run on: the one that is wanted, else the
// first MIG device or GPU that has none.
func choose(s direct.Sample, wanted string) (direct.Device, error) {
	var uuids []string
	for i, d := range s.Devices {
		partitioned := d.ParentUUID == "" && i+1 < len(s.Devices) && s.Devices[i+1].ParentUUID == d.UUID
		if strings.EqualFold(d.UUID, wanted) || wanted == "" && !partitioned {
			return d, nil
		}
		uuids = append(uuids, d.UUID)
	}
	return direct.Device{}, fmt.Errorf("--device=%s: the management library lists: %s", wanted, strings.Join(uuids, ", "))
}

// probe finds out whether a load can run on a device.
func probe(ctx context.Context, o Options, of direct.Device) Device {
	d := Device{UUID: of.UUID, Name: of.Name}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	events := sample.NewLoad()
	p, err := child.Start(ctx, child.Options{
		Path: o.Program,
		Arguments: []string{
			"load", "--device=" + of.UUID, "--kind=" + string(load.Idle), "--memory=16MiB", "--duration=1ms", "--library=" + o.CUDALibrary,
		},
		Out: &child.Lines{Each: events.Add, Most: mostLine},
	})
	if err != nil {
		d.CUDA = err
		return d
	}
	ended := p.Err()
	if d.Ready, _ = events.Events(); d.Ready.UUID == "" {
		d.CUDA = errors.Join(events.Err(), ended)
	}
	return d
}

// startLimit is how long a program may need to begin: a driver that no program
// uses takes seconds to wake each GPU.
const startLimit = 90 * time.Second
