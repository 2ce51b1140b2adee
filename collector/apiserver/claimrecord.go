package apiserver

import (
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// claimRecord is what the book has of one claim.
type claimRecord struct {
	consumers []string // UIDs of the pods, sorted
	claim     *dra.Claim
	version   string // resource version of the claim
	tries     int    // reads since it was last settled
	answered  bool   // a read has been, with the claim or that there is none
	failure   error  // of the last read; nil: it did not fail
	confirmed bool   // settled, and read again since
}

// settled reports whether nothing more is to come. A claim that is reserved
// for a group of pods is never reserved for its single pods.
func (r *claimRecord) settled() bool {
	if r.claim == nil || !r.claim.Allocated {
		return false
	}
	for _, uid := range r.consumers {
		if !r.claim.HeldBy(uid) {
			return false
		}
	}
	return true
}

// unread reports whether nothing is known of the claim, not even that there
// is none.
func (r *claimRecord) unread() bool {
	return r.claim == nil && (!r.answered || r.failure != nil)
}

// outcomes sum up how the last reads of all claims in the book went.
type outcomes struct {
	succeeded map[dra.ClaimRef]bool
	failed    map[dra.ClaimRef]error
	first     dra.ClaimRef // of those that failed, by name; good while known is set
	known     bool
}

func newOutcomes() outcomes {
	return outcomes{succeeded: make(map[dra.ClaimRef]bool), failed: make(map[dra.ClaimRef]error)}
}

// note takes in how the last read of a claim went.
func (o *outcomes) note(ref dra.ClaimRef, err error) {
	if err == nil {
		o.drop(ref)
		o.succeeded[ref] = true
		return
	}
	delete(o.succeeded, ref)
	if o.failed[ref] = err; o.known && compareClaims(ref, o.first) < 0 {
		o.first = ref
	}
}

// drop forgets a claim.
func (o *outcomes) drop(ref dra.ClaimRef) {
	delete(o.succeeded, ref)
	delete(o.failed, ref)
	o.known = o.known && ref != o.first
}

// failure is that of the first by name; nil: none failed.
func (o *outcomes) failure() error {
	if len(o.failed) == 0 {
		return nil
	}
	if !o.known {
		o.first, o.known = slices.MinFunc(slices.Collect(maps.Keys(o.failed)), compareClaims), true
	}
	return o.failed[o.first]
}
