package inventory

import (
	"encoding/binary"
	"maps"
	"slices"
	"unique"
)

// poolView is a pool as the allocator sees it from nodes that can use the same slices of
// it (GatherPools of k8s.io/dynamic-resource-allocation). Only the newest generation of
// these slices counts, whatever other nodes have: administrators choose the names of
// pools, and several nodes may have a pool of the same name. Other slices matter only if
// these are not the whole pool.
type poolView struct {
	nodes      []string                    // that exist
	selections map[*nodeSelection]struct{} // whose devices the nodes can use
	slices     []*slice                    // that the nodes can use, of all generations, sorted by name

	generation int64
	current    []*slice // of that generation
	whole      []*slice // with those of the generation that the nodes cannot use; nil: the pool is complete without
	obsolete   bool     // other nodes have a newer generation: it is as if there was no pool
	complete   bool     // as many slices as each of asked says
	unique     bool     // no two devices have the same name

	undeclared bool // no node declares the feature that slices need which skip node operations

	valid    bool // it is complete and unique, and its counters do not contradict each other
	counters *counterState
}

// views are the views of one pool.
type views struct {
	all         []*poolView
	byNode      map[string]*poolView // of the nodes that see more than the others
	others      *poolView            // of all other nodes; nil: they see nothing of the pool
	bySelection map[*nodeSelection][]*poolView
}

// newViews returns the views of all slices of a pool, which are sorted by name. Devices
// that no node can use are in the view of a node as it would have to be.
func newViews(all []*slice, nodes *nodeIndex) views {
	b := viewBuilder{
		views: views{byNode: map[string]*poolView{}, bySelection: map[*nodeSelection][]*poolView{}},
		with:  map[*nodeSelection][]*slice{}, numbers: map[*nodeSelection]int{}, byKey: map[string]*poolView{},
	}
	for _, s := range all {
		for selection := range s.selections() {
			b.addSlice(selection, s)
		}
	}
	if len(b.order) == 1 {
		b.others = b.get(b.order)
		b.cover(b.others, b.order)
	} else {
		b.addNodes(nodes)
	}
	newest, generations := int64(0), map[int64][]*slice{}
	for i, s := range all {
		if i == 0 || s.generation > newest {
			newest = s.generation
		}
		generations[s.generation] = append(generations[s.generation], s)
	}
	for _, v := range b.all {
		v.gather(generations, newest)
	}
	return b.views
}

type viewBuilder struct {
	views
	order   []*nodeSelection // each once
	numbers map[*nodeSelection]int
	with    map[*nodeSelection][]*slice
	byKey   map[string]*poolView
}

func (b *viewBuilder) addSlice(selection *nodeSelection, s *slice) {
	have := b.with[selection]
	if len(have) == 0 {
		b.numbers[selection] = len(b.order)
		b.order = append(b.order, selection)
	}
	if len(have) == 0 || have[len(have)-1] != s {
		b.with[selection] = append(have, s)
	}
}

