package apiserver

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const (
	firstRetry     = 250 * time.Millisecond
	lastRetry      = 30 * time.Second
	settlingPeriod = 15 * time.Second // drivers write status.devices while they prepare
	claimRefresh   = 10 * time.Minute
	startSpread    = 2 * time.Second // of the reads after a start or an outage
	cachedReads    = 2               // then the API server is asked for the newest
)

// claimBook knows the claims that live pods of this node name, and when each
// is to be read. It does no I/O and is not safe for concurrent use.
//
// A claim is settled once it is allocated and reserved for every pod here
// that names it; until then it is read again, soon at first. The first reads
// take what the API server has in its cache; when that does not settle the
// claim, or failed, the newest is asked for.
type claimBook struct {
	agenda *agenda[dra.ClaimRef]
	known  map[dra.ClaimRef]*claimRecord
	spread func(limit time.Duration) time.Duration // random, in [0, limit)
}

type claimRecord struct {
	consumers []string // UIDs of the pods, sorted
	claim     *dra.Claim
	version   string // resource version of the claim
	tries     int    // reads since it was last settled
	failed    bool   // the last read was
	confirmed bool   // settled, and read again since
}

func newClaimBook(spread func(time.Duration) time.Duration) *claimBook {
	return &claimBook{agenda: newAgenda[dra.ClaimRef](), known: make(map[dra.ClaimRef]*claimRecord), spread: spread}
}

// want replaces the claims that are wanted, each with the UIDs of the pods
// that name it. New ones become due within the given time, and one that is
// not reserved for a pod that came to it at once. It reports whether claims
// that were known are gone.
func (b *claimBook) want(now clock.Instant, wanted map[dra.ClaimRef][]string, within time.Duration) (changed bool) {
	for ref, record := range b.known {
		if _, still := wanted[ref]; !still {
			changed = changed || record.claim != nil
			delete(b.known, ref)
			b.agenda.drop(ref)
		}
	}
	for ref, consumers := range wanted {
		record, found := b.known[ref]
		if !found {
			b.known[ref] = &claimRecord{consumers: consumers}
			b.agenda.set(ref, now.Elapsed+b.spread(within))
			continue
		}
		if slices.Equal(record.consumers, consumers) {
			continue
		}
		record.consumers = consumers
		if !record.settled() {
			record.tries, record.confirmed = 0, false
			b.agenda.bring(ref, now.Elapsed)
		}
	}
	return changed
}

// hurry brings reads forward that failed while the API server was away.
func (b *claimBook) hurry(now clock.Instant) {
	for ref, record := range b.known {
		if record.failed {
			b.agenda.bring(ref, now.Elapsed+b.spread(startSpread))
		}
	}
}

// version is the resource version to ask for: never older than what is
// known, and the newest where the cache did not help.
func (b *claimBook) version(ref dra.ClaimRef) string {
	record := b.known[ref]
	switch {
	case record.failed, record.tries >= cachedReads:
		return ""
	case record.version != "":
		return record.version
	default:
		return "0"
	}
}

// found notes what a read brought and reports whether it is news. A claim
// that was made again under its name simply takes the place of the old one.
func (b *claimBook) found(now clock.Instant, ref dra.ClaimRef, claim dra.Claim, version string) bool {
	record := b.known[ref]
	changed := record.claim == nil || !reflect.DeepEqual(*record.claim, claim)
	record.claim, record.version, record.failed = &claim, version, false
	switch {
	case !record.settled():
		b.retry(now, ref, record)
	case record.confirmed:
		b.agenda.set(ref, now.Elapsed+b.jittered(claimRefresh))
	default:
		record.confirmed, record.tries = true, 0
		b.agenda.set(ref, now.Elapsed+b.jittered(settlingPeriod))
	}
	return changed
}

// missing notes that there is no such claim and reports whether one was known.
func (b *claimBook) missing(now clock.Instant, ref dra.ClaimRef) bool {
	record := b.known[ref]
	changed := record.claim != nil
	record.claim, record.version, record.failed, record.confirmed = nil, "", false, false
	b.retry(now, ref, record)
	return changed
}

// broken notes a read that failed; what is known of the claim stays.
func (b *claimBook) broken(now clock.Instant, ref dra.ClaimRef) {
	record := b.known[ref]
	record.failed = true
	b.retry(now, ref, record)
}

func (b *claimBook) retry(now clock.Instant, ref dra.ClaimRef, record *claimRecord) {
	wait := lastRetry
	if record.tries < 7 { // 250 ms doubled seven times is past the last
		wait = firstRetry << record.tries
	}
	record.tries++
	b.agenda.set(ref, now.Elapsed+b.jittered(wait))
}

// jittered is the time give or take a tenth.
func (b *claimBook) jittered(period time.Duration) time.Duration {
	return period - period/10 + b.spread(period/5)
}

// settled reports whether nothing more is to come. A claim that is reserved
// for a group of pods is never reserved for its single pods.
func (r *claimRecord) settled() bool {
	if r.claim == nil || !r.claim.Allocated {
		return false
	}
	for _, uid := range r.consumers {
		if !r.claim.ReservedForPod(uid) && !reservedForGroup(*r.claim) {
			return false
		}
	}
	return true
}

func reservedForGroup(claim dra.Claim) bool {
	return slices.ContainsFunc(claim.ReservedFor, func(c dra.Consumer) bool { return c.Resource != "pods" })
}

// claims returns what is known, sorted by name.
func (b *claimBook) claims() []dra.Claim {
	var all []dra.Claim
	for _, ref := range slices.SortedFunc(maps.Keys(b.known), compareClaims) {
		if claim := b.known[ref].claim; claim != nil {
			all = append(all, *claim)
		}
	}
	return all
}
