package headroom

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// publish makes the result of the searches.
func (p *Planner) publish(ctx context.Context, pause inventory.Pause) error {
	made := &dra.Headroom{}
	capacities := p.capacities()
	free := map[string]int{}
	for _, g := range p.groups {
		if g.traits == nil {
			continue
		}
		var counts []inventory.Count
		for _, request := range g.requests {
			if err := pause(ctx); err != nil {
				return err
			}
			counts = append(counts, p.options.Inventory.Count(request))
		}
		for _, s := range g.shapes {
			if s.uses == 0 && s.devices > 1 && p.options.Inventory.Overview().MostOnNode(g.requests[0]) < int(s.devices) {
				continue // nodes have fewer, and no claim requests so many
			}
			made.Shapes = append(made.Shapes, p.headroom(g, s, counts, capacities))
			if s.simple {
				free[s.class] = counts[0].Left[dra.StageFree]
			}
		}
	}
	slices.SortFunc(made.Shapes, func(a, b dra.ShapeHeadroom) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Shape, b.Shape))
	})
	made.Classes = p.fragmentation(made.Shapes, free)
	if made.StrandedKnown = capacities != nil; made.StrandedKnown {
		made.Stranded = p.options.Inventory.Overview().Stranded(p.needs, p.partnerless())
		made.KeptNodes = p.options.Inventory.Overview().KeptNodes()
	}
	p.latest.Store(made)
	return nil
}

// headroom adds up the results for a shape.
func (p *Planner) headroom(g *shapeGroup, s *shape, counts []inventory.Count, capacities *nodeCapacities) dra.ShapeHeadroom {
	made := dra.ShapeHeadroom{Class: s.class, Shape: s.text, Requests: s.asked, Exact: true, PodsKnown: capacities != nil}
	fills := make([]*fill, len(g.keys))
	left, most := make([]int, len(s.requests)), make([]int, len(s.requests))
	together := len(s.linked.perNode) > 0 // some node has enough left for each request
	for at, key := range g.keys {
		if found, ok := s.found[key]; ok && g.users[at] > 0 {
			fills[at] = &found
			made.Exact = made.Exact && !found.more
			for i, n := range found.left {
				left[i] += int(n) * int(g.users[at])
				most[i] = max(most[i], int(n))
			}
			together = together || s.sufficeEach(found.left)
		}
	}
	for i, n := range s.linked.left {
		left[i] += int(n)
		most[i] = max(most[i], int(n))
	}
	made.Exact = made.Exact && !s.linked.more
	claims, pods := 0, 0
	for i, at := range g.of {
		onNode := 0
		switch {
		case at == noKey:
			onNode = int(s.linked.perNode[int32(i)])
		case fills[at] != nil:
			onNode = int(fills[at].claims)
		default: // not searched yet
			made.Exact = false
		}
		claims += onNode
		if capacities != nil && onNode > 0 {
			pods += capacities.pods(i, s, onNode)
		}
	}
	made.Claims, made.Pods = claims, min(pods, claims)
	if made.Exact {
		made.Limit = limit(s, counts, left, most, together)
	}
	return made
}

// limit returns the reason why one more claim would be pending. Its arguments are
// how many devices could still be allocated for each request, in all and on one
// node, and whether a node has enough for each request. The reason is not known for
// a request of all devices of a node.
func limit(s *shape, counts []inventory.Count, left, most []int, together bool) dra.PendingReason {
	if slices.ContainsFunc(s.requests, func(r diagnosis.Request) bool { return r.Count == 0 }) {
		return dra.ReasonNone
	}
	rest := slices.Clone(counts)
	for i := range rest {
		rest[i].Left[dra.StageFree], rest[i].Left[dra.StageBestNode] = left[i], most[i]
	}
	if reason := diagnosis.Shortage(s.requests, rest); reason != dra.ReasonNone {
		return reason
	}
	if together && len(s.constraints()) > 0 {
		return dra.ReasonConstraints
	}
	return dra.ReasonFragmented
}

// sufficeEach reports whether each request, by itself, has as many devices as it
// needs.
func (s *shape) sufficeEach(left []int32) bool {
	for i, r := range s.requests {
		if r.Name == r.Parent && int(left[i]) < r.Devices() {
			return false
		}
	}
	return true
}

