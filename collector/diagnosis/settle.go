package diagnosis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// allocate settles the parts against which counts say nothing: whether
// upstream's allocator finds a node for all of them.
func (q *inquiry) allocate(ctx context.Context, open []int) error {
	nodes := q.candidates(open)
	if len(nodes) == 0 {
		q.blame(open, finding{dra.ReasonFragmented, dra.StageBestNode, sayNoNode(len(q.order.pinned) > 0)})
		return nil
	}
	all, err := q.try(ctx, nodes, open, true)
	switch {
	case err != nil:
		return err
	case all.fatal != nil:
		return q.blameFatal(ctx, nodes, open, all)
	case all.fits != "":
		q.fit(open, all)
		return nil
	case len(open) == 1:
		return q.blameNodes(ctx, nodes, open, all)
	default:
		return q.each(ctx, nodes, open, all)
	}
}

// each finds out which of several parts cannot be allocated even by itself. If
// none is like that, they stand in each other's way.
func (q *inquiry) each(ctx context.Context, nodes []string, open []int, all trial) error {
	culprits := 0
	for _, part := range open {
		alone := []int{part}
		one, err := q.try(ctx, nodes, alone, true)
		if err != nil {
			return err
		}
		switch {
		case one.fatal != nil:
			culprits++
			if err := q.blameFatal(ctx, nodes, alone, one); err != nil {
				return err
			}
		case one.fits == "":
			culprits++
			if err := q.blameNodes(ctx, nodes, alone, one); err != nil {
				return err
			}
		}
	}
	if culprits == 0 {
		return q.blameNodes(ctx, nodes, open, all)
	}
	for _, part := range open {
		if !q.answers[part].fails() {
			q.answers[part].message = sayOther()
		}
	}
	return nil
}

// blameNodes says why none of the nodes will do for the parts: their
// constraints, if without them one would.
func (q *inquiry) blameNodes(ctx context.Context, nodes []string, parts []int, failed trial) error {
	for _, part := range parts {
		q.answers[part].tried = failed.tried
	}
	if failed.slow > 0 {
		q.blame(parts, finding{dra.ReasonUndetermined, dra.Stages, saySlow(failed)})
		return nil
	}
	if q.order.constrained(parts) {
		free, err := q.try(ctx, nodes, parts, false)
		if err != nil {
			return err
		}
		if free.fits != "" {
			q.blame(parts, finding{dra.ReasonConstraints, dra.Stages, sayConstraints(parts, free.fits, failed)})
			return nil
		}
	}
	return q.blameRoom(ctx, parts, failed)
}

// blame gives parts that are open the same finding.
func (q *inquiry) blame(parts []int, f finding) {
	for _, part := range parts {
		q.answers[part].finding = f
	}
}

// fatality tells by what the allocator says what made it give up.
type fatality struct {
	phrase string
	reason dra.PendingReason
}

// fatalities are the phrases of k8s.io/dynamic-resource-allocation v0.37; the
// first that is found decides.
func fatalities() []fatality {
	return []fatality{
		{"CEL ", dra.ReasonNoMatchingDevice},
		{"is currently being updated", dra.ReasonPoolIncomplete},
		{"is currently invalid", dra.ReasonPoolIncomplete},
		{"exceeds the claim limit", dra.ReasonConstraints},
		{"allocation max size exceeded", dra.ReasonConstraints},
		{"a claim constraint would not be satisfied", dra.ReasonConstraints},
		{"could not retrieve device class", dra.ReasonNoDeviceClass},
		{"capacity", dra.ReasonNoMatchingDevice},
	}
}

func fatalReason(err error) dra.PendingReason {
	for _, known := range fatalities() {
		if strings.Contains(err.Error(), known.phrase) {
			return known.reason
		}
	}
	return dra.ReasonUnknown
}

// blameFatal blames those parts that the allocator's error names, else all.
// Such an error ends the scheduler's attempt on all nodes, so that it counts
// even if another node would do. Constraints are to blame only if without them
// some node will do.
func (q *inquiry) blameFatal(ctx context.Context, nodes []string, open []int, t trial) error {
	text := t.fatal.Error()
	f := finding{fatalReason(t.fatal), dra.Stages, sayFatal(t)}
	if f.reason == dra.ReasonConstraints && q.order.constrained(open) {
		free, err := q.try(ctx, nodes, open, false)
		if err != nil {
			return err
		}
		switch {
		case free.fatal != nil:
			q.blame(open, finding{fatalReason(free.fatal), dra.Stages, sayFatal(free)})
			return nil
		case free.fits == "":
			return q.blameRoom(ctx, open, free)
		}
	}
	named := slices.DeleteFunc(slices.Clone(open), func(part int) bool {
		return !strings.Contains(text, fmt.Sprintf(placeholders, part))
	})
	if len(named) == 0 {
		named = open
	}
	q.blame(named, f)
	return nil
}

// fit notes the node that the parts fit on.
func (q *inquiry) fit(open []int, t trial) {
	waiting := false
	for part := range q.answers {
		waiting = waiting || q.answers[part].fails()
	}
	for _, part := range open {
		q.answers[part].fits = t.fits
		if waiting {
			q.answers[part].message = sayOther()
		}
	}
}
