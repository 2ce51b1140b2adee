package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

const (
	nodesTried   = 50                     // nodes that are searched
	nodesSeen    = 1000                   // nodes that are looked up, also where the pod's allocated claims cannot be used
	nodesMerged  = 20                     // nodes that are searched as if they were one
	searchLimit  = 250 * time.Millisecond // for one node: the allocator searches exhaustively
	slowSearches = time.Second            // of searches that reached the limit, in one attempt

	// snapshotDevices is for how many devices slices are kept in a snapshot: a
	// few kilobytes each.
	snapshotDevices = 8192
)

// snapshot keeps nodes as the allocator sees them, of one version of the
// inventory, so that several searches use what was unpacked once. It belongs to
// one goroutine.
type snapshot struct {
	inventory *inventory.Inventory
	compiled  *cel.Cache    // of the allocator's selectors
	limit     time.Duration // for one search

	version uint64
	nodes   map[string]snapshotNode
	devices int // in the slices of all nodes
}

type snapshotNode struct {
	inventory.NodeSupply
	allocator structured.Allocator
}

func newSnapshot(of *inventory.Inventory, compiled *cel.Cache, limit time.Duration) *snapshot {
	return &snapshot{inventory: of, compiled: compiled, limit: limit, nodes: make(map[string]snapshotNode)}
}

// newCache returns a cache for the allocator's compiled selectors. The compiler
// behind it is shared by all caches with the same features.
func newCache() *cel.Cache {
	return cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
}

// features are all that the allocator has: what a claim or a slice uses has
// been admitted by the API server.
func features() structured.Features {
	return structured.Features{
		AdminAccess: true, CompatibilityGroups: true, ConsumableCapacity: true, DerivedAttributes: true,
		DeviceBindingAndStatus: true, DeviceTaints: true, FractionalCapacityRange: true, ListTypeAttributes: true,
		OptionalNodeOperations: true, PartitionableDevices: true, PrioritizedList: true,
	}
}

// node returns a node, and false if it does not exist.
func (s *snapshot) node(ctx context.Context, name string) (snapshotNode, bool, error) {
	if version := s.inventory.Version(); version != s.version || s.devices > snapshotDevices {
		s.version, s.devices = version, 0
		clear(s.nodes)
	}
	if known, ok := s.nodes[name]; ok {
		return known, true, nil
	}
	supply, ok, err := s.inventory.OnNode(name)
	if err != nil || !ok {
		return snapshotNode{}, false, err
	}
	made, err := s.withAllocator(ctx, supply)
	if err != nil {
		return snapshotNode{}, false, err
	}
	s.nodes[name] = made
	for _, slice := range supply.Slices {
		s.devices += len(slice.Spec.Devices)
	}
	return made, true, nil
}

func (s *snapshot) withAllocator(ctx context.Context, supply inventory.NodeSupply) (snapshotNode, error) {
	allocator, err := structured.NewAllocator(ctx, features(), supply.Allocated, s.inventory.Classes(), supply.Slices, s.compiled)
	if err != nil {
		return snapshotNode{}, fmt.Errorf("make an allocator: %w", err)
	}
	return snapshotNode{supply, allocator}, nil
}

// merged returns nodes as if they were one whose devices are all usable from
// it. A node that does not exist any more is left out.
func (s *snapshot) merged(ctx context.Context, meter *meter, names []string) (snapshotNode, error) {
	all := inventory.NodeSupply{Node: &corev1.Node{}, Allocated: structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}}
	seen := sets.New[string]() // slices: those of network-attached devices are on several nodes
	for _, name := range names {
		if err := meter.pause(ctx); err != nil {
			return snapshotNode{}, err
		}
		node, ok, err := s.node(ctx, name)
		if err != nil || !ok {
			continue
		}
		for _, slice := range node.Slices {
			if !seen.Has(slice.Name) {
				seen.Insert(slice.Name)
				all.Slices = append(all.Slices, onAllNodes(slice))
			}
		}
		maps.Copy(all.Allocated.AllocatedDevices, node.Allocated.AllocatedDevices)
		maps.Copy(all.Allocated.AllocatedSharedDeviceIDs, node.Allocated.AllocatedSharedDeviceIDs)
		// Each node of a pool has all that is consumed of the pool.
		maps.Copy(all.Allocated.AggregatedCapacity, node.Allocated.AggregatedCapacity)
		all.Node.Status.DeclaredFeatures = append(all.Node.Status.DeclaredFeatures, node.Node.Status.DeclaredFeatures...)
	}
	return s.withAllocator(ctx, all)
}

