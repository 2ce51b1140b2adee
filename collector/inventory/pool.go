package inventory

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// pool is a resource pool. It exists while it has a slice or an allocated
// device.
type pool struct {
	// The part of a dra.Supply about the pool, computed by update.
	supply  *dra.PoolSupply
	taints  []dra.TaintCount
	tainted []dra.TaintedDevice

	// The state of its devices, computed by update.
	views      views
	current    []*slice // of the newest generation, as far as nodes can use older ones; sorted by name
	blocks     []*block // of the current slices
	generation int64    // the newest
	repeats    bool     // two of their devices have the same name: what is allocated of one node, others cannot have
	node       string   // the only one of its devices; once the slices are gone, the last known
	rules      []taintRule
	down       map[*nodeSelection]nodeState // whose only node is cordoned or not ready
	undeclared map[*nodeSelection]struct{}  // whose nodes lack the feature that the devices need
	divided    bool                         // devices can be allocated on some of their nodes alone, for what these see of the pool

	id        poolID
	slot      int      // where classes keep their counts for it
	slices    []*slice // of all generations, sorted by name
	reshaped  bool     // slices have changed, or which nodes can use them
	allocated map[unique.Handle[string]]*deviceAllocation
	changed   uint64 // version at which anything of it last changed
}

func (p *pool) deviceID(d *device) dra.DeviceID {
	return dra.DeviceID{Driver: p.id.driver, Pool: p.id.name, Name: d.name.Value()}
}

func (p *pool) consumed(d *device) consumedCapacities {
	_, consumed := p.allocated[d.name].total()
	return consumed
}

// update computes the state of the pool from its slices, its allocations, the
// taint rules that select its devices, the features that nodes declare, and the state
// of its node.
func (p *pool) update(devices *deviceStore, rules []taintRule, nodes *nodeIndex) {
	sameSlices := !p.reshaped
	if p.reshaped {
		p.reshaped = false
		p.updateCurrent(nodes)
	}
	p.updateNode()
	p.rules = rules
	p.views.count(func(d *device) bool { return p.allocated[d.name] != nil })
	p.views.updateFeatures(nodes)
	p.divided = false
	clear(p.down)
	clear(p.undeclared)
	for _, s := range p.current {
		for selection := range s.selections() {
			if state := nodes.down[selection.node]; state != (nodeState{}) {
				p.down[selection] = state
			}
			if !nodes.allocatable(selection) {
				p.undeclared[selection] = struct{}{}
			}
		}
	}
	for _, b := range p.blocks {
		p.updateBlock(devices, b)
	}
	p.summarize(sameSlices)
}

// addAllocated adds what is allocated of the pool, as the scheduler sees it.
func (p *pool) addAllocated(state *structured.AllocatedState) {
	for device, first := range p.allocated {
		id := structured.MakeDeviceID(p.id.driver, p.id.name, device.Value())
		for a := first; a != nil; a = a.next {
			if a.shareID == "" {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, new(types.UID(a.shareID))))
			if len(a.consumed) > 0 {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, a.consumed))
			}
		}
	}
}

// updateCurrent finds the slices that count: those of the newest generation, and older
// ones of nodes for which these are a complete pool.
func (p *pool) updateCurrent(nodes *nodeIndex) {
	p.views = newViews(p.slices, nodes)
	counted := map[*slice]struct{}{}
	for i, s := range p.slices {
		if i == 0 || s.generation > p.generation {
			p.generation = s.generation
		}
	}
	for _, v := range p.views.all {
		if !v.obsolete {
			for _, s := range v.current {
				counted[s] = struct{}{}
			}
		}
	}
	p.current, p.blocks = nil, p.blocks[:0]
	for _, s := range p.slices {
		if _, ok := counted[s]; ok || s.generation == p.generation {
			p.current = append(p.current, s)
			p.blocks = append(p.blocks, s.blocks...)
		}
	}
	p.repeats = !namesAreUnique(p.current)
}

// updateNode finds the only node of the pool's devices. A pool whose slices are
// gone keeps its node, else it has that of the claims to which its devices are
// allocated.
func (p *pool) updateNode() {
	if len(p.current) == 0 && p.node != "" {
		return
	}
	nodes := map[string]struct{}{}
	for _, s := range p.current {
		if len(s.devices) > 0 { // else it has only counters
			for selection := range s.selections() {
				nodes[selection.node] = struct{}{}
			}
		}
	}
	if len(p.current) == 0 {
		for _, first := range p.allocated {
			for a := first; a != nil; a = a.next {
				nodes[a.claim.nodeName()] = struct{}{}
			}
		}
	}
	p.node = ""
	if len(nodes) == 1 {
		for p.node = range nodes {
		}
	}
}

