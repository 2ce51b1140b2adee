package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/structured"
)

const (
	nodesTried   = 50                     // the allocator looks at one node at a time
	nodesSeen    = 1000                   // of which others are left out, because the pod's allocated claims are elsewhere
	perNode      = 250 * time.Millisecond // it searches exhaustively: some claims take longer than anybody waits
	perTrial     = time.Second            // of searches that were cut off
	placeholders = "\x00claim-%d\x00"     // for the claim in the allocator's errors, which name it
)

// trial is how the allocator fared with some claims on several nodes.
type trial struct {
	fits  string // the first node on which it succeeded; empty: none
	tried []string
	left  int           // nodes that would have been worth a trial too
	slow  int           // nodes on which it did not come to an end in time
	limit time.Duration // of the time on each
	on    string        // the node on which it failed for good
	fatal error         // that it gives up, and with it the scheduler, whatever the other nodes are like
}

// attempt is what the allocator is asked: about these claims, on these nodes
// one after the other, as far as all of the pod's allocated claims can be used
// there.
type attempt struct {
	nodes  []string
	claims []*resourcev1.ResourceClaim
	pinned []*nodeaffinity.NodeSelector
	whole  bool // to go on after a success: another node may make the scheduler give up
}

// try asks the allocator until it fails in a way that other nodes cannot mend,
// or succeeds. The error is that of the meter.
func (g *ground) try(ctx context.Context, meter *meter, a attempt) (trial, error) {
	t := trial{limit: g.judge.patience}
	for i, name := range a.nodes {
		if t.done() || i == nodesSeen || (t.fits != "" && !a.whole) {
			t.left = len(a.nodes) - i
			break
		}
		if err := meter.pause(ctx); err != nil {
			return t, err
		}
		at, ok, err := g.site(ctx, name)
		switch {
		case err != nil:
			t.on, t.fatal = name, err
			return t, nil
		case !ok || !allows(a.pinned, at.Node):
			continue
		}
		meter.searched()
		allocated, slow, err := g.judge.allocate(ctx, at, a.claims)
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		t.note(name, allocated, slow, err)
		if t.fatal != nil {
			break
		}
	}
	return t, nil
}

func (t *trial) done() bool {
	return len(t.tried) == nodesTried || time.Duration(t.slow)*t.limit > perTrial
}

// note takes in how it was on one node.
func (t *trial) note(node string, allocated, slow bool, err error) {
	t.tried = append(t.tried, node)
	switch {
	case slow:
		t.slow++
	case err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode):
		t.on, t.fatal = node, err
	case allocated && t.fits == "":
		t.fits = node
	}
}

func allows(pinned []*nodeaffinity.NodeSelector, node *corev1.Node) bool {
	for _, selector := range pinned {
		if !selector.Match(node) {
			return false
		}
	}
	return true
}

// allocate asks the allocator about one node. It is slow if it was cut off.
// What drivers publish goes into the allocator as it is, so what makes it
// panic is an error like any other.
func (j *Diagnoser) allocate(ctx context.Context, at site, claims []*resourcev1.ResourceClaim) (allocated, slow bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, j.patience)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the allocator panics: %v", cause)
		}
	}()
	results, err := at.allocator.Allocate(ctx, at.Node, claims)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil {
		return false, true, nil
	}
	return results != nil, false, err
}

// claimOf makes a claim for the allocator. Specifications are shared and stay
// as they are.
func claimOf(index int, spec *resourcev1.ResourceClaimSpec, constrained bool) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{Spec: *spec}
	claim.Name = fmt.Sprintf(placeholders, index)
	if !constrained {
		claim.Spec.Devices.Constraints = nil
	}
	return claim
}
