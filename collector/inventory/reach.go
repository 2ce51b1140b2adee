package inventory

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// reach is from which nodes devices can be used. What nobody has set, or
// cannot be read, reaches no node.
type reach struct {
	node     string // the only one
	all      bool
	selector *nodeaffinity.NodeSelector
	nodes    map[string]struct{} // that the selector selects, of those that are known
	pools    map[*pool]int       // that have devices with this reach: how many slices or devices say so
}

// reachOf is the reach that a slice, or a device of one that says so for each
// device, is published with. One of the three is set.
func (inv *Inventory) reachOf(node *string, all *bool, selector *corev1.NodeSelector) *book[*reach] {
	switch {
	case node != nil && *node != "":
		return inv.reaches.lend([]byte("node "+*node), func() *reach { return &reach{node: clean(*node), pools: map[*pool]int{}} })
	case all != nil && *all:
		return inv.reaches.lend([]byte("all"), func() *reach { return inv.widen(&reach{all: true, pools: map[*pool]int{}}) })
	case selector != nil:
		return inv.selectedReach(selector)
	}
	return inv.reaches.lend([]byte("none"), func() *reach { return &reach{pools: map[*pool]int{}} })
}

func (inv *Inventory) selectedReach(selector *corev1.NodeSelector) *book[*reach] {
	key, err := selector.Marshal()
	if err != nil {
		return inv.reachOf(nil, nil, nil)
	}
	return inv.reaches.lend(append([]byte("selected "), key...), func() *reach {
		made := &reach{pools: map[*pool]int{}, nodes: map[string]struct{}{}}
		// One that does not parse selects nothing; the allocator says so.
		made.selector, _ = nodeaffinity.NewNodeSelector(selector)
		for _, node := range inv.nodes {
			made.look(node)
		}
		return inv.widen(made)
	})
}

func (inv *Inventory) widen(made *reach) *reach {
	inv.widely[made] = struct{}{}
	return made
}

// leave gives a reach back.
func (inv *Inventory) leave(lent *book[*reach]) {
	inv.reaches.giveBack(lent)
	if lent != nil && lent.readers == 0 {
		delete(inv.widely, lent.thing)
	}
}

// look notes whether the node, which is new or different, is reached.
func (r *reach) look(node *corev1.Node) {
	if r.selector == nil {
		return
	}
	if r.selector.Match(node) {
		r.nodes[node.Name] = struct{}{}
	} else {
		delete(r.nodes, node.Name)
	}
}

// reaches says whether devices can be used from the node.
func (r *reach) reaches(node string) bool {
	_, selected := r.nodes[node]
	return selected || r.all || (r.node != "" && r.node == node)
}

// reachesOf are the reaches of a slice: its own, or one for each device.
func (inv *Inventory) reachesOf(spec *resourcev1.ResourceSliceSpec) (own *book[*reach], each []*book[*reach]) {
	if spec.PerDeviceNodeSelection == nil || !*spec.PerDeviceNodeSelection {
		return inv.reachOf(spec.NodeName, spec.AllNodes, spec.NodeSelector), nil
	}
	each = make([]*book[*reach], len(spec.Devices))
	for i := range spec.Devices {
		device := &spec.Devices[i]
		each[i] = inv.reachOf(device.NodeName, device.AllNodes, device.NodeSelector)
	}
	return nil, each
}

// bound notes that a pool has devices with this reach, or no longer has.
func (r *reach) bound(to *pool, by int) {
	if r.pools[to] += by; r.pools[to] == 0 {
		delete(r.pools, to)
	}
}