// updateBlock computes what can be done with each device of the block.
func (p *pool) updateBlock(store *deviceStore, b *block) {
	b.exclusive, b.shared, b.tainted, b.usable, b.roomy, b.incomplete, b.invalid = 0, 0, 0, 0, 0, 0, 0
	devices := b.devices()
	for i := range devices {
		d, bit := &devices[i], uint64(1)<<i
		allocation := p.allocated[d.name]
		exclusive, consumed := allocation.total()
		switch {
		case exclusive:
			b.exclusive |= bit
		case allocation != nil:
			b.shared |= bit
		}
		if repelled(d, p.rules, nil) {
			b.tainted |= bit
		}
		p.updateUsable(b, d, bit)
		capacity := d.capacity()
		if len(consumed) > 0 { // also if the device is no longer one that may be shared
			capacity = store.capacity(p.id.driver, d)
		}
		if capacityFits(capacity, consumed, nil) {
			b.roomy |= bit
		}
	}
	b.free = b.all & b.usable & b.roomy &^ (b.allocated() | b.tainted)
}

// updateUsable computes whether a node can have the device, whose bits for what is
// allocated are up to date.
func (p *pool) updateUsable(b *block, d *device, bit uint64) {
	var complete, valid, usable, elsewhere bool
	selection := b.slice.deviceSelection(d)
	for _, v := range p.views.bySelection[selection] {
		found := v.provides(b.slice, d, p.isShare(d)) && (!selection.optional || !v.undeclared)
		usable, elsewhere = usable || found, elsewhere || !found
		complete = complete || v.has(b.slice) && v.complete
		valid = valid || v.has(b.slice) && v.valid
	}
	switch {
	case !complete:
		b.incomplete |= bit
	case !valid:
		b.invalid |= bit
	case usable && p.declared(b.slice, d):
		b.usable |= bit
		p.divided = p.divided || elsewhere
	}
}

// isShare reports whether the next claim that gets the device shares it with
// others.
func (p *pool) isShare(d *device) bool {
	if !d.shareable() {
		return false
	}
	for a := p.allocated[d.name]; a != nil; a = a.next {
		if a.shareID != "" {
			return true
		}
	}
	return false
}

// declared reports whether a node of the device declares what the device needs.
func (p *pool) declared(s *slice, d *device) bool {
	_, ok := p.undeclared[s.deviceSelection(d)]
	return !ok
}

// summarize computes the part of a Supply about the pool. If it is equal to the
// one before, that one is kept.
func (p *pool) summarize(sameSlices bool) {
	supply := &dra.PoolSupply{
		Driver:     p.id.driver,
		Pool:       p.id.name,
		Node:       p.node,
		Generation: p.generation,
		Slices:     len(p.current),
		Complete:   len(p.current) > 0 && !slices.ContainsFunc(p.views.all, func(v *poolView) bool { return !v.obsolete && !v.complete }),
		Names:      p.deviceNames(sameSlices),
	}
	counts := map[dra.Taint]int{}
	p.tainted = nil
	for _, b := range p.blocks {
		addStates(&supply.Devices, b, b.all)
	}
	supply.Partitions = p.countPartitions()
	supply.Counters, supply.Overdrawn = p.countersState()
	for _, s := range p.current {
		for i := range s.devices {
			supply.Capacity = p.appendCapacity(supply.Capacity, &s.devices[i])
			p.countTaints(&s.devices[i], counts)
		}
	}
	slices.SortFunc(supply.Capacity, func(a, b dra.CapacitySupply) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Capacity, b.Capacity))
	})
	slices.SortFunc(p.tainted, func(a, b dra.TaintedDevice) int { return cmp.Compare(a.Device.Name, b.Device.Name) })
	p.taints = nil
	for _, taint := range slices.SortedFunc(maps.Keys(counts), compareTaints) {
		p.taints = append(p.taints, dra.TaintCount{Driver: p.id.driver, Pool: p.id.name, Taint: taint, Devices: counts[taint]})
	}
	if p.supply == nil || !reflect.DeepEqual(p.supply, supply) {
		p.supply = supply
	}
}

