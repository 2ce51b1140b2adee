package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

const (
	nodesTried   = 50          // nodes that are searched
	nodesSeen    = 1000        // nodes that are looked up, also where the pod's allocated claims cannot be used
	nodesMerged  = 20          // nodes that are searched as if they were one
	slowSearches = time.Second // of searches that reached the limit, in one attempt
)

// attempt is an allocation that is attempted on nodes, one after the other, as
// far as all of the pod's allocated claims can be used there.
type attempt struct {
	nodes     []string
	claims    []*resourcev1.ResourceClaim
	selectors []*nodeaffinity.NodeSelector // of the pod's allocated claims
	all       bool                         // continue after a success: the scheduler may give up on another node
	traits    *inventory.Traits            // that decide for nodes; nil: not known, or some nodes are not allowed
}

// attemptResult is how an attempt ended.
type attemptResult struct {
	fits   string // the first node on which it succeeded; empty: none
	tried  []string
	left   int           // nodes that have not been tried
	slow   int           // nodes on which the search reached the limit
	limit  time.Duration // of a search
	failed string        // the node on which it failed for good
	fatal  error         // why the allocator gives up, and with it the scheduler, whatever the other nodes are like
}

// attempt attempts an allocation until it fails for good, or succeeds. The error is
// that of the meter. Of nodes with the same traits it searches the first.
func (q *query) attempt(ctx context.Context, a attempt) (attemptResult, error) {
	r, meter := attemptResult{limit: q.nodeCache.Limit()}, q.meter
	searched := sets.New[inventory.TraitsKey]()
	for i, name := range a.nodes {
		if len(r.tried) == nodesTried || time.Duration(r.slow)*r.limit > slowSearches || i == nodesSeen || (r.fits != "" && !a.all) {
			r.left = len(a.nodes) - i
			break
		}
		if err := meter.pause(ctx); err != nil {
			return r, err
		}
		traits, known := a.traits.NodeKey(q.inventory, name)
		if known && searched.Has(traits) {
			r.tried = append(r.tried, name)
			continue
		}
		node, ok, err := q.nodeCache.Node(ctx, name)
		switch {
		case err != nil:
			r.failed, r.fatal = name, err
			return r, nil
		case !ok || !matchesAll(a.selectors, node.Node):
			continue
		}
		meter.searched()
		allocated, slow, err := q.nodeCache.Search(ctx, node, a.claims)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.tried = append(r.tried, name)
		switch {
		case slow:
			r.slow++
		case err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode):
			r.failed, r.fatal = name, err
			return r, nil
		case allocated && r.fits == "":
			r.fits = name
		}
		if known && !slow {
			searched.Insert(traits)
		}
	}
	return r, nil
}

func matchesAll(selectors []*nodeaffinity.NodeSelector, node *corev1.Node) bool {
	for _, selector := range selectors {
		if !selector.Match(node) {
			return false
		}
	}
	return true
}

// onNodes begins a sentence about the nodes on which an attempt failed, up to
// its verb.
func (r attemptResult) onNodes() string {
	switch {
	case r.left > 0:
		return fmt.Sprintf("none of the best %d of %d nodes can", len(r.tried), len(r.tried)+r.left)
	case len(r.tried) == 0:
		return "no node that the pod's other claims allow can"
	case len(r.tried) == 1:
		return fmt.Sprintf("node %s, the only one with enough free devices, cannot", r.tried[0])
	default:
		return fmt.Sprintf("none of the %d nodes with enough free devices can", len(r.tried))
	}
}
