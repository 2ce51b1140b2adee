package headroom

import (
	"context"
	"math"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// fill is how often a claim of a shape can be allocated on a node.
type fill struct {
	claims int32
	more   bool    // there may be more
	left   []int32 // devices that could still be allocated after that, for each request by itself
}

// linkedFill is the same for all nodes that have devices in common.
type linkedFill struct {
	version uint64 // of the group's nodes without a key
	fill
	mostLeft []int32         // on one node
	perNode  map[int32]int32 // claims, by index of the node
}

// fillOn allocates claims of a shape on a node until the allocator refuses.
func fillOn(ctx context.Context, pause inventory.Pause, snapshot *allocator.Snapshot, node allocator.Node, s *shape) (fill, allocator.Filled, error) {
	filled, err := snapshot.Fill(ctx, pause, node, claimsFor(s.specs...), s.most)
	if err != nil {
		return fill{}, filled, err
	}
	found := fill{claims: int32(filled.Times), more: filled.More}
	for i := range s.requests {
		single, err := snapshot.Fill(ctx, pause, filled.Node, claimsFor(s.single(i)), timesPerNode)
		if err != nil {
			return fill{}, filled, err
		}
		found.left = append(found.left, int32(single.Times))
	}
	return found, filled, nil
}

// single returns the specification of a claim for one device of a request.
func (s *shape) single(request int) *resourcev1.ResourceClaimSpec {
	r := &s.requests[request]
	spec := devicesOf(r.Class, 1)
	exactly := spec.Devices.Requests[0].Exactly
	exactly.Selectors, exactly.Tolerations, exactly.Capacity = r.Selectors, r.Tolerations, r.Capacity
	return spec
}

func claimsFor(specs ...*resourcev1.ResourceClaimSpec) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for _, spec := range specs {
		claims = append(claims, &resourcev1.ResourceClaim{Spec: *spec})
	}
	return claims
}

// fillLinked allocates claims of a shape on the nodes without a key, one node after the
// other in the order of their names: what is allocated on one of them may be missing on
// the next.
func (p *Planner) fillLinked(ctx context.Context, pause inventory.Pause, g *group, s *shape) error {
	if s.linked.version == g.linkedVersion {
		return nil
	}
	found := linkedFill{version: g.linkedVersion, perNode: map[int32]int32{}, mostLeft: make([]int32, len(s.requests))}
	found.left = make([]int32, len(s.requests))
	searches := linkedSearches
	var taken allocator.Taken
	for i, at := range g.of {
		if at != noKey {
			continue
		}
		if searches <= 0 {
			found.more = true
			break
		}
		node, exists, err := p.snapshot.Node(ctx, p.nodes.names[i])
		if err != nil {
			return skipped(err)
		}
		if !exists {
			continue
		}
		node, err = p.snapshot.With(ctx, node, taken)
		if err != nil {
			return err
		}
		one, filled, err := fillOn(ctx, pause, p.snapshot, node, s)
		if err != nil {
			return err
		}
		searches -= int(one.claims) + 1 + len(s.requests)
		taken.Add(filled.Results)
		found.add(int32(i), one)
	}
	s.linked = found
	return nil
}

// add adds a node. What is left on several nodes may be the same devices, so that the
// most of one node counts.
func (l *linkedFill) add(node int32, one fill) {
	l.claims += one.claims
	l.more = l.more || one.more
	if one.claims > 0 {
		l.perNode[node] = one.claims
	}
	for i, n := range one.left {
		l.mostLeft[i] = max(l.mostLeft[i], n)
		l.left[i] = l.mostLeft[i]
	}
}

// bound returns how many claims of a shape a node can have at most, by the number of
// devices that are free for each request.
func (s *shape) bound(free []inventory.NodeCounts, node string) int {
	most := math.MaxInt32
	for i, r := range s.requests {
		if r.Name == r.Parent { // alternatives bound nothing
			most = min(most, free[i].Of(node)/r.Devices())
		}
	}
	if most == math.MaxInt32 {
		return timesPerNode
	}
	return most
}
