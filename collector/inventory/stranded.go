package inventory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Partnerless names a device class and a node. All known claims that request devices
// of the class request other devices too, and cannot be allocated on the node.
type Partnerless struct{ Class, Node string }

// strandedGroup identifies stranded devices.
type strandedGroup struct {
	driver, node string
	reason       dra.StrandedReason
}

// Stranded returns the devices that are not allocated and that no claim can have,
// sorted. The needs are those of TypicalNeeds.
func (inv Overview) Stranded(needs Needs, partnerless []Partnerless) []dra.StrandedDevices {
	inv.lockUpdated()
	defer inv.mu.Unlock()
	s := &stranding{
		inventory: inv.Inventory, needs: needs.ByDriver, found: map[strandedGroup]float64{},
		nodes: map[strandedGroup]dra.StrandedReason{}, selections: map[strandedSelection]dra.StrandedReason{},
	}
	for _, p := range inv.pools.all() {
		s.addPool(p)
	}
	for _, missing := range partnerless {
		s.addPartnerless(missing)
	}
	all := make([]dra.StrandedDevices, 0, len(s.found))
	for key, devices := range s.found {
		all = append(all, dra.StrandedDevices{Driver: key.driver, Node: key.node, Reason: key.reason, Devices: devices})
	}
	slices.SortFunc(all, func(a, b dra.StrandedDevices) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

// stranding adds up stranded devices.
type stranding struct {
	inventory *Inventory
	needs     map[string]Need // by driver
	found     map[strandedGroup]float64
	nodes     map[strandedGroup]dra.StrandedReason // of nodes, without a reason in the key: why their devices are stranded

	selections map[strandedSelection]dra.StrandedReason // the same of the nodes of a selection
}

// strandedSelection are the devices of a driver that the same nodes can use.
type strandedSelection struct {
	driver string
	nodes  *nodeSelection
}

func (s *stranding) add(p *pool, node string, reason dra.StrandedReason, devices float64) {
	if reason != "" && devices > 0 {
		s.found[strandedGroup{p.id.driver, node, reason}] += devices
	}
}

// addPool adds the devices of a pool: those that consume counters by their sets.
func (s *stranding) addPool(p *pool) {
	sets := p.counterShares()
	for _, b := range p.blocks {
		if unallocated := b.all &^ b.allocated(); unallocated == b.free && len(sets) == 0 &&
			b.slice.selection != nil && s.cachedSelectionReason(p.id.driver, b.slice.selection.value) == "" {
			continue
		}
		for bit := range eachBit(b.all &^ b.allocated()) {
			s.addDevice(p, b, bit, sets)
		}
	}
	for _, share := range sets {
		s.add(p, share.node, share.reason(), share.left)
	}
}

// addDevice adds a device that is not allocated, or adds it to its counter sets.
func (s *stranding) addDevice(p *pool, b *block, bit int, sets map[counterKey]*counterShare) {
	d, free := b.device(bit), b.free&(1<<bit) != 0
	selection := b.slice.deviceSelection(d)
	reason := s.deviceReason(p, b, bit)
	if free {
		reason = s.cachedSelectionReason(p.id.driver, selection)
	}
	if len(d.consumes()) == 0 {
		s.add(p, selection.node, reason, 1)
		return
	}
	for _, v := range p.views.bySelection[selection] {
		for _, consumed := range d.consumes() {
			if share := sets[counterKey{v.counters, consumed.value.set}]; share != nil && v.has(b.slice) {
				share.addDevice(free, reason)
			}
		}
	}
}

// deviceReason returns why a device that is neither allocated nor free is stranded; empty:
// what is left of it is too little by itself.
func (s *stranding) deviceReason(p *pool, b *block, bit int) dra.StrandedReason {
	d := b.device(bit)
	switch {
	case (b.incomplete|b.invalid)&(1<<bit) != 0:
		return dra.StrandedPoolIncomplete
	case b.tainted&(1<<bit) != 0 && repelled(d, nil, nil):
		return dra.StrandedDriverTaint
	case b.tainted&(1<<bit) != 0:
		return dra.StrandedRuleTaint
	case !p.declared(b.slice, d):
		return dra.StrandedNodeFeature
	case len(d.consumes()) == 0:
		return ""
	}
	return dra.StrandedPartitionRest
}

// cachedSelectionReason returns why free devices are stranded on the nodes that can use
// them; empty: they are not. If the nodes have different reasons, it returns the last one
// in the order of StrandedReasons.
func (s *stranding) cachedSelectionReason(driver string, selection *nodeSelection) dra.StrandedReason {
	nodes := s.inventory.nodes
	switch {
	case len(nodes.nodes) == 0: // they cannot be read
		return ""
	case selection.node != "" && nodes.nodes[selection.node] == nil:
		return dra.StrandedNoNode
	case selection.node != "":
		return s.cachedNodeReason(driver, selection.node)
	}
	key := strandedSelection{driver, selection}
	reason, ok := s.selections[key]
	if !ok {
		reason = s.selectionReason(driver, selection)
		s.selections[key] = reason
	}
	return reason
}

func (s *stranding) selectionReason(driver string, selection *nodeSelection) dra.StrandedReason {
	selected := maps.Keys(selection.matched)
	if selection.all {
		selected = maps.Keys(s.inventory.nodes.nodes)
	}
	found := dra.StrandedNoNode
	for node := range selected {
		reason := s.cachedNodeReason(driver, node)
		if reason == "" {
			return ""
		}
		if slices.Index(dra.StrandedReasons(), reason) > slices.Index(dra.StrandedReasons(), found) {
			found = reason
		}
	}
	return found
}

func (s *stranding) cachedNodeReason(driver, node string) dra.StrandedReason {
	key := strandedGroup{driver: driver, node: node}
	reason, ok := s.nodes[key]
	if !ok {
		reason = s.nodeReason(driver, node)
		s.nodes[key] = reason
	}
	return reason
}

func (s *stranding) nodeReason(driver, node string) dra.StrandedReason {
	capacity, ok := s.inventory.capacities.capacity(node)
	if !ok {
		return ""
	}
	if reason := s.inventory.capacities.obstacle(&capacity); reason != "" {
		return reason
	}
	switch left, need := capacity.Left(), s.needs[driver]; {
	case left.Pods <= 0:
		return dra.StrandedNodePods
	case left.CPU < need.CPU:
		return dra.StrandedNodeCPU
	case left.Memory < need.Memory:
		return dra.StrandedNodeMemory
	}
	return ""
}

// addPartnerless adds the free devices of a class on a node, unless they are stranded
// for another reason.
func (s *stranding) addPartnerless(missing Partnerless) {
	selectors, ok := s.inventory.classes.classSelectors(missing.Class)
	if !ok {
		return
	}
	for _, p := range s.inventory.pools.withSelections(s.inventory.nodes.selecting(missing.Node)) {
		if s.cachedNodeReason(p.id.driver, missing.Node) != "" {
			continue
		}
		free := 0
		for _, b := range p.blocks {
			match, _, _ := filter(b, b.free, selectors)
			for bit := range eachBit(match) {
				d := b.device(bit)
				if b.slice.deviceSelection(d).node == missing.Node && len(d.consumes()) == 0 { // else devices overlap
					free++
				}
			}
		}
		s.add(p, missing.Node, dra.StrandedPartnerMissing, float64(free))
	}
}

// counterKey identifies a counter set as a node sees it.
type counterKey struct {
	of  *counterState
	set string
}

// counterShare is the part of a counter set that is left, and what can be done with it.
type counterShare struct {
	node    string  // the only one whose devices consume it; empty: there are others
	left    float64 // of 1
	touched bool    // something is allocated from it
	free    bool    // a device can be allocated from it
	ofNode  dra.StrandedReason
	reasons map[dra.StrandedReason]bool // of its devices that are not free
}

func (c *counterShare) addDevice(free bool, reason dra.StrandedReason) {
	if free {
		c.free, c.ofNode = true, reason
		return
	}
	if c.reasons == nil {
		c.reasons = map[dra.StrandedReason]bool{}
	}
	c.reasons[reason] = true
}

// reason returns why the rest of the set is stranded; empty: it is not. Of the reasons
// of its devices, it returns the first in the order of StrandedReasons.
func (c *counterShare) reason() dra.StrandedReason {
	if c.free {
		return c.ofNode
	}
	for _, reason := range dra.StrandedReasons() {
		if c.reasons[reason] && (reason != dra.StrandedPartitionRest || c.touched) {
			return reason
		}
	}
	return ""
}

// counterShares returns the remaining part of each counter set: that of its scarcest
// counter.
func (p *pool) counterShares() map[counterKey]*counterShare {
	var shares map[counterKey]*counterShare
	for _, v := range p.views.all {
		if v.obsolete || len(v.counters.sets) == 0 {
			continue
		}
		for _, s := range v.counted() {
			if s.counters == nil {
				continue
			}
			for _, set := range s.counters.value {
				key := counterKey{v.counters, set.name}
				if shares == nil {
					shares = map[counterKey]*counterShare{}
				}
				if state := v.counters.sets[set.name]; state != nil && shares[key] == nil {
					shares[key] = newCounterShare(cmp.Or(p.node, v.onlyNode()), set.counters, state)
				}
			}
		}
	}
	return shares
}

func newCounterShare(node string, published []counter, state *counterSetState) *counterShare {
	share := &counterShare{node: node, left: 1, touched: state.groups.any}
	for i := range published {
		total := published[i].value.AsApproximateFloat64()
		if left := state.left[published[i].name]; left != nil && total > 0 {
			share.left = min(share.left, max(left.AsApproximateFloat64()/total, 0))
		}
	}
	return share
}

// KeptNodes returns the nodes whose devices are all unallocated and which an autoscaler
// does not remove, sorted by node, with all reasons. Devices that several nodes can use
// belong to none of them.
func (inv Overview) KeptNodes() (all []dra.KeptNode) {
	inv.lockUpdated()
	defer inv.mu.Unlock()
	idle := map[string]bool{}
	for _, p := range inv.pools.all() {
		for _, b := range p.blocks {
			if node := cmp.Or(p.node, b.slice.onlyNode()); node != "" {
				wasIdle, ok := idle[node]
				idle[node] = (wasIdle || !ok) && b.allocated() == 0
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(idle)) {
		if idle[node] {
			all = append(all, inv.capacities.removalObstacles(node)...)
		}
	}
	return all
}
