package diagnosis

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// candidates are the nodes from which each request of the parts can reach
// enough free devices, counted by itself, and which the pod's allocated claims
// allow. Those with most free devices come first: there the allocator is
// likeliest to succeed.
func (q *inquiry) candidates(parts []int) []string {
	reach := q.reachable(parts[0])
	for _, part := range parts[1:] {
		other := q.reachable(part)
		for node := range reach {
			if free, ok := other[node]; ok {
				reach[node] += free
			} else {
				delete(reach, node)
			}
		}
	}
	q.allowed(reach)
	return bestFirst(reach)

}

// reachable gives the nodes with enough for each request of the part, and how
// much that is in sum. Of alternatives one is enough.
func (q *inquiry) reachable(part int) inventory.NodeCounts {
	asks, tallies := q.order.parts[part].asks, q.tallies[part]
	var reach inventory.NodeCounts
	for i := 0; i < len(asks); {
		here := make(inventory.NodeCounts)
		parent := asks[i].parent
		for ; i < len(asks) && asks[i].parent == parent; i++ {
			for node, free := range tallies[i].Free {
				if free >= asks[i].needs() {
					here[node] = max(here[node], free)
				}
			}
		}
		if reach == nil {
			reach = here
			continue
		}
		for node := range reach {
			if free, ok := here[node]; ok {
				reach[node] += free
			} else {
				delete(reach, node)
			}
		}
	}
	return reach
}

// allowed leaves only the nodes where those of the pod's allocated claims can
// be used that can be used on one node alone. What others allow is seen on the
// node.
func (q *inquiry) allowed(nodes inventory.NodeCounts) {
	for _, pinned := range q.order.pinned {
		if pinned.Node != "" {
			maps.DeleteFunc(nodes, func(node string, _ int) bool { return node != pinned.Node })
		}
	}
}

// bestFirst sorts nodes by what is free there, and by name.
func bestFirst(free inventory.NodeCounts) []string {
	nodes := make([]string, 0, len(free))
	for _, node := range free.Best(len(free)) {
		nodes = append(nodes, node.Node)
	}
	return nodes
}

// selectors are those of allocated claims that can be used on several nodes. A
// selector that cannot be read allows none.
func (o order) selectors() []*nodeaffinity.NodeSelector {
	var all []*nodeaffinity.NodeSelector
	for _, pinned := range o.pinned {
		if pinned.Selector == nil {
			continue
		}
		selector, err := nodeaffinity.NewNodeSelector(pinned.Selector)
		if err != nil {
			selector, _ = nodeaffinity.NewNodeSelector(&corev1.NodeSelector{})
		}
		all = append(all, selector)
	}
	return all
}

// try asks the allocator about some parts. Where a selector is known to fail
// for devices, or all devices of a node are asked for, it may give up on one
// node although another would do; then the nodes are looked at even after one
// has been found, those without free devices too.
func (q *inquiry) try(ctx context.Context, nodes []string, parts []int, constrained bool) (trial, error) {
	a := attempt{nodes: nodes, claims: q.order.claims(parts, constrained), pinned: q.order.selectors()}
	if constrained && q.risky(parts) {
		a.nodes, a.whole = q.everywhere(nodes), true
	}
	return q.ground.try(ctx, q.meter, a)
}

func (q *inquiry) risky(parts []int) bool {
	for _, part := range parts {
		for i, a := range q.order.parts[part].asks {
			if a.count == 0 || len(q.tallies[part][i].Troubles) > 0 {
				return true
			}
		}
	}
	return false
}

// everywhere adds all other nodes that the pod may go to.
func (q *inquiry) everywhere(first []string) []string {
	others := make(inventory.NodeCounts)
	for _, node := range q.judge.inventory.Nodes() {
		others[node] = 0
	}
	q.allowed(others)
	for _, node := range first {
		delete(others, node)
	}
	return append(slices.Clone(first), bestFirst(others)...)
}