// addNodes adds the views of nodes that exist, then those that devices need which are in
// none of these.
func (b *viewBuilder) addNodes(nodes *nodeIndex) {
	seen := map[string][]*nodeSelection{}
	var everywhere []*nodeSelection
	for _, selection := range b.order {
		switch {
		case selection.all:
			everywhere = append(everywhere, selection)
		case selection.node != "":
			seen[selection.node] = append(seen[selection.node], selection)
		default:
			for node := range selection.matched {
				seen[node] = append(seen[node], selection)
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(seen)) {
		if !nodes.exists(node) {
			continue
		}
		selections := slices.Concat(seen[node], everywhere)
		v := b.get(selections)
		b.cover(v, selections)
		v.nodes, b.byNode[node] = append(v.nodes, node), v
	}
	if len(everywhere) > 0 {
		b.others = b.get(everywhere)
		if len(nodes.nodes) > len(b.byNode) {
			b.cover(b.others, everywhere)
		}
	}
	for _, selection := range b.order {
		if len(b.bySelection[selection]) > 0 {
			continue
		}
		selections := everywhere
		switch {
		case selection.node != "":
			selections = slices.Concat(seen[selection.node], everywhere)
		case !selection.all:
			selections = append([]*nodeSelection{selection}, everywhere...)
		}
		b.cover(b.get(selections), []*nodeSelection{selection})
	}
}

// get returns the view of nodes that all of the selections select.
func (b *viewBuilder) get(selections []*nodeSelection) *poolView {
	var key []byte
	for _, selection := range selections {
		key = binary.AppendUvarint(key, uint64(b.numbers[selection]))
	}
	if found := b.byKey[string(key)]; found != nil {
		return found
	}
	made := &poolView{selections: make(map[*nodeSelection]struct{}, len(selections))}
	for _, selection := range selections {
		made.slices = append(made.slices, b.with[selection]...)
	}
	if len(selections) > 1 {
		slices.SortFunc(made.slices, compareSlices)
		made.slices = slices.Compact(made.slices)
	}
	b.byKey[string(key)] = made
	b.all = append(b.all, made)
	return made
}

// cover makes the view responsible for the devices of the selections.
func (b *viewBuilder) cover(v *poolView, selections []*nodeSelection) {
	for _, selection := range selections {
		if _, ok := v.selections[selection]; !ok {
			v.selections[selection] = struct{}{}
			b.bySelection[selection] = append(b.bySelection[selection], v)
		}
	}
}

// gather finds the slices that count, given all of the pool by generation.
func (v *poolView) gather(generations map[int64][]*slice, newest int64) {
	v.generation = v.slices[0].generation
	for _, s := range v.slices {
		v.generation = max(v.generation, s.generation)
	}
	v.current = v.slices
	if len(generations) > 1 {
		v.current = slices.DeleteFunc(slices.Clone(v.slices), func(s *slice) bool { return s.generation != v.generation })
	}
	v.unique = namesAreUnique(v.current)
	asked := v.asked()
	alone := func(s *slice) bool { return s.poolSlices == int64(len(v.current)) }
	if v.complete = !slices.ContainsFunc(asked, func(s *slice) bool { return !alone(s) }); v.complete {
		return
	}
	v.whole = generations[v.generation]
	v.obsolete = newest > v.generation
	v.complete = !v.obsolete && !slices.ContainsFunc(asked, func(s *slice) bool { return !alone(s) && s.poolSlices != int64(len(v.whole)) })
}

// asked returns the slices from one of which the allocator takes the number of slices in
// the pool: the slices of the node, if there are any. It is not known which one the
// allocator takes. If they contradict each other, the pool must be complete according to
// each.
func (v *poolView) asked() []*slice {
	ofNode := slices.DeleteFunc(slices.Clone(v.current), func(s *slice) bool { return s.onlyNode() == "" })
	if len(ofNode) > 0 {
		return ofNode
	}
	return v.current
}

// namesAreUnique reports whether no two devices have the same name. From a pool with such
// devices nothing is allocated.
func namesAreUnique(slices []*slice) bool {
	seen := map[unique.Handle[string]]struct{}{}
	for _, s := range slices {
		for i := range s.devices {
			if _, ok := seen[s.devices[i].name]; ok {
				return false
			}
			seen[s.devices[i].name] = struct{}{}
		}
	}
	return true
}

// onlyNode returns the node if only one node can use the slices of the view,
// else "".
func (v *poolView) onlyNode() string {
	node := ""
	for selection := range v.selections {
		if selection.node == "" || v.whole != nil || node != "" && selection.node != node {
			return ""
		}
		node = selection.node
	}
	return node
}

// isOptional reports whether slices of it skip node operations.
func (v *poolView) isOptional() bool {
	for selection := range v.selections {
		if selection.optional {
			return true
		}
	}
	return false
}

// has reports whether the slice is one of the newest that the nodes can use.
func (v *poolView) has(s *slice) bool { return !v.obsolete && s.generation == v.generation }

// provides reports whether the nodes can have a device of the slice that is not
// allocated. Another share of a device that is shared consumes no counters.
func (v *poolView) provides(s *slice, d *device, share bool) bool {
	return v.has(s) && v.valid && (share || v.counters.suffice(d) && v.counters.compatible(d))
}

// decisive returns the slices to give to an allocator so that it sees the pool as the
// nodes do. It takes the number of slices from the first one.
func (v *poolView) decisive() []*slice {
	switch {
	case v.obsolete:
		return nil
	case v.complete:
		return v.counted()
	}
	agrees := func(s *slice) bool { return s.poolSlices == int64(len(v.current)) }
	return slices.Concat(
		slices.DeleteFunc(slices.Clone(v.current), agrees),
		slices.DeleteFunc(slices.Clone(v.current), func(s *slice) bool { return !agrees(s) }),
	)
}

// counted returns the slices whose counters and devices count.
func (v *poolView) counted() []*slice {
	if v.whole != nil {
		return v.whole
	}
	return v.current
}

// count computes what is left of the counters.
func (vs *views) count(allocated func(*device) bool) {
	type result struct {
		counters counterState
		ok       bool
	}
	shared := map[int64]*result{} // of whole pools, by generation
	for _, v := range vs.all {
		found := shared[v.generation]
		if v.whole == nil || found == nil {
			found = &result{}
			found.counters, found.ok = newCounterState(v.counted(), allocated)
		}
		if v.whole != nil {
			shared[v.generation] = found
		}
		v.counters, v.valid = &found.counters, found.ok && v.complete && v.unique
	}
}

// updateFeatures finds out where nodes lack the feature that devices may need. If all
// nodes that can use devices see the same, it does not matter which of them declare it.
func (vs *views) updateFeatures(all *nodeIndex) {
	for _, v := range vs.all {
		v.undeclared = false
		if len(vs.all) > 1 && v.isOptional() {
			nodes := vs.nodes(v, all)
			v.undeclared = len(nodes) > 0 && !slices.ContainsFunc(nodes, all.declares)
		}
	}
}

// nodes returns the nodes that see the view, of those that exist.
func (vs *views) nodes(v *poolView, all *nodeIndex) []string {
	if v != vs.others {
		return v.nodes
	}
	var others []string
	for name := range all.nodes {
		if vs.byNode[name] == nil {
			others = append(others, name)
		}
	}
	return others
}

// onNode returns the view of a node that can use devices of the pool.
func (vs *views) onNode(node string) *poolView {
	if v := vs.byNode[node]; v != nil {
		return v
	}
	return vs.others
}
