package inventory

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// NodeSupply is what upstream's allocator needs to know for one node. All of it
// is shared, and must not be changed.
type NodeSupply struct {
	Version uint64
	Node    *corev1.Node // with labels and declared features alone
	// Slices are those of the newest generation of all pools that have a device
	// which the node reaches, also slices for other nodes, with the taints of
	// rules.
	Slices []*resourcev1.ResourceSlice
	// Allocated is what is allocated of those pools.
	Allocated structured.AllocatedState
}

// OnNode is what upstream's allocator needs for a node, and false for a node
// that does not exist. A slice that cannot be unpacked is an error.
func (inv *Inventory) OnNode(name string) (NodeSupply, bool, error) {
	inv.refresh()
	inv.mu.Lock()
	inv.recountDirty(-1)
	if !inv.knows(name) {
		inv.mu.Unlock()
		return NodeSupply{}, false, nil
	}
	made := NodeSupply{Version: inv.version, Node: inv.nodes[name], Allocated: emptyState()}
	if made.Node == nil {
		made.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	var parcels []parcel
	for _, p := range inv.poolsFor(name) {
		p.addTo(&made.Allocated)
		for _, s := range p.current {
			parcels = append(parcels, parcel{s, s.packed, p.rules, inv.unpacked[s]})
		}
	}
	inv.mu.Unlock()
	var err error
	made.Slices, err = inv.open(parcels)
	return made, true, err
}

// poolsFor are the pools with a device that the node reaches, in order.
func (inv *Inventory) poolsFor(node string) []*pool {
	found := map[*pool]struct{}{}
	add := func(r *reach) {
		for p := range r.pools {
			found[p] = struct{}{}
		}
	}
	if local := inv.reaches.books["node "+node]; local != nil {
		add(local.thing)
	}
	for r := range inv.widely {
		if r.reaches(node) {
			add(r)
		}
	}
	pools := slices.Collect(maps.Keys(found))
	slices.SortFunc(pools, func(a, b *pool) int { return comparePool(a, b.poolKey) })
	return pools
}

func emptyState() structured.AllocatedState {
	return structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
}

// addTo adds what is allocated of the pool, as the scheduler sees it.
func (p *pool) addTo(state *structured.AllocatedState) {
	for device, first := range p.held {
		id := structured.MakeDeviceID(p.driver, p.name, device.Value())
		for h := first; h != nil; h = h.next {
			if h.share == "" {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, h.uid()))
			if len(h.consumed) > 0 {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, h.consumed))
			}
		}
	}
}
