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
	sum    outcomes

	// differs, which may be nil, is called when what is known of a claim
	// changes; nil is nothing.
	differs func(before, after *dra.Claim)
}

func newClaimBook(spread func(time.Duration) time.Duration) *claimBook {
	book := &claimBook{known: make(map[dra.ClaimRef]*claimRecord), spread: spread, sum: newOutcomes()}
	book.agenda = newAgenda(func(ref dra.ClaimRef) bool { return book.known[ref].unread() })
	return book
}

// want says which pods, by their sorted UIDs, name a claim now; none: it is not
// wanted. A claim that is new becomes due within the given time, and one that is
// not reserved for a pod that came to it at once. It reports whether what is
// known, or what is unread, is something else than before.
func (b *claimBook) want(now clock.Instant, ref dra.ClaimRef, consumers []string, within time.Duration) (changed bool) {
	record, found := b.known[ref]
	switch {
	case len(consumers) == 0 && found:
		b.agenda.drop(ref)
		delete(b.known, ref)
		b.sum.drop(ref)
		b.replace(record, nil)
		return record.claim != nil || record.unread()
	case len(consumers) == 0:
		return false
	case !found:
		b.known[ref] = &claimRecord{consumers: consumers}
		b.agenda.set(ref, now.Elapsed+b.spread(within))
		return true
	case slices.Equal(record.consumers, consumers):
		return false
	}
	record.consumers = consumers
	if !record.settled() {
		record.tries, record.confirmed = 0, false
		b.agenda.bring(ref, now.Elapsed)
	}
	return false
}

// replace says that another claim, or none, is known in place of the one that
// is in the record.
func (b *claimBook) replace(record *claimRecord, after *dra.Claim) {
	if b.differs != nil {
		b.differs(record.claim, after)
	}
}

// hurry brings reads forward that failed while the API server was away.
func (b *claimBook) hurry(now clock.Instant) {
	for ref, record := range b.known {
		if record.failure != nil {
			b.agenda.bring(ref, now.Elapsed+b.spread(startSpread))
		}
	}
}

// version is the resource version to ask for: never older than what is
// known, and the newest where the cache did not help.
func (b *claimBook) version(ref dra.ClaimRef) string {
	record := b.known[ref]
	switch {
	case record.failure != nil, record.tries >= cachedReads:
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
	if changed {
		b.replace(record, &claim)
	}
	record.claim, record.version, record.answered, record.failure = &claim, version, true, nil
	b.sum.note(ref, nil)
	if !record.settled() {
		b.retry(now, ref, record)
		return changed
	}
	period := settlingPeriod
	if record.confirmed && claim.Node != "" {
		period = claimRefresh // pods on other nodes may come to the claim, or leave it, unseen from here
	}
	record.confirmed, record.tries = true, 0
	b.agenda.set(ref, now.Elapsed+b.jittered(period))
	return changed
}

// missing notes that there is no such claim and reports whether that is news.
func (b *claimBook) missing(now clock.Instant, ref dra.ClaimRef) bool {
	record := b.known[ref]
	changed := record.claim != nil || record.unread()
	b.replace(record, nil)
	b.sum.note(ref, nil)
	record.claim, record.version, record.confirmed = nil, "", false
	record.answered, record.failure = true, nil
	b.retry(now, ref, record)
	return changed
}

// broken notes a read that failed; what is known of the claim stays. It
// reports whether it has become unread.
func (b *claimBook) broken(now clock.Instant, ref dra.ClaimRef, err error) bool {
	record := b.known[ref]
	before := record.unread()
	record.failure = err
	b.sum.note(ref, err)
	b.retry(now, ref, record)
	return record.unread() != before
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

// claims returns what is known, sorted by name.
func (b *claimBook) claims() []dra.Claim {
	var all []dra.Claim
	for _, ref := range b.refs() {
		if claim := b.known[ref].claim; claim != nil {
			all = append(all, *claim)
		}
	}
	return all
}

// unread returns the claims of which nothing is known, sorted by name.
func (b *claimBook) unread() []dra.ClaimRef {
	var all []dra.ClaimRef
	for _, ref := range b.refs() {
		if b.known[ref].unread() {
			all = append(all, ref)
		}
	}
	return all
}

func (b *claimBook) refs() []dra.ClaimRef {
	return slices.SortedFunc(maps.Keys(b.known), compareClaims)
}
