package explain

import (
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// shortRequest is a request for which a stage leaves too few devices.
type shortRequest struct {
	counts RequestCounts
	stage  dra.Stage
}

// needed returns how many devices must be left for the request. For all matching
// devices of a node, that is one.
func (c RequestCounts) needed() int64 { return max(c.Asked, 1) }

// main returns the name of the request of which c counts the devices, or one of the
// alternatives.
func (c RequestCounts) main() string {
	main, _, _ := strings.Cut(c.Request, "/")
	return main
}

// failing returns the first stage that leaves too few devices, as the diagnosis
// judges it: if the class leaves too few and the selectors none, it is the
// selectors' stage.
func (c RequestCounts) failing() (dra.Stage, bool) {
	for stage := dra.StageClass; stage < dra.Stages; stage++ {
		left, ok := c.Left[stage.String()]
		if !ok || int64(left) >= c.needed() {
			continue
		}
		if stage == dra.StageClass && left > 0 && c.Left[dra.StageSelectors.String()] == 0 {
			continue
		}
		return stage, true
	}
	return 0, false
}

// groups returns the counts by request: one for each request, several for the
// alternatives of a prioritized list.
func (r *PendingRef) groups() [][]RequestCounts {
	var groups [][]RequestCounts
	for i, counts := range r.Counts {
		if i > 0 && counts.main() == r.Counts[i-1].main() {
			groups[len(groups)-1] = append(groups[len(groups)-1], counts)
			continue
		}
		groups = append(groups, []RequestCounts{counts})
	}
	return groups
}

// failures returns the requests that fail by their counts, each with all its
// alternatives, and the one that decides about the reason: of alternatives the one
// that comes furthest, of requests the one that fails first. Nothing fails if the
// reason is not about counts.
func (r *PendingRef) failures() (all []shortRequest, decisive *shortRequest) {
	if len(dra.PendingReason(r.Reason).Info().Stages) == 0 {
		return nil, nil
	}
	for _, group := range r.groups() {
		var failed []shortRequest
		for _, counts := range group {
			if stage, fails := counts.failing(); fails {
				failed = append(failed, shortRequest{counts, stage})
			}
		}
		if len(failed) < len(group) {
			continue
		}
		all = append(all, failed...)
		furthest := slices.MaxFunc(failed, func(a, b shortRequest) int { return int(a.stage) - int(b.stage) })
		if decisive == nil || furthest.stage < decisive.stage {
			decisive = &furthest
		}
	}
	return all, decisive
}

// growing reports whether some of the request's devices are in incomplete pools.
func (r *PendingRef) growing(counts RequestCounts) bool {
	return slices.ContainsFunc(r.Removed, func(removal Removal) bool {
		return removal.Request == counts.Request && removal.Stage == dra.StageFree.String() && removal.Because == dra.BecauseIncomplete
	})
}

// futile reports that no node could satisfy the request even if none of its devices
// were allocated. It is false if one could, or if that is unknown: an incomplete pool
// may have more devices than are published.
func (r *PendingRef) futile(counts RequestCounts) bool {
	return r.onOneNode != nil && counts.Asked > int64(r.onOneNode[counts.Request]) && !r.growing(counts)
}

// releaseSuffices reports whether the reference could be allocated if all holders
// released their devices, by the counts of each of its requests.
func (r *PendingRef) releaseSuffices() bool {
	groups := r.groups()
	if reason := dra.PendingReason(r.Reason); reason != dra.ReasonInsufficient && reason != dra.ReasonFragmented {
		return false
	}
	return len(groups) > 0 && !slices.ContainsFunc(groups, func(group []RequestCounts) bool {
		return !slices.ContainsFunc(group, r.enoughReleased)
	})
}

// enoughReleased reports whether there are enough devices for the request if none
// is held: without those that are not free for another cause, and on one node.
func (r *PendingRef) enoughReleased(counts RequestCounts) bool {
	devices := int64(counts.Left[dra.StageUntainted.String()])
	for _, removal := range r.Removed {
		if removal.Request != counts.Request || removal.Stage != dra.StageFree.String() {
			continue
		}
		switch inventory.NotFree(removal.Because) {
		case inventory.NotFreeIncomplete, inventory.NotFreeInvalid, inventory.NotFreeUndeclared:
			devices -= int64(removal.Count)
		}
	}
	return devices >= counts.needed() && (r.onOneNode == nil || int64(r.onOneNode[counts.Request]) >= counts.needed())
}