// countersState reports whether any device consumes counters, and whether the
// allocated devices, with a shared one among them, consume more of a counter than
// exists.
func (p *pool) countersState() (consumed, overdrawn bool) {
	shared := false
	for _, s := range p.current {
		for i := range s.devices {
			d := &s.devices[i]
			if len(d.consumes()) > 0 {
				consumed, shared = true, shared || p.isShare(d)
			}
		}
	}
	return consumed, shared && slices.ContainsFunc(p.views.all, func(v *poolView) bool { return v.valid && v.counters.overcommitted })
}

// countPartitions counts the partitions by type; nil if there are none, or too
// many types.
func (p *pool) countPartitions() []dra.PartitionSupply {
	var counts map[unique.Handle[string]]*dra.PartitionSupply
	for _, b := range p.blocks {
		if b.slice.partitions == nil {
			continue
		}
		masks := map[unique.Handle[string]]uint64{}
		for i := range b.devices() {
			if kind := b.slice.partitions[b.first+i]; kind != (unique.Handle[string]{}) {
				masks[kind] |= 1 << i
			}
		}
		for kind, mask := range masks {
			if counts == nil {
				counts = map[unique.Handle[string]]*dra.PartitionSupply{}
			}
			if counts[kind] == nil {
				counts[kind] = &dra.PartitionSupply{Type: kind.Value()}
			}
			addStates(&counts[kind].Devices, b, mask)
		}
	}
	if len(counts) == 0 || len(counts) > dra.PartitionTypes {
		return nil
	}
	all := make([]dra.PartitionSupply, 0, len(counts))
	for _, count := range counts {
		all = append(all, *count)
	}
	slices.SortFunc(all, func(a, b dra.PartitionSupply) int { return cmp.Compare(a.Type, b.Type) })
	return all
}

// deviceNames returns the names of the current devices, sorted. It returns the
// previous list if nothing has changed.
func (p *pool) deviceNames(sameSlices bool) []string {
	var previous, names []string
	if p.supply != nil {
		previous = p.supply.Names
	}
	if sameSlices {
		return previous
	}
	for _, s := range p.current {
		names = slices.Grow(names, len(s.devices))
		for i := range s.devices {
			names = append(names, s.devices[i].name.Value())
		}
	}
	slices.Sort(names)
	if slices.Equal(names, previous) {
		return previous
	}
	return names
}

// addStates adds the devices of the mask by what can be done with them.
func addStates(states *[dra.DeviceStates]int, b *block, mask uint64) {
	allocated, free := bits.OnesCount64(mask&b.allocated()), bits.OnesCount64(mask&b.free)
	states[dra.DeviceAllocated] += allocated
	states[dra.DeviceFree] += free
	states[dra.DeviceUnavailable] += bits.OnesCount64(mask) - allocated - free
}

// addDown adds the devices of the mask that are down, by reason.
func (p *pool) addDown(reasons *[dra.DownReasons]int, b *block, mask uint64) {
	down := b.tainted | b.incomplete | b.invalid
	if len(p.down) > 0 {
		down = b.all
	}
	for bit := range eachBit(mask & down) {
		d := b.device(bit)
		node := p.down[b.slice.deviceSelection(d)]
		switch mask := uint64(1) << bit; {
		case node.notReady:
			reasons[dra.DownNodeNotReady]++
		case (b.incomplete|b.invalid)&mask != 0:
			reasons[dra.DownPoolIncomplete]++
		case b.tainted&mask != 0 && repelled(d, nil, nil):
			reasons[dra.DownDriverTaint]++
		case b.tainted&mask != 0:
			reasons[dra.DownRuleTaint]++
		case node.cordoned:
			reasons[dra.DownNodeCordoned]++
		}
	}
}

// appendCapacity appends the capacities of a device that may be shared. It
// omits amounts beyond a float64.
func (p *pool) appendCapacity(supply []dra.CapacitySupply, d *device) []dra.CapacitySupply {
	if !d.shareable() {
		return supply
	}
	consumed := p.consumed(d)
	for name, capacity := range d.capacity() {
		amount := consumed[name]
		total, used := capacity.Value.AsApproximateFloat64(), amount.AsApproximateFloat64()
		if math.IsInf(total, 0) || math.IsInf(used, 0) {
			continue
		}
		supply = append(supply, dra.CapacitySupply{Device: d.name.Value(), Capacity: validUTF8(string(name)), Total: total, Consumed: used})
	}
	return supply
}

