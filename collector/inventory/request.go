package inventory

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Request is one request of a claim, or one alternative of a prioritized list,
// as far as it can be checked for each device alone.
type Request struct {
	Class       string
	Selectors   []resourcev1.DeviceSelector // the request's own; those of its class come before
	Tolerations []resourcev1.DeviceToleration
	Capacity    *resourcev1.CapacityRequirements
	AdminAccess bool // allocations to others do not matter

	// Derived are attributes that only constraints refer to (KEP-6080): they
	// do not matter for a device alone.
	Derived []resourcev1.DeviceDerivedAttribute
}

// Exactly returns the Request of an exact device request.
func Exactly(request *resourcev1.ExactDeviceRequest) Request {
	return Request{
		Class:       request.DeviceClassName,
		Selectors:   request.Selectors,
		Tolerations: request.Tolerations,
		Capacity:    request.Capacity,
		AdminAccess: request.AdminAccess != nil && *request.AdminAccess,
		Derived:     request.DerivedAttributes,
	}
}

// Alternative returns the Request of an entry of a prioritized list.
func Alternative(request *resourcev1.DeviceSubRequest) Request {
	return Request{
		Class:       request.DeviceClassName,
		Selectors:   request.Selectors,
		Tolerations: request.Tolerations,
		Capacity:    request.Capacity,
		Derived:     request.DerivedAttributes,
	}
}

// eachRequest yields each request of a claim, and each alternative of a
// prioritized list.
func eachRequest(spec *resourcev1.ResourceClaimSpec) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		for i := range spec.Devices.Requests {
			request := &spec.Devices.Requests[i]
			if request.Exactly != nil && !yield(Exactly(request.Exactly)) {
				return
			}
			for j := range request.FirstAvailable {
				if !yield(Alternative(&request.FirstAvailable[j])) {
					return
				}
			}
		}
	}
}

// celExpression returns "" for a selector of an unknown kind.
func celExpression(published *resourcev1.DeviceSelector) string {
	if published.CEL == nil {
		return ""
	}
	return published.CEL.Expression
}

// Count is how many devices each stage leaves for one Request.
type Count struct {
	NoClass  bool // the class does not exist
	Complete bool // all selectors have been evaluated for all devices; else the counts are too low
	Left     [dra.Stages]int
	Free     NodeCounts // of the devices that are left at StageFree

	// Incomplete counts the devices that pass all stages before StageFree and
	// are not allocated to others, but are in pools that are not complete.
	Incomplete int
	// Failed counts the devices for which a selector failed after all earlier
	// selectors matched. Failures has a few of these selectors, and those that
	// do not compile, each once.
	Failed   int
	Failures []dra.SelectorError
}

// NodeCounts has the number of devices that each node can use, sorted by node.
// Nodes that can use none are omitted.
type NodeCounts []NodeCount

// NodeCount is how many devices a node can use.
type NodeCount struct {
	Node    string
	Devices int
}

// Devices returns how many devices the node can use.
func (c NodeCounts) Devices(node string) int {
	at, ok := slices.BinarySearchFunc(c, node, func(n NodeCount, node string) int { return strings.Compare(n.Node, node) })
	if !ok {
		return 0
	}
	return c[at].Devices
}

// Merge returns the nodes of both lists. combine returns the number of devices
// of a node from its two numbers, of which one is 0 if the node is in only one
// list.
func (c NodeCounts) Merge(other NodeCounts, combine func(a, b int) int) NodeCounts {
	merged := make(NodeCounts, 0, max(len(c), len(other)))
	for len(c) > 0 && len(other) > 0 {
		order := strings.Compare(c[0].Node, other[0].Node)
		next := NodeCount{Node: c[0].Node}
		var a, b int
		if order <= 0 {
			a, c = c[0].Devices, c[1:]
		}
		if order >= 0 {
			next.Node = other[0].Node
			b, other = other[0].Devices, other[1:]
		}
		next.Devices = combine(a, b)
		merged = append(merged, next)
	}
	for _, n := range c {
		merged = append(merged, NodeCount{n.Node, combine(n.Devices, 0)})
	}
	for _, n := range other {
		merged = append(merged, NodeCount{n.Node, combine(0, n.Devices)})
	}
	return merged
}

// Best returns the nodes that can use the most devices, at most as many as the
// limit. Equal nodes are sorted by name.
func (c NodeCounts) Best(limit int) []NodeCount {
	best := slices.Clone(c)
	most := 0
	for _, n := range best {
		most = max(most, n.Devices)
	}
	if most > len(best) {
		slices.SortStableFunc(best, func(a, b NodeCount) int { return cmp.Compare(b.Devices, a.Devices) })
		return best[:min(limit, len(best))]
	}
	// Nodes have few devices: it is quicker to count how many nodes come before.
	next := make([]int, most+2) // where the next node with so many devices goes
	for _, n := range c {
		next[most-n.Devices+1]++
	}
	for i := range most {
		next[i+1] += next[i]
	}
	for _, n := range c {
		at := &next[most-n.Devices]
		best[*at] = n
		*at++
	}
	return best[:min(limit, len(best))]
}

// NotFree is why a device that passes all stages before StageFree is not free.
type NotFree string

// The reasons. A device has one of them.
const (
	NotFreeHeld       NotFree = "held"                // allocated to a claim
	NotFreeCapacity   NotFree = "capacity"            // what is left of its capacity does not suffice
	NotFreeCounters   NotFree = "counters"            // what is left of the counters that it consumes does not suffice
	NotFreeGroups     NotFree = "compatibility group" // is not compatible with what is allocated from its counter set
	NotFreeIncomplete NotFree = dra.BecauseIncomplete
	NotFreeInvalid    NotFree = "pool invalid"                                     // the pool contradicts itself: the scheduler allocates nothing from it
	NotFreeUndeclared NotFree = "no node of it declares DRAOptionalNodeOperations" // which its slice needs, because it skips node operations
)

// Cause is why a stage removed devices. A device with several taints counts
// for each of them; for other causes it counts once.
type Cause struct {
	Count    int            // of devices
	Examples []dra.DeviceID // a few of them
	Taint    dra.Taint      // at StageUntainted: one that is not tolerated
	Rule     string         // the DeviceTaintRule that it comes from; empty: slices
	NotFree  NotFree        // at StageFree
	Others   int            // not 0: the number of taints that are not listed
}

// ExplanationLimits bounds an Explanation.
type ExplanationLimits struct {
	Taints   int // of StageUntainted; the others become one Cause
	Examples int // devices of each Cause
	Holders  int
}

// Explanation is why stages remove devices for one Request.
type Explanation struct {
	// Causes has the causes of each stage; those of the most devices come
	// first.
	Causes map[dra.Stage][]Cause
	// Holders are the claims that hold devices which the request could have, or
	// which consume the same counters. Those with the most devices come first.
	// Their requests are empty. HoldersInAll is the number of all such claims.
	Holders      []dra.Holder
	HoldersInAll int
	// Untainted counts the devices that are left at StageUntainted: the devices
	// of each node that the request could have if nothing was allocated and all
	// pools were complete.
	Untainted NodeCounts
}
