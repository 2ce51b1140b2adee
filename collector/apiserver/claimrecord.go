package apiserver

import "github.com/dra-exporter/dra-exporter/collector/dra"

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

// outcome sums up how the last reads of all claims in the book went.
type outcome struct {
	succeeded, failed int
	failure           error // of the first by name
}

func (b *claimBook) outcome() outcome {
	var sum outcome
	for _, ref := range b.refs() {
		switch record := b.known[ref]; {
		case record.failure == nil && record.answered:
			sum.succeeded++
		case record.failure != nil:
			sum.failed++
			if sum.failure == nil {
				sum.failure = record.failure
			}
		}
	}
	return sum
}