// countTaints adds the device to the tainted ones, and to the count of each of
// its taints once.
func (p *pool) countTaints(d *device, counts map[dra.Taint]int) {
	if len(p.rules) == 0 && (d.extras == nil || len(d.extras.taints) == 0) {
		return
	}
	found := dra.TaintedDevice{Device: p.deviceID(d)}
	var counted []dra.Taint
	for rule, published := range eachTaint(d, p.rules) {
		taint := newTaint(published)
		if rule == "" {
			found.Taints = append(found.Taints, taint)
		} else {
			found.ByRules = append(found.ByRules, taint)
		}
		taint.Value = ""
		if !slices.Contains(counted, taint) {
			counted = append(counted, taint)
			counts[taint]++
		}
	}
	if len(counted) == 0 {
		return
	}
	for a := p.allocated[d.name]; a != nil; a = a.next {
		found.Holders = append(found.Holders, a.claim.ref)
	}
	slices.SortFunc(found.Holders, compareClaims)
	found.Holders = slices.Compact(found.Holders)
	p.tainted = append(p.tainted, found)
}

func compareTaints(a, b dra.Taint) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect))
}

// poolStore keeps the pools. Their computed state is up to date after update.
type poolStore struct {
	devices     *deviceStore
	byID        map[poolID]*pool
	sorted      []*pool                          // by driver and name
	bySelection map[*nodeSelection]map[*pool]int // pools with the selection: how many of their slices or devices have it
	slots       slotNumbers

	outdated map[*pool]struct{} // to be updated
	updated  map[*pool]struct{} // since takeChanges
	removed  []int              // slots, since takeChanges
}

func newPoolStore(devices *deviceStore) *poolStore {
	return &poolStore{
		devices: devices,
		byID:    map[poolID]*pool{}, bySelection: map[*nodeSelection]map[*pool]int{},
		outdated: map[*pool]struct{}{}, updated: map[*pool]struct{}{},
	}
}

// get returns the pool, and makes it if there is none.
func (ps *poolStore) get(driver, name string) *pool {
	id := poolID{validUTF8(driver), validUTF8(name)}
	if found := ps.byID[id]; found != nil {
		return found
	}
	id = poolID{strings.Clone(id.driver), strings.Clone(id.name)} // do not keep the whole object that they came with
	made := &pool{
		id: id, slot: ps.slots.take(), allocated: map[unique.Handle[string]]*deviceAllocation{},
		down: map[*nodeSelection]nodeState{}, undeclared: map[*nodeSelection]struct{}{},
	}
	ps.byID[id] = made
	at, _ := slices.BinarySearchFunc(ps.sorted, made, comparePools)
	ps.sorted = slices.Insert(ps.sorted, at, made)
	return made
}

func comparePools(a, b *pool) int {
	return cmp.Or(cmp.Compare(a.id.driver, b.id.driver), cmp.Compare(a.id.name, b.id.name))
}

// addSlice adds a slice to its pool, which exists. The version is that of the
// change.
func (ps *poolStore) addSlice(s *slice, version uint64) {
	p := ps.byID[*s.pool]
	at, _ := slices.BinarySearchFunc(p.slices, s, compareSlices)
	p.slices, p.reshaped = slices.Insert(p.slices, at, s), true
	for selection := range s.selections() {
		if ps.bySelection[selection] == nil {
			ps.bySelection[selection] = map[*pool]int{}
		}
		ps.bySelection[selection][p]++
	}
	ps.markChanged(p, version)
}

func (ps *poolStore) removeSlice(s *slice, version uint64) {
	p := ps.byID[*s.pool]
	p.slices, p.reshaped = slices.DeleteFunc(p.slices, func(other *slice) bool { return other == s }), true
	for selection := range s.selections() {
		pools := ps.bySelection[selection]
		if pools[p]--; pools[p] == 0 {
			delete(pools, p)
		}
		if len(pools) == 0 {
			delete(ps.bySelection, selection)
		}
	}
	ps.markChanged(p, version)
	ps.removeIfEmpty(p)
}

// allocate adds the allocations of a claim to its pools. Admin access is no
// allocation.
func (ps *poolStore) allocate(c *claim, version uint64) {
	for i := range c.devices {
		if a := &c.devices[i]; !a.admin {
			p := ps.get(a.pool.driver, a.pool.name)
			a.pool = &p.id
			a.next = p.allocated[a.device]
			p.allocated[a.device] = a
			ps.markChanged(p, version)
		}
	}
}

