package inventory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Partnerless names a device class, and a node where no claim that is known to request
// devices of the class can be allocated, because it requests other devices too.
type Partnerless struct{ Class, Node string }

// strandedKey identifies stranded devices.
type strandedKey struct {
	driver, node string
	reason       dra.StrandedReason
}

// Stranded returns the devices that are not allocated and that no claim can have,
// sorted. The needs are those of TypicalNeeds.
func (inv Overview) Stranded(needs Needs, partnerless []Partnerless) []dra.StrandedDevices {
	inv.lockUpdated()
	defer inv.mu.Unlock()
	s := &stranding{inventory: inv.Inventory, needs: needs.ByDriver, found: map[strandedKey]float64{}, nodes: map[strandedKey]dra.StrandedReason{}}
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
	found     map[strandedKey]float64
	nodes     map[strandedKey]dra.StrandedReason // of nodes, without a reason in the key: why their devices are stranded
}

func (s *stranding) add(p *pool, reason dra.StrandedReason, devices float64) {
	if reason != "" && devices > 0 {
		s.found[strandedKey{p.id.driver, p.node, reason}] += devices
	}
}

// addPool adds the devices of a pool: those that consume counters by their sets.
func (s *stranding) addPool(p *pool) {
	sets := p.counterShares()
	for _, b := range p.blocks {
		if unallocated := b.all &^ b.allocated(); unallocated == b.free && len(sets) == 0 && s.ofNode(p) == "" {
			continue
		}
		for bit := range bitsOf(b.all) {
			d, free := b.device(bit), b.free&(1<<bit) != 0
			reason := dra.StrandedReason("")
			switch {
			case b.allocated()&(1<<bit) != 0:
				continue
			case free:
				reason = s.ofNode(p)
			default:
				reason = s.ofDevice(p, b, bit)
			}
			if len(d.consumes()) == 0 {
				s.add(p, reason, 1)
				continue
			}
			for _, consumed := range d.consumes() {
				if of := sets[consumed.value.set]; of != nil {
					of.addDevice(free, reason)
				}
			}
		}
	}
	for _, of := range sets {
		s.add(p, of.reason(), of.left)
	}
}

// ofDevice returns why a device that is neither allocated nor free is stranded; empty:
// what is left of it is too little by itself.
func (s *stranding) ofDevice(p *pool, b *block, bit int) dra.StrandedReason {
	d := b.device(bit)
	switch {
	case !p.complete || !p.valid:
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

// ofNode returns why free devices of a pool are stranded on its node; empty: they are
// not, or several nodes can use them.
func (s *stranding) ofNode(p *pool) dra.StrandedReason {
	if p.node == "" {
		return ""
	}
	key := strandedKey{driver: p.id.driver, node: p.node}
	reason, known := s.nodes[key]
	if !known {
		reason = s.nodeReason(p.id.driver, p.node)
		s.nodes[key] = reason
	}
	return reason
}

func (s *stranding) nodeReason(driver, node string) dra.StrandedReason {
	room, known := s.inventory.rooms.room(node)
	if !known {
		return ""
	}
	if reason := s.inventory.rooms.obstacle(&room); reason != "" {
		return reason
	}
	switch left, need := room.Left(), s.needs[driver]; {
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
	selectors, exists := s.inventory.classes.selectorsOf(missing.Class)
	if !exists {
		return
	}
	for _, p := range s.inventory.pools.withSelections(s.inventory.nodes.selecting(missing.Node)) {
		if p.node != missing.Node || s.ofNode(p) != "" {
			continue
		}
		free := 0
		for _, b := range p.blocks {
			match, _, _ := filter(b, b.free, selectors)
			for bit := range bitsOf(match) {
				if len(b.device(bit).consumes()) == 0 { // else devices overlap
					free++
				}
			}
		}
		s.add(p, dra.StrandedPartnerMissing, float64(free))
	}
}

// counterShare is the part of a counter set that is left, and what can be done with it.
type counterShare struct {
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

// reason returns why what is left of the set is stranded; empty: it is not. The first of
// all reasons that a device of it has decides.
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

// counterShares returns the part that is left of each counter set: of the counter of
// which least is left.
func (p *pool) counterShares() map[string]*counterShare {
	if len(p.counters.sets) == 0 {
		return nil
	}
	shares := map[string]*counterShare{}
	for _, s := range p.current {
		if s.counters == nil {
			continue
		}
		for _, set := range s.counters.value {
			state := p.counters.sets[set.name]
			if state == nil {
				continue
			}
			share := &counterShare{left: 1, touched: state.groups.any}
			for i := range set.counters {
				total := set.counters[i].value.AsApproximateFloat64()
				if left := state.left[set.counters[i].name]; left != nil && total > 0 {
					share.left = min(share.left, max(left.AsApproximateFloat64()/total, 0))
				}
			}
			shares[set.name] = share
		}
	}
	return shares
}

// KeptNodes returns the nodes with devices, none of which is allocated, that an autoscaler
// does not remove, sorted by node, each with all reasons. Devices that several nodes can
// use are those of none.
func (inv Overview) KeptNodes() (all []dra.KeptNode) {
	inv.lockUpdated()
	defer inv.mu.Unlock()
	idle := map[string]bool{}
	for _, p := range inv.pools.all() {
		if p.node == "" {
			continue
		}
		for _, b := range p.blocks {
			was, known := idle[p.node]
			idle[p.node] = (was || !known) && b.allocated() == 0
		}
	}
	for _, node := range slices.Sorted(maps.Keys(idle)) {
		if idle[node] {
			all = append(all, inv.rooms.kept(node)...)
		}
	}
	return all
}
