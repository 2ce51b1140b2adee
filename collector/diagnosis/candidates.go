package diagnosis

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// candidates returns the nodes with enough free devices for each request of each
// claim, counted by itself, on which the pod's allocated claims can be used.
// Those with most free devices come first, where the allocator is most likely to
// succeed.
func candidates(pod podClaims, counts [][]inventory.Count, claims []int) []string {
	nodes := enoughFree(pod.claims[claims[0]].requests, counts[claims[0]])
	for _, claim := range claims[1:] {
		nodes = inBoth(nodes, enoughFree(pod.claims[claim].requests, counts[claim]))
	}
	return mostFirst(allowed(nodes, pod))
}

// enoughFree returns the nodes with enough free devices for each request, and
// their sum. One of several alternatives is enough.
func enoughFree(requests []Request, counts []inventory.Count) inventory.NodeCounts {
	var nodes inventory.NodeCounts
	for i := 0; i < len(requests); {
		first, parent := i, requests[i].Parent
		enough := atLeast(counts[i].Free, requests[i].Devices())
		for i++; i < len(requests) && requests[i].Parent == parent; i++ {
			enough = enough.Merge(atLeast(counts[i].Free, requests[i].Devices()), func(a, b int) int { return max(a, b) })
		}
		if first == 0 {
			nodes = enough
		} else {
			nodes = inBoth(nodes, enough)
		}
	}
	return nodes
}

// atLeast returns the nodes with at least so many devices.
func atLeast(nodes inventory.NodeCounts, devices int) inventory.NodeCounts {
	enough := make(inventory.NodeCounts, 0, len(nodes))
	for _, n := range nodes {
		if n.Devices >= devices {
			enough = append(enough, n)
		}
	}
	return enough
}

// inBoth returns the nodes that are in both, with the sum of their devices.
func inBoth(a, b inventory.NodeCounts) inventory.NodeCounts {
	merged := a.Merge(b, func(a, b int) int {
		if a == 0 || b == 0 {
			return 0
		}
		return a + b
	})
	return slices.DeleteFunc(merged, func(n inventory.NodeCount) bool { return n.Devices == 0 })
}

// allowed returns the nodes without those other than the only one on which an
// allocated claim of the pod can be used. Claims that can be used on several
// nodes have selectors, which are evaluated for the node itself.
func allowed(nodes inventory.NodeCounts, pod podClaims) inventory.NodeCounts {
	for _, allocation := range pod.allocated {
		if allocation.Node != "" {
			nodes = slices.DeleteFunc(slices.Clone(nodes), func(n inventory.NodeCount) bool { return n.Node != allocation.Node })
		}
	}
	return nodes
}

// mostFirst sorts nodes by their devices, then by name.
func mostFirst(counts inventory.NodeCounts) []string {
	nodes := make([]string, 0, len(counts))
	for _, node := range counts.Best(len(counts)) {
		nodes = append(nodes, node.Node)
	}
	return nodes
}
