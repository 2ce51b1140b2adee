// Package allocator runs the allocator of Kubernetes' scheduler (package structured
// of k8s.io/dynamic-resource-allocation) over the inventory: whether claims can be
// allocated on a node, and how often.
package allocator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// SearchLimit is how long the allocator may search one node: it searches
// exhaustively.
const SearchLimit = 250 * time.Millisecond

// CommandLimit is the same for a command, which searches once: the first search compiles
// the selectors.
const CommandLimit = 3 * time.Second

// keptDevices is for how many devices slices are kept in a NodeCache: a few
// kilobytes each.
const keptDevices = 8192

// NodeCache keeps nodes as the allocator sees them, of one version of the inventory,
// so that several searches use what was unpacked once. It belongs to one goroutine.
type NodeCache struct {
	inventory *inventory.Inventory
	compiled  *cel.Cache    // of the allocator's selectors
	limit     time.Duration // for one search

	version uint64
	nodes   map[string]Node
	devices int // in the slices of all nodes
}

// Node is a node as the allocator sees it. It is immutable.
type Node struct {
	inventory.NodeSupply
	allocator structured.Allocator
}

// NewNodeCache returns a NodeCache of the inventory. The cache, of NewCache, may be
// shared with others. The limit is that of one search, such as SearchLimit.
func NewNodeCache(inv *inventory.Inventory, compiled *cel.Cache, limit time.Duration) *NodeCache {
	return &NodeCache{inventory: inv, compiled: compiled, limit: limit, nodes: make(map[string]Node)}
}

// NewCache returns a cache for the allocator's compiled selectors. The compiler
// behind it is shared by all caches with the same features.
func NewCache() *cel.Cache {
	return cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
}

// Features are all that the allocator has: what a claim or a slice uses has been
// admitted by the API server.
func Features() structured.Features {
	return structured.Features{
		AdminAccess: true, CompatibilityGroups: true, ConsumableCapacity: true, DerivedAttributes: true,
		DeviceBindingAndStatus: true, DeviceTaints: true, FractionalCapacityRange: true, ListTypeAttributes: true,
		OptionalNodeOperations: true, PartitionableDevices: true, PrioritizedList: true,
	}
}

// Forget forgets all nodes, which take a few kilobytes for each device.
func (s *NodeCache) Forget() {
	s.devices = 0
	clear(s.nodes)
}

// Limit is that of one search.
func (s *NodeCache) Limit() time.Duration { return s.limit }

// Node returns a node, and false if it does not exist.
func (s *NodeCache) Node(ctx context.Context, name string) (Node, bool, error) {
	if version := s.inventory.Version(); version != s.version || s.devices > keptDevices {
		s.version, s.devices = version, 0
		clear(s.nodes)
	}
	if known, ok := s.nodes[name]; ok {
		return known, true, nil
	}
	supply, ok, err := s.inventory.NodeSupply(name)
	if err != nil || !ok {
		return Node{}, false, err
	}
	made, err := s.withAllocator(ctx, supply)
	if err != nil {
		return Node{}, false, err
	}
	s.nodes[name] = made
	for _, slice := range supply.Slices {
		s.devices += len(slice.Spec.Devices)
	}
	return made, true, nil
}

func (s *NodeCache) withAllocator(ctx context.Context, supply inventory.NodeSupply) (Node, error) {
	allocator, err := structured.NewAllocator(ctx, Features(), supply.Allocated, s.inventory.Classes(), supply.Slices, s.compiled)
	if err != nil {
		return Node{}, fmt.Errorf("make an allocator: %w", err)
	}
	return Node{supply, allocator}, nil
}

