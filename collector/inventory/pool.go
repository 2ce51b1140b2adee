package inventory

import (
	"cmp"
	"slices"
	"strings"
	"unique"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

type poolKey struct {
	driver, name string
}

// pool is a pool for as long as it has a slice, or something holds a device of
// it.
type pool struct {
	poolKey
	slot   int      // where classes keep their counts for it
	slices []*slice // of all generations
	held   map[unique.Handle[string]]*hold
	moved  uint64 // version at which anything of it last changed

	// What is counted, right unless the pool is dirty.
	current    []*slice // of the newest generation, sorted by name
	names      []string // of its devices, sorted
	generation int64
	complete   bool
	valid      bool
	node       string // the only one where its devices are; the last known, once the slices are gone
	rules      []rule // that apply to devices of it
	left       stock  // of its counter sets
	supply     *dra.PoolSupply
	taints     []dra.TaintCount
	marked     []dra.TaintedDevice
}

// poolOf is the pool of that name, which is made if there is none.
func (inv *Inventory) poolOf(driver, name string) *pool {
	key := poolKey{driver, name}
	if found := inv.pools[key]; found != nil {
		return found
	}
	made := &pool{poolKey: poolKey{strings.Clone(driver), strings.Clone(name)}, slot: len(inv.pools), held: map[unique.Handle[string]]*hold{}}
	if last := len(inv.poolSlots) - 1; last >= 0 {
		made.slot = inv.poolSlots[last]
		inv.poolSlots = inv.poolSlots[:last]
	}
	inv.pools[made.poolKey] = made
	at, _ := slices.BinarySearchFunc(inv.order, made.poolKey, comparePool)
	inv.order = slices.Insert(inv.order, at, made)
	return made
}

func comparePool(p *pool, key poolKey) int {
	return cmp.Or(cmp.Compare(p.driver, key.driver), cmp.Compare(p.name, key.name))
}

func (inv *Inventory) removePool(gone *pool) {
	delete(inv.pools, gone.poolKey)
	delete(inv.dirty, gone)
	delete(inv.recounted, gone)
	if at, found := slices.BinarySearchFunc(inv.order, gone.poolKey, comparePool); found {
		inv.order = slices.Delete(inv.order, at, at+1)
	}
	for _, c := range inv.classes {
		c.forget(gone.slot)
	}
	inv.poolSlots = append(inv.poolSlots, gone.slot)
}

// touch has a pool counted anew before anything is answered.
func (inv *Inventory) touch(p *pool) {
	p.moved = inv.version
	inv.dirty[p] = struct{}{}
}

// recount brings a pool's figures up to date.
func (inv *Inventory) recount(p *pool) {
	p.settleGeneration()
	p.settleNode()
	p.rules = inv.rulesFor(p)
	p.valid = p.namesAreUnique() && p.settleStock()
	for _, s := range p.current {
		for _, b := range s.blocks {
			p.settleBlock(b)
		}
	}
	p.summarize()
	delete(inv.dirty, p)
	inv.recounted[p] = struct{}{}
}

// settleGeneration finds the slices that count. Older ones are about to be
// deleted; a pool is complete when as many as they say are there, and is not
// while they contradict each other.
func (p *pool) settleGeneration() {
	before := p.current
	p.current, p.complete = nil, true
	for _, s := range p.slices {
		if len(p.current) > 0 && s.generation > p.generation {
			p.current = nil
		}
		if len(p.current) == 0 || s.generation == p.generation {
			p.generation = s.generation
			p.current = append(p.current, s)
		}
	}
	slices.SortFunc(p.current, func(a, b *slice) int { return strings.Compare(a.name, b.name) })
	for _, s := range p.current {
		p.complete = p.complete && s.siblings == int64(len(p.current))
	}
	p.complete = p.complete && len(p.current) > 0
	if !slices.Equal(before, p.current) {
		p.settleNames()
	}
}

// settleNames lists the devices. The list of before stays where it is the same.
func (p *pool) settleNames() {
	var names []string
	for _, s := range p.current {
		names = slices.Grow(names, len(s.devices))
		for i := range s.devices {
			names = append(names, s.devices[i].name.Value())
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, p.names) {
		p.names = names
	}
}

// settleNode finds the only node of the pool's devices. A pool whose slices
// are gone is where it was, else where the claims can be used that hold its
// devices.
func (p *pool) settleNode() {
	if len(p.current) == 0 && p.node != "" {
		return
	}
	nodes := map[string]struct{}{}
	for _, s := range p.current {
		if len(s.devices) > 0 { // else it has only counters
			s.eachReach(func(r *reach) { nodes[r.node] = struct{}{} })
		}
	}
	if len(p.current) == 0 {
		for _, first := range p.held {
			for h := first; h != nil; h = h.next {
				nodes[h.claim.nodeName()] = struct{}{}
			}
		}
	}
	p.node = ""
	if len(nodes) == 1 {
		for p.node = range nodes {
		}
	}
}

// namesAreUnique says whether no two devices that one node may reach have the
// same name: from a pool where they do, nothing is allocated. The scheduler
// looks at what each node reaches; here a name that is published for many nodes
// and once more makes all of the pool invalid.
func (p *pool) namesAreUnique() bool {
	type placed struct {
		name unique.Handle[string]
		node string // empty: many
	}
	seen := map[placed]struct{}{}
	for _, s := range p.current {
		for i := range s.devices {
			d := placed{s.devices[i].name, s.sliceNode()}
			if _, twice := seen[d]; twice {
				return false
			}
			seen[d] = struct{}{}
		}
	}
	for d := range seen {
		if _, also := seen[placed{name: d.name}]; also && d.node != "" {
			return false
		}
	}
	return true
}

// sliceNode is the node of a slice that is one node's.
func (s *slice) sliceNode() string {
	if s.reach == nil {
		return ""
	}
	return s.reach.thing.node
}