// fragmentation returns the expected share of the free devices of each class that a
// claim cannot use: the sum over the shapes that claims and templates request of their
// share of all uses, times the share of the free devices that is left when as many
// claims of the shape as possible are allocated. Classes without free devices, without
// requests or with an inexact figure are omitted.
func (p *Planner) fragmentation(shapes []dra.ShapeHeadroom, free map[string]int) []dra.ClassFragmentation {
	found := make(map[[2]string]*dra.ShapeHeadroom, len(shapes))
	for i := range shapes {
		found[[2]string{shapes[i].Class, shapes[i].Shape}] = &shapes[i]
	}
	var all []dra.ClassFragmentation
	for i := 0; i < len(p.shapes); {
		class, uses, wasted, exact := p.shapes[i].class, 0, 0.0, true
		for ; i < len(p.shapes) && p.shapes[i].class == class; i++ {
			s := p.shapes[i]
			entry := found[[2]string{s.class, s.text}]
			devices := int(s.devicesOfClass())
			if s.uses == 0 || entry == nil || !s.fixed() || devices == 0 {
				continue
			}
			exact = exact && entry.Exact
			uses += s.uses
			usable := min(entry.Claims*devices, free[class])
			wasted += float64(s.uses) * float64(free[class]-usable)
		}
		if uses > 0 && exact && free[class] > 0 {
			all = append(all, dra.ClassFragmentation{Class: class, Ratio: wasted / float64(uses) / float64(free[class])})
		}
	}
	return all
}

// fixed reports whether all claims of the shape have the same number of devices.
func (s *shape) fixed() bool {
	return !slices.ContainsFunc(s.requests, func(r diagnosis.Request) bool { return r.Count == 0 || r.Name != r.Parent || r.Capacity != nil })
}

// devicesOfClass is how many devices of its class a claim takes: none by admin access.
func (s *shape) devicesOfClass() int64 {
	var sum int64
	for _, r := range s.requests {
		if r.Class == s.class && !r.AdminAccess {
			sum += r.Count
		}
	}
	return sum
}

// partnerless returns the classes and nodes with devices that no known claim can use:
// all claims and templates that request devices of the class request other devices too,
// and cannot be allocated on the node.
func (p *Planner) partnerless() []inventory.Partnerless {
	single, requested := map[string]*shape{}, map[string][]*shape{}
	alone := map[string]bool{} // classes of which devices are requested by themselves
	for _, s := range p.shapes {
		if s.simple && s.devices == 1 {
			single[s.class] = s
		}
		if s.uses == 0 {
			continue
		}
		classes := s.classes()
		for _, class := range classes {
			requested[class] = append(requested[class], s)
			alone[class] = alone[class] || len(classes) == 1
		}
	}
	var all []inventory.Partnerless
	for _, class := range slices.Sorted(maps.Keys(requested)) {
		s := single[class]
		if s == nil || alone[class] {
			continue
		}
		for i, node := range p.nodes.names {
			some, ok := s.onNode(i)
			for _, s := range requested[class] {
				claims, found := s.onNode(i)
				ok = ok && found && claims == 0
			}
			if ok && some > 0 {
				all = append(all, inventory.Partnerless{Class: class, Node: node})
			}
		}
	}
	return all
}

// classes returns the classes of its requests, each once.
func (s *shape) classes() []string {
	var all []string
	for _, r := range s.requests {
		if !slices.Contains(all, r.Class) {
			all = append(all, r.Class)
		}
	}
	return all
}

// onNode returns how many claims of the shape can be allocated on a node, at least, and
// false if it is not known whether any can.
func (s *shape) onNode(node int) (int, bool) {
	if s.group.traits == nil || node >= len(s.group.of) {
		return 0, false
	}
	at := s.group.of[node]
	if at == noKey {
		claims := int(s.linked.perNode[int32(node)])
		return claims, claims > 0 || !s.linked.more
	}
	found, ok := s.found[s.group.keys[at]]
	return int(found.claims), ok && (found.claims > 0 || !found.more)
}

// nodeCapacities has the resources of the nodes besides devices.
type nodeCapacities struct {
	left  []inventory.ResourceAmounts // by index of the node; no pods where none can be bound
	needs map[string]inventory.Need   // by class
}

// capacities returns nil if that is not known.
func (p *Planner) capacities() *nodeCapacities {
	if p.options.KnowsNodes == nil || !p.options.KnowsNodes() {
		return nil
	}
	inv := p.options.Inventory.Overview()
	if now := p.options.Clock(); p.needsAt == (clock.Instant{}) || now.Since(p.needsAt) >= needsKept {
		p.needs, p.needsAt = inv.TypicalNeeds(), now
	}
	r := &nodeCapacities{left: make([]inventory.ResourceAmounts, len(p.nodes.names)), needs: p.needs.ByClass}
	for i, name := range p.nodes.names {
		if capacity, ok := inv.NodeCapacity(name); ok && inv.Obstacle(&capacity) == "" {
			r.left[i] = capacity.Left()
		}
	}
	return r
}

// pods returns how many of the given number of pods, with one claim of the shape each,
// can be bound to the node. Each pod requests what is typical for its devices.
func (r *nodeCapacities) pods(node int, s *shape, most int) int {
	left, need := r.left[node], r.needs[s.class]
	pods := min(int64(most), left.Pods)
	for _, pair := range [][2]int64{{left.CPU, need.CPU * s.devices}, {left.Memory, need.Memory * s.devices}} {
		if pair[1] > 0 {
			pods = min(pods, pair[0]/pair[1])
		}
	}
	return int(max(pods, 0))
}