// onAllNodes returns the slice as if all nodes could use its devices.
func onAllNodes(slice *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	yes := true
	changed := *slice
	changed.Spec.NodeName, changed.Spec.NodeSelector, changed.Spec.PerDeviceNodeSelection = nil, nil, nil
	changed.Spec.AllNodes = &yes
	return &changed
}

// search has the allocator search one node. It is slow if it reaches the limit.
// The allocator gets what drivers publish unchecked, so that a panic is handled
// as an error.
func (s *snapshot) search(ctx context.Context, node snapshotNode, claims []*resourcev1.ResourceClaim) (allocated, slow bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the allocator panics: %v", cause)
		}
	}()
	results, err := node.allocator.Allocate(ctx, node.Node, claims)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil {
		return false, true, nil
	}
	return results != nil, false, err
}

// attempt is an allocation that is attempted on nodes, one after the other, as
// far as all of the pod's allocated claims can be used there.
type attempt struct {
	nodes     []string
	claims    []*resourcev1.ResourceClaim
	selectors []*nodeaffinity.NodeSelector // of the pod's allocated claims
	all       bool                         // continue after a success: the scheduler may give up on another node
	traits    *inventory.Traits            // that decide for nodes; nil: not known, or some nodes are not allowed
}

// attemptResult is how an attempt ended.
type attemptResult struct {
	fits   string // the first node on which it succeeded; empty: none
	tried  []string
	left   int           // nodes that have not been tried
	slow   int           // nodes on which the search reached the limit
	limit  time.Duration // of a search
	failed string        // the node on which it failed for good
	fatal  error         // why the allocator gives up, and with it the scheduler, whatever the other nodes are like
}

// try attempts an allocation until it fails for good, or succeeds. The error is
// that of the meter. Of nodes with the same traits it searches the first.
func (s *snapshot) try(ctx context.Context, meter *meter, a attempt) (attemptResult, error) {
	r := attemptResult{limit: s.limit}
	searched := sets.New[inventory.TraitsKey]()
	for i, name := range a.nodes {
		if len(r.tried) == nodesTried || time.Duration(r.slow)*r.limit > slowSearches || i == nodesSeen || (r.fits != "" && !a.all) {
			r.left = len(a.nodes) - i
			break
		}
		if err := meter.pause(ctx); err != nil {
			return r, err
		}
		traits, known := a.traits.OnNode(s.inventory, name)
		if known && searched.Has(traits) {
			r.tried = append(r.tried, name)
			continue
		}
		node, ok, err := s.node(ctx, name)
		switch {
		case err != nil:
			r.failed, r.fatal = name, err
			return r, nil
		case !ok || !matchesAll(a.selectors, node.Node):
			continue
		}
		meter.searched()
		allocated, slow, err := s.search(ctx, node, a.claims)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.tried = append(r.tried, name)
		switch {
		case slow:
			r.slow++
		case err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode):
			r.failed, r.fatal = name, err
			return r, nil
		case allocated && r.fits == "":
			r.fits = name
		}
		if known && !slow {
			searched.Insert(traits)
		}
	}
	return r, nil
}

func matchesAll(selectors []*nodeaffinity.NodeSelector, node *corev1.Node) bool {
	for _, selector := range selectors {
		if !selector.Match(node) {
			return false
		}
	}
	return true
}

// onNodes begins a sentence about the nodes on which an attempt failed, up to
// its verb.
func (r attemptResult) onNodes() string {
	switch {
	case r.left > 0:
		return fmt.Sprintf("none of the best %d of %d nodes can", len(r.tried), len(r.tried)+r.left)
	case len(r.tried) == 0:
		return "no node that the pod's other claims allow can"
	case len(r.tried) == 1:
		return fmt.Sprintf("node %s, the only one with enough free devices, cannot", r.tried[0])
	default:
		return fmt.Sprintf("none of the %d nodes with enough free devices can", len(r.tried))
	}
}