// Merged returns nodes as if they were one whose devices are all usable from it. A
// node that does not exist any more is left out. It calls pause between nodes, whose
// error it returns.
func (s *NodeCache) Merged(ctx context.Context, pause inventory.Pause, names []string) (Node, error) {
	all := inventory.NodeSupply{Node: &corev1.Node{}, Allocated: noneAllocated()}
	merged := mergedPools{}
	for _, name := range names {
		if err := pause(ctx); err != nil {
			return Node{}, err
		}
		node, ok, err := s.Node(ctx, name)
		if err != nil || !ok {
			continue
		}
		addAllocated(&all.Allocated, node.Allocated)
		for id, pool := range pools(node.Slices) {
			name, ok := merged.add(id, pool)
			if !ok {
				continue
			}
			for _, slice := range pool {
				all.Slices = append(all.Slices, onAllNodes(slice, name))
			}
			if name != id.name {
				renameAllocated(&all.Allocated, id, name)
			}
		}
		all.Node.Status.DeclaredFeatures = append(all.Node.Status.DeclaredFeatures, node.Node.Status.DeclaredFeatures...)
	}
	return s.withAllocator(ctx, all)
}

func noneAllocated() structured.AllocatedState {
	return structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
}

// addAllocated adds what is allocated of other pools. Each node of a pool has all
// that is consumed of the pool.
func addAllocated(state *structured.AllocatedState, more structured.AllocatedState) {
	maps.Copy(state.AllocatedDevices, more.AllocatedDevices)
	maps.Copy(state.AllocatedSharedDeviceIDs, more.AllocatedSharedDeviceIDs)
	maps.Copy(state.AggregatedCapacity, more.AggregatedCapacity)
}

// poolID identifies a pool.
type poolID struct{ driver, name string }

// pools returns the slices of each pool.
func pools(all []*resourcev1.ResourceSlice) map[poolID][]*resourcev1.ResourceSlice {
	found := map[poolID][]*resourcev1.ResourceSlice{}
	for _, slice := range all {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		found[id] = append(found[id], slice)
	}
	return found
}

// mergedPools are the pools of nodes that are merged: for each pool the names of its
// slices, as several nodes see it. Those of network-attached devices are on several
// nodes. Others have nothing but the name in common.
type mergedPools map[poolID][]string

// add adds a pool as a node sees it, and returns the name that it has in the merged node.
// It is false for one that is there already.
func (m mergedPools) add(id poolID, pool []*resourcev1.ResourceSlice) (string, bool) {
	names := make([]string, len(pool))
	for i, slice := range pool {
		names[i] = slice.Name
	}
	slices.Sort(names)
	seen := strings.Join(names, " ")
	if slices.Contains(m[id], seen) {
		return "", false
	}
	m[id] = append(m[id], seen)
	if number := len(m[id]) - 1; number > 0 {
		return fmt.Sprintf("%s %d", id.name, number), true // no pool is named with a space
	}
	return id.name, true
}

// renameAllocated adds what is allocated of a pool under another name of it.
func renameAllocated(state *structured.AllocatedState, id poolID, name string) {
	renamed := func(device structured.DeviceID) (structured.DeviceID, bool) {
		return structured.MakeDeviceID(id.driver, name, device.Device.String()), device.Driver.String() == id.driver && device.Pool.String() == id.name
	}
	for _, device := range state.AllocatedDevices.UnsortedList() {
		if other, ok := renamed(device); ok {
			state.AllocatedDevices.Insert(other)
		}
	}
	for _, shared := range state.AllocatedSharedDeviceIDs.UnsortedList() {
		if other, ok := renamed(shared.GetDeviceID()); ok {
			share := types.UID(shared.ShareID.String())
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(other, &share))
		}
	}
	for device, consumed := range maps.Clone(state.AggregatedCapacity) {
		if other, ok := renamed(device); ok {
			state.AggregatedCapacity[other] = consumed
		}
	}
}

// onAllNodes returns the slice as if all nodes could use its devices, as one of a pool of
// that name.
func onAllNodes(slice *resourcev1.ResourceSlice, pool string) *resourcev1.ResourceSlice {
	yes := true
	changed := *slice
	changed.Spec.Pool.Name = pool
	changed.Spec.NodeName, changed.Spec.NodeSelector, changed.Spec.PerDeviceNodeSelection = nil, nil, nil
	changed.Spec.AllNodes = &yes
	return &changed
}

