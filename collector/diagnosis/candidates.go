package diagnosis

import (
	"maps"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// candidates returns the nodes with enough free devices for each request of each
// claim, counted by itself, on which the pod's allocated claims can be used.
// Those with most free devices come first, where the allocator is most likely to
// succeed.
func candidates(pod podClaims, counts [][]inventory.Count, claims []int) []string {
	nodes := enoughFree(pod.claims[claims[0]].requests, counts[claims[0]])
	for _, claim := range claims[1:] {
		intersect(nodes, enoughFree(pod.claims[claim].requests, counts[claim]))
	}
	keepAllowed(nodes, pod)
	return mostFirst(nodes)
}

// enoughFree returns the nodes with enough free devices for each request, and
// their sum. One of several alternatives is enough.
func enoughFree(requests []request, counts []inventory.Count) inventory.NodeCounts {
	var nodes inventory.NodeCounts
	for i := 0; i < len(requests); {
		enough := make(inventory.NodeCounts)
		parent := requests[i].parent
		for ; i < len(requests) && requests[i].parent == parent; i++ {
			for node, free := range counts[i].Free {
				if free >= requests[i].devices() {
					enough[node] = max(enough[node], free)
				}
			}
		}
		if nodes == nil {
			nodes = enough
		} else {
			intersect(nodes, enough)
		}
	}
	return nodes
}

// intersect adds up the devices of nodes that are in both, and deletes others.
func intersect(nodes, with inventory.NodeCounts) {
	for node := range nodes {
		if n, ok := with[node]; ok {
			nodes[node] += n
		} else {
			delete(nodes, node)
		}
	}
}

// keepAllowed deletes the nodes other than the only one on which an allocated
// claim of the pod can be used. Claims that can be used on several nodes have
// selectors, which are evaluated for the node itself.
func keepAllowed(nodes inventory.NodeCounts, pod podClaims) {
	for _, allocation := range pod.allocated {
		if allocation.Node != "" {
			maps.DeleteFunc(nodes, func(node string, _ int) bool { return node != allocation.Node })
		}
	}
}

// mostFirst sorts nodes by their devices, then by name.
func mostFirst(counts inventory.NodeCounts) []string {
	nodes := make([]string, 0, len(counts))
	for _, node := range counts.Best(len(counts)) {
		nodes = append(nodes, node.Node)
	}
	return nodes
}
