package headroom

import (
	"context"
	"math"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// NodeFill is how often the claims of a pod can be allocated on a node, one pod after
// the other.
type NodeFill struct {
	Node string
	Pods int
	// More means that there may be more: Pods is as many as are counted.
	More bool
}

// PerNode returns how often claims with these specifications can be allocated together on
// each node with devices, sorted by node. It considers devices only. On nodes that have
// devices in common they are allocated in the order of the nodes. At most so many pods
// are counted on a node. Claims that take no devices, because they have admin access, can
// be allocated any number of times where they can be allocated once.
func PerNode(ctx context.Context, inv *inventory.Inventory, specs []*resourcev1.ResourceClaimSpec, most int) ([]NodeFill, error) {
	s, counts := newShape(0, specs...)
	if !counts {
		return untaking(ctx, inv, specs, most)
	}
	p := newPlanner(Options{Inventory: inv, Clock: clock.System()}, allocator.NewCache(), allocator.CommandLimit)
	g := newShapeGroup(s)
	g.shapes, s.group, s.most = []*shape{s}, g, most
	p.shapes = g.shapes
	p.nodes.update(inv.Overview().NodeStamps())
	pause := func(ctx context.Context) error { return ctx.Err() }
	if err := g.update(ctx, pause, inv, &p.nodes); err != nil {
		return nil, err
	}
	if g.traits == nil {
		if err := p.searchEach(ctx, pause, g); err != nil {
			return nil, err
		}
	}
	if _, err := p.search(ctx, pause, g, s, math.MaxInt); err != nil {
		return nil, err
	}
	all := make([]NodeFill, 0, len(p.nodes.names))
	for i, name := range p.nodes.names {
		found := NodeFill{Node: name}
		if at := g.of[i]; at == noKey {
			found.Pods, found.More = int(s.linked.perNode[int32(i)]), s.linked.more
		} else {
			fill := s.found[g.keys[at]]
			found.Pods, found.More = int(fill.claims), fill.more
		}
		all = append(all, found)
	}
	return all, nil
}

// untaking returns the result for claims that take no devices: the maximum on each
// node on which they can be allocated once, and 0 on the other nodes.
func untaking(ctx context.Context, inv *inventory.Inventory, specs []*resourcev1.ResourceClaimSpec, most int) ([]NodeFill, error) {
	nodeCache := allocator.NewNodeCache(inv, allocator.NewCache(), allocator.CommandLimit)
	pause := func(ctx context.Context) error { return ctx.Err() }
	var all []NodeFill
	for _, name := range inv.Nodes() {
		found := NodeFill{Node: name, Pods: most, More: true}
		if len(specs) > 0 {
			node, exists, err := nodeCache.Node(ctx, name)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil || !exists { // a slice that cannot be unpacked: nothing is allocated there
				continue
			}
			once, err := nodeCache.Fill(ctx, pause, node, specs, 1)
			if err != nil {
				return nil, err
			}
			if once.Times == 0 {
				found.Pods, found.More = 0, once.More
			}
		}
		all = append(all, found)
	}
	return all, nil
}

// searchEach searches each node by itself. It is used if it is not known which nodes
// are the same.
func (p *Planner) searchEach(ctx context.Context, pause inventory.Pause, g *shapeGroup) error {
	g.of = make([]int32, len(p.nodes.names))
	for i := range g.of {
		g.of[i] = noKey
	}
	g.linkedVersion++
	return pause(ctx)
}