// Search has the allocator search one node. It is slow if it reaches the limit. The
// allocator gets what drivers publish unchecked, so that a panic is handled as an
// error.
func (s *NodeCache) Search(ctx context.Context, node Node, claims []*resourcev1.ResourceClaim) (allocated, slow bool, err error) {
	results, slow, err := s.allocate(ctx, node, claims)
	return results != nil, slow, err
}

func (s *NodeCache) allocate(ctx context.Context, node Node, claims []*resourcev1.ResourceClaim) (results []resourcev1.AllocationResult, slow bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the allocator panics: %v", cause)
		}
	}()
	results, err = node.allocator.Allocate(ctx, node.Node, claims)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil {
		return nil, true, nil
	}
	return results, false, err
}

// Filled is how often claims can be allocated on a node, one after the other.
type Filled struct {
	Times int
	// More means that there may be more: the limit of times, or of a search, was
	// reached.
	More bool
	// Results are what was allocated, time after time.
	Results [][]resourcev1.AllocationResult
	// Node is the node with that allocated.
	Node Node
}

// Fill allocates claims with these specifications, one for each, on the node until the
// allocator refuses, or so many times. It calls pause before each search, whose error it returns. An error of the
// allocator, which says that something is published or requested that it cannot use,
// is as if it refused.
func (s *NodeCache) Fill(ctx context.Context, pause inventory.Pause, node Node, specs []*resourcev1.ResourceClaimSpec, most int) (Filled, error) {
	var claims []*resourcev1.ResourceClaim
	for _, spec := range specs {
		claims = append(claims, &resourcev1.ResourceClaim{Spec: *spec})
	}
	filled := Filled{Node: node}
	for filled.Times < most {
		if err := pause(ctx); err != nil {
			return Filled{}, err
		}
		results, slow, err := s.allocate(ctx, filled.Node, claims)
		switch {
		case ctx.Err() != nil:
			return Filled{}, ctx.Err()
		case slow:
			filled.More = true
			return filled, nil
		case err != nil || results == nil:
			return filled, nil
		}
		supply := filled.Node.NodeSupply
		supply.Allocated = with(supply.Allocated, results)
		next, err := s.withAllocator(ctx, supply)
		if err != nil {
			filled.More = true // it cannot be seen what follows
			return filled, ctx.Err()
		}
		filled.Node = next
		filled.Times++
		filled.Results = append(filled.Results, results)
	}
	filled.More = true
	return filled, nil
}

// with returns what is allocated after an allocation. Admin access is none.
func with(state structured.AllocatedState, results []resourcev1.AllocationResult) structured.AllocatedState {
	sum := structured.AllocatedState{
		AllocatedDevices:         state.AllocatedDevices.Clone(),
		AllocatedSharedDeviceIDs: state.AllocatedSharedDeviceIDs.Clone(),
		AggregatedCapacity:       state.AggregatedCapacity.Clone(),
	}
	for i := range results {
		for j := range results[i].Devices.Results {
			result := &results[i].Devices.Results[j]
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case result.AdminAccess != nil && *result.AdminAccess:
			case result.ShareID == nil:
				sum.AllocatedDevices.Insert(id)
			default:
				share := types.UID(*result.ShareID)
				sum.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, &share))
				if len(result.ConsumedCapacity) > 0 {
					sum.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			}
		}
	}
	return sum
}

// IsCurrent reports whether nothing of the inventory has changed since the cache was
// taken.
func (s *NodeCache) IsCurrent() bool { return s.version == s.inventory.Version() }

// Taken is what was allocated on other nodes, and may be of devices that several nodes
// can use. The zero value is nothing.
type Taken struct{ results []resourcev1.AllocationResult }

// Add adds allocations, time after time as Filled has them.
func (t *Taken) Add(results [][]resourcev1.AllocationResult) {
	t.results = slices.Concat(append([][]resourcev1.AllocationResult{t.results}, results...)...)
}

// With returns a node on which that is allocated too.
func (s *NodeCache) With(ctx context.Context, node Node, taken Taken) (Node, error) {
	if len(taken.results) == 0 {
		return node, nil
	}
	supply := node.NodeSupply
	supply.Allocated = with(supply.Allocated, taken.results)
	return s.withAllocator(ctx, supply)
}
