// Package headroom counts how many more claims could be allocated: for each device
// class, claims for some numbers of devices on one node, and the requests of most
// claims and templates. It has the scheduler's allocator allocate on each node until
// that refuses. Nodes that are the same to a request are searched once, and the
// result is kept, so that the cost of a change depends on what it affects.
//
// The stages, in the direction of the data:
//
//	shape    what claims request
//	group    for requests that read the same of devices: which nodes are the same
//	fill     how often the allocator succeeds on a node
//	Planner  what has changed, the work on it, and the result
package headroom

import (
	"context"
	"sync/atomic"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

const (
	// restAfter is how long a Planner rests after a refresh, as a multiple of its
	// duration. leastRest and mostRest bound the rest.
	restAfter = 4
	leastRest = 2 * time.Second
	mostRest  = 15 * time.Second

	// searchesPerRefresh is how many nodes are searched in one refresh. The others are
	// searched in the next refreshes; until then their devices do not count.
	searchesPerRefresh = 20_000
	// linkedSearches is the most searches for one shape, one after the other, on nodes
	// that have devices in common.
	linkedSearches = 2000
	// needsKept is how long the typical requests of pods are kept before they are
	// computed again.
	needsKept = 30 * time.Second

	// timesPerNode bounds how many claims are allocated on one node.
	timesPerNode = 256
)

// Options are what a Planner needs.
type Options struct {
	Inventory *inventory.Inventory
	Clock     clock.Clock
	Shapes    int // at most, of what claims and templates request
	// Ready reports whether claims, slices and classes are known as a whole; nil: they
	// are.
	Ready func() bool
	// KnowsNodes reports whether nodes and the pods of all namespaces are known, so that what
	// is left of nodes is; nil: they are not.
	KnowsNodes func() bool
}

// Planner computes the headroom. Work is called by one goroutine at a time; Latest is
// safe for concurrent use.
type Planner struct {
	options   Options
	nodeCache *allocator.NodeCache
	searches  int // nodes that are searched in one refresh, at most

	version, capacityVersion, classesVersion uint64 // of what the last refresh began with
	complete                                 bool   // the last refresh searched all that it had to
	rest                                     time.Duration
	ended                                    clock.Instant // of the last refresh; zero: there was none

	nodes  nodeList
	shapes []*shape
	groups map[string]*shapeGroup // by what they read

	needs   inventory.Needs
	needsAt clock.Instant // when they were computed

	latest atomic.Pointer[dra.Headroom]
}

// New returns a Planner that has computed nothing.
func New(options Options) *Planner {
	return newPlanner(options, allocator.NewCache(), allocator.SearchLimit)
}

func newPlanner(options Options, compiled *cel.Cache, searchLimit time.Duration) *Planner {
	return &Planner{
		options: options, groups: map[string]*shapeGroup{}, searches: searchesPerRefresh,
		nodeCache: allocator.NewNodeCache(options.Inventory, compiled, searchLimit),
	}
}

// Latest returns the newest result; nil if there is none yet.
func (p *Planner) Latest() *dra.Headroom { return p.latest.Load() }

// Work computes the headroom again if it may have changed and the last refresh is long
// enough ago. It calls pause between two pieces of work and returns its error. It
// reports whether there was something to do.
func (p *Planner) Work(ctx context.Context, pause inventory.Pause) (bool, error) {
	inv, began := p.options.Inventory.Overview(), p.options.Clock()
	version, capacities := inv.Version(), inv.CapacityVersion()
	switch {
	case p.options.Ready != nil && !p.options.Ready():
		return false, nil
	case p.ended != (clock.Instant{}) && began.Since(p.ended) < p.rest:
		return false, nil
	case p.ended != (clock.Instant{}) && p.complete && version == p.version && capacities == p.capacityVersion:
		return false, nil
	}
	err := p.refresh(ctx, pause)
	p.version, p.capacityVersion = version, capacities
	p.ended = p.options.Clock()
	p.rest = min(max(restAfter*p.ended.Since(began), leastRest), mostRest)
	if err != nil {
		p.complete = false
	}
	return true, err
}

// refresh computes the headroom.
func (p *Planner) refresh(ctx context.Context, pause inventory.Pause) error {
	defer p.nodeCache.Forget()
	p.updateShapes()
	p.nodes.update(p.options.Inventory.Overview().NodeStamps())
	searches := p.searches
	p.complete = true
	for _, g := range p.groups {
		if err := g.update(ctx, pause, p.options.Inventory, &p.nodes); err != nil {
			return err
		}
		for _, s := range g.shapes {
			if g.traits == nil {
				continue
			}
			left, err := p.search(ctx, pause, g, s, searches)
			if err != nil {
				return err
			}
			searches = left
		}
	}
	p.nodes.settled()
	return p.publish(ctx, pause)
}

// updateShapes brings shapes and groups up to date with the classes and with what is
// requested.
func (p *Planner) updateShapes() {
	inv := p.options.Inventory.Overview()
	previous := map[string]*shape{}
	if classes := inv.ClassesVersion(); classes == p.classesVersion {
		for _, s := range p.shapes {
			previous[s.key] = s
		}
	} else {
		p.classesVersion = classes
		clear(p.groups) // selectors may have changed
	}
	p.shapes = newShapes(inv.ClassNames(), inv.Specs(p.options.Shapes), previous)
	for _, g := range p.groups {
		g.shapes = nil
	}
	for _, s := range p.shapes {
		key := groupKey(s)
		g := p.groups[key]
		if g == nil {
			g = newShapeGroup(s)
			p.groups[key] = g
			clear(s.found)
			s.linked = linkedFill{}
		}
		g.shapes = append(g.shapes, s)
		s.group = g
	}
	for key, g := range p.groups {
		if len(g.shapes) == 0 {
			delete(p.groups, key)
		}
	}
}

// search runs the allocator on the nodes whose result is not known. It returns how many
// more searches may follow.
func (p *Planner) search(ctx context.Context, pause inventory.Pause, g *shapeGroup, s *shape, searches int) (int, error) {
	for at, key := range g.keys {
		if _, ok := s.found[key]; ok || g.users[at] == 0 {
			continue
		}
		if searches == 0 {
			p.complete = false
			return 0, nil
		}
		node := p.nodes.names[g.firstNode(int32(at))]
		found, ok, err := p.fillNode(ctx, pause, g, s, node, key)
		if err != nil {
			return 0, err
		}
		if !ok { // the node has just changed
			p.complete = false
			continue
		}
		s.found[key] = found
		searches--
	}
	for key := range s.found {
		if at, ok := g.index[key]; !ok || g.users[at] == 0 {
			delete(s.found, key)
		}
	}
	return searches, p.fillLinked(ctx, pause, g, s)
}

// fillNode searches one node, and fails if it does not have the key any more.
func (p *Planner) fillNode(ctx context.Context, pause inventory.Pause, g *shapeGroup, s *shape, name string, key inventory.TraitsKey) (fill, bool, error) {
	node, exists, err := p.nodeCache.Node(ctx, name)
	switch {
	case ctx.Err() != nil:
		return fill{}, false, ctx.Err()
	case err != nil: // a slice that cannot be unpacked: nothing is allocated there
		return fill{left: make([]int32, len(s.requests))}, true, nil
	case !exists:
		return fill{}, false, nil
	}
	if now, ok := g.traits.NodeKey(p.options.Inventory, name); !ok || now != key || !p.nodeCache.IsCurrent() {
		return fill{}, false, nil
	}
	found, _, err := fillOn(ctx, pause, p.nodeCache, node, s)
	return found, true, err
}

// fillOn allocates claims of a shape on a node until the allocator refuses.
func fillOn(ctx context.Context, pause inventory.Pause, nodeCache *allocator.NodeCache, node allocator.Node, s *shape) (fill, allocator.Filled, error) {
	filled, err := nodeCache.Fill(ctx, pause, node, s.specs, s.most)
	if err != nil {
		return fill{}, filled, err
	}
	found := fill{claims: int32(filled.Times), more: filled.More}
	for i := range s.requests {
		single, err := nodeCache.Fill(ctx, pause, filled.Node, []*resourcev1.ResourceClaimSpec{s.single(i)}, timesPerNode)
		if err != nil {
			return fill{}, filled, err
		}
		found.left = append(found.left, int32(single.Times))
	}
	return found, filled, nil
}

// fillLinked allocates claims of a shape on the nodes without a key, one node after the
// other in the order of their names: a device that is allocated on one node may be
// missing on the next.
func (p *Planner) fillLinked(ctx context.Context, pause inventory.Pause, g *shapeGroup, s *shape) error {
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
		node, exists, err := p.nodeCache.Node(ctx, p.nodes.names[i])
		if err == nil && exists {
			node, err = p.nodeCache.With(ctx, node, taken)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !exists { // nothing is allocated there
			continue
		}
		f, filled, err := fillOn(ctx, pause, p.nodeCache, node, s)
		if err != nil {
			return err
		}
		searches -= int(f.claims) + 1 + len(s.requests)
		taken.Add(filled.Results)
		found.add(int32(i), f)
	}
	s.linked = found
	return nil
}