// release removes the allocations of a claim from its pools.
func (ps *poolStore) release(c *claim, version uint64) {
	for i := range c.devices {
		a := &c.devices[i]
		if a.admin {
			continue
		}
		p := ps.byID[*a.pool]
		switch first := p.allocated[a.device]; {
		case first != a:
			previous := first
			for previous.next != a {
				previous = previous.next
			}
			previous.next = a.next
		case a.next != nil:
			p.allocated[a.device] = a.next
		default:
			delete(p.allocated, a.device)
		}
		ps.markChanged(p, version)
		ps.removeIfEmpty(p)
	}
}

func (ps *poolStore) removeIfEmpty(p *pool) {
	if len(p.slices) > 0 || len(p.allocated) > 0 {
		return
	}
	delete(ps.byID, p.id)
	delete(ps.outdated, p)
	delete(ps.updated, p)
	if at, ok := slices.BinarySearchFunc(ps.sorted, p, comparePools); ok {
		ps.sorted = slices.Delete(ps.sorted, at, at+1)
	}
	ps.removed = append(ps.removed, p.slot)
}

// markChanged marks a pool as changed at a version, to be updated.
func (ps *poolStore) markChanged(p *pool, version uint64) {
	p.changed = version
	ps.outdated[p] = struct{}{}
}

// markSelectedChanged marks the pools with devices that one of the rules selects.
func (ps *poolStore) markSelectedChanged(version uint64, rules ...*resourcev1.DeviceTaintRule) {
	for _, p := range ps.sorted {
		if slices.ContainsFunc(rules, func(rule *resourcev1.DeviceTaintRule) bool { return selectsPool(rule, p.id.driver, p.id.name) }) {
			ps.markChanged(p, version)
		}
	}
}

// markSelectionsChanged marks the pools with devices that have one of the node
// selections.
func (ps *poolStore) markSelectionsChanged(version uint64, selections []*nodeSelection) {
	for _, selection := range selections {
		for p := range ps.bySelection[selection] {
			ps.markChanged(p, version)
		}
	}
}

// markBroadChanged marks the pools whose nodes can use different slices, if such
// nodes are selected by something else than their names.
func (ps *poolStore) markBroadChanged(version uint64, broad iter.Seq[*nodeSelection]) {
	for selection := range broad {
		for p := range ps.bySelection[selection] {
			if len(p.views.bySelection) > 1 {
				p.reshaped = true
				ps.markChanged(p, version)
			}
		}
	}
}

// update updates the pools that have changed, at most as many as the limit (-1:
// all). It reports whether there are more.
func (ps *poolStore) update(rules taintRules, nodes *nodeIndex, limit int) bool {
	for p := range ps.outdated {
		if limit == 0 {
			return true
		}
		limit--
		p.update(ps.devices, rules.forPool(p.id.driver, p.id.name), nodes)
		delete(ps.outdated, p)
		ps.updated[p] = struct{}{}
	}
	return false
}

// takeChanges returns the pools that have been updated since the last call and
// still exist, and the slots of those that have been removed. The slots may be
// used again after the call.
func (ps *poolStore) takeChanges() (updated map[*pool]struct{}, removed []int) {
	updated, removed = ps.updated, ps.removed
	ps.updated, ps.removed = map[*pool]struct{}{}, nil
	ps.slots.free = append(ps.slots.free, removed...)
	return updated, removed
}

// withSelections returns the pools with a device that has one of the node
// selections, sorted.
func (ps *poolStore) withSelections(selections []*nodeSelection) []*pool {
	var found []*pool
	for _, selection := range selections {
		found = slices.AppendSeq(found, maps.Keys(ps.bySelection[selection]))
	}
	slices.SortFunc(found, comparePools)
	return slices.Compact(found)
}

// all returns all pools, sorted by driver and name.
func (ps *poolStore) all() []*pool { return ps.sorted }

// addTo adds the pools to a Supply.
func (ps *poolStore) addTo(supply *dra.Supply) {
	pools, taints, tainted := make([]*dra.PoolSupply, len(ps.sorted)), []dra.TaintCount(nil), []dra.TaintedDevice(nil)
	for i, p := range ps.sorted {
		pools[i] = p.supply
		taints = append(taints, p.taints...)
		tainted = append(tainted, p.tainted...)
	}
	supply.Pools, supply.Taints, supply.Tainted = pools, taints, tainted
	slices.SortStableFunc(supply.Taints, func(a, b dra.TaintCount) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), compareTaints(a.Taint, b.Taint))
	})
}
