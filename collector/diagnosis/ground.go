package diagnosis

import (
	"context"
	"fmt"

	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// site is a node as the allocator sees it.
type site struct {
	inventory.NodeSupply
	allocator structured.Allocator
}

// ground keeps the sites of one version of the inventory, so that several
// orders, and several looks at one order, share what was unpacked. It belongs
// to one goroutine.
type ground struct {
	judge   *Diagnoser
	version uint64
	sites   map[string]site
	devices int // in the slices of all sites
}

// groundDevices is of how many devices the slices are kept: a few kilobytes
// each.
const groundDevices = 8192

func newGround(j *Diagnoser) *ground { return &ground{judge: j, sites: make(map[string]site)} }

// features are those of the allocator: all, because what a claim or a slice
// uses the API server has let pass.
func features() structured.Features {
	return structured.Features{
		AdminAccess: true, CompatibilityGroups: true, ConsumableCapacity: true, DerivedAttributes: true,
		DeviceBindingAndStatus: true, DeviceTaints: true, FractionalCapacityRange: true, ListTypeAttributes: true,
		OptionalNodeOperations: true, PartitionableDevices: true, PrioritizedList: true,
	}
}

// site is the node of that name, and false if there is none.
func (g *ground) site(ctx context.Context, name string) (site, bool, error) {
	if version := g.judge.inventory.Version(); version != g.version || g.devices > groundDevices {
		g.version, g.devices = version, 0
		clear(g.sites)
	}
	if known, ok := g.sites[name]; ok {
		return known, true, nil
	}
	supply, ok, err := g.judge.inventory.OnNode(name)
	if err != nil || !ok {
		return site{}, false, err
	}
	allocator, err := g.judge.allocator(ctx, supply)
	if err != nil {
		return site{}, false, err
	}
	made := site{NodeSupply: supply, allocator: allocator}
	g.sites[name] = made
	for _, slice := range supply.Slices {
		g.devices += len(slice.Spec.Devices)
	}
	return made, true, nil
}

func (j *Diagnoser) allocator(ctx context.Context, supply inventory.NodeSupply) (structured.Allocator, error) {
	allocator, err := structured.NewAllocator(ctx, features(), supply.Allocated, j.inventory.Classes(), supply.Slices, j.compiled)
	if err != nil {
		return nil, fmt.Errorf("make an allocator: %w", err)
	}
	return allocator, nil
}
