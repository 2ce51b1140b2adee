package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const (
	firstRetry     = 250 * time.Millisecond
	lastRetry      = 30 * time.Second
	settlingPeriod = 15 * time.Second // drivers write status.devices while they prepare
	sharedRefresh  = 2 * time.Minute  // of claims whose first pod runs on another node, at most
	claimRefresh   = 10 * time.Minute
	outageSpread   = 2 * time.Second       // of the reads after an outage, at most
	outageInterval = 25 * time.Millisecond // between two of them, on average
	parallelReads  = 8                     // of claims, at most
	cachedReads    = 2                     // before the API server is asked for the newest
)

// claimCache has the claims that pods of this node reference and that are read
// by GET, and when to read each again. It does no I/O and is not safe for
// concurrent use.
//
// A claim is settled once it is allocated and reserved for every pod here that
// references it; until then it is read again, with growing delays. The first
// reads take what the API server has in its cache; if the claim is not settled
// after that, or a read failed, the newest is asked for.
type claimCache struct {
	queue    *workqueue[dra.ClaimRef]
	records  map[dra.ClaimRef]*claimRecord
	jitter   func(limit time.Duration) time.Duration // random, in [0, limit)
	outcomes outcomes
	changes  []claimChange // that takeChanges has not returned
}

// claimChange is a claim that became another than was known; nil: none.
type claimChange struct{ before, after *dra.Claim }

// claimRecord is what is known of one claim.
type claimRecord struct {
	consumers []string // UIDs of the pods, sorted
	claim     *dra.Claim
	version   string // resource version of the claim
	tries     int    // reads since it was last settled
	answered  bool   // a read has found the claim, or that there is none
	failure   error  // of the last read; nil: it did not fail
	confirmed bool   // settled, and read again since
	unchanged int    // reads in a row that found the claim as it was
}

// settled reports whether no change is expected soon. A claim that is reserved
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

// unread reports whether nothing is known of the claim, not even that there is
// none.
func (r *claimRecord) unread() bool {
	return r.claim == nil && (!r.answered || r.failure != nil)
}

func newClaimCache(jitter func(time.Duration) time.Duration) *claimCache {
	c := &claimCache{records: make(map[dra.ClaimRef]*claimRecord), jitter: jitter, outcomes: newOutcomes()}
	c.queue = newWorkqueue(func(ref dra.ClaimRef) bool { return c.records[ref].unread() })
	return c
}

// setConsumers sets which pods, by their sorted UIDs, reference a claim; none: it
// is not wanted any more. A claim that is new becomes due within the given time,
// and one that is not reserved for a new pod at once. It reports whether what is
// known, or what is unread, has changed.
func (c *claimCache) setConsumers(now clock.Instant, ref dra.ClaimRef, consumers []string, limit time.Duration) (changed bool) {
	record, ok := c.records[ref]
	switch {
	case len(consumers) == 0 && ok:
		c.queue.remove(ref)
		delete(c.records, ref)
		c.outcomes.remove(ref)
		c.changes = append(c.changes, claimChange{before: record.claim})
		return record.claim != nil || record.unread()
	case len(consumers) == 0:
		return false
	case !ok:
		c.records[ref] = &claimRecord{consumers: consumers}
		c.queue.set(ref, now.Elapsed+c.jitter(limit))
		return true
	case slices.Equal(record.consumers, consumers):
		return false
	}
	record.consumers = consumers
	if !record.settled() {
		record.tries, record.confirmed = 0, false
		c.queue.advance(ref, now.Elapsed)
	}
	return false
}

// retryFailed advances reads that failed while the API server was not reachable.
func (c *claimCache) retryFailed(now clock.Instant) {
	for ref, record := range c.records {
		if record.failure != nil {
			c.queue.advance(ref, now.Elapsed+c.jitter(outageSpread))
		}
	}
}

// version is the resource version to ask for: never older than what is known,
// and the newest if the cache did not settle the claim.
func (c *claimCache) version(ref dra.ClaimRef) string {
	record := c.records[ref]
	switch {
	case record.failure != nil, record.tries >= cachedReads:
		return ""
	case record.version != "":
		return record.version
	default:
		return "0"
	}
}

// apply applies the answer of a read. It reports whether what is known, or what
// is unread, has changed.
func (c *claimCache) apply(now clock.Instant, ref dra.ClaimRef, claim *resourcev1.ResourceClaim, err error) bool {
	switch {
	case apierrors.IsNotFound(err) && !watch.IsUnsupported(err):
		return c.missing(now, ref)
	case err != nil:
		return c.failed(now, ref, watch.Failure(err))
	default:
		return c.found(now, ref, decode.Claim(claim), claim.ResourceVersion)
	}
}

// found applies a claim. One that was recreated under its name replaces the old.
func (c *claimCache) found(now clock.Instant, ref dra.ClaimRef, claim dra.Claim, version string) bool {
	record := c.records[ref]
	changed := record.claim == nil || !reflect.DeepEqual(*record.claim, claim)
	if changed {
		c.changes = append(c.changes, claimChange{before: record.claim, after: &claim})
	}
	record.unchanged++
	if changed {
		record.unchanged = 0
	}
	record.claim, record.version, record.answered, record.failure = &claim, version, true, nil
	c.outcomes.record(ref, nil)
	if !record.settled() {
		c.retry(now, ref, record)
		return changed
	}
	c.queue.set(ref, now.Elapsed+c.aboutAfter(record.refresh()))
	record.confirmed, record.tries = true, 0
	return changed
}

// refresh returns the time until a settled claim is read again. The first pod of a claim
// may end on another node at any time, and this node then counts the claim's use.
func (r *claimRecord) refresh() time.Duration {
	switch {
	case !r.confirmed:
		return settlingPeriod
	case r.claim.HasFirstPodElsewhere(r.consumers):
		return min(settlingPeriod<<min(r.unchanged, 4), sharedRefresh)
	default:
		return claimRefresh
	}
}

// missing applies that there is no such claim.
func (c *claimCache) missing(now clock.Instant, ref dra.ClaimRef) bool {
	record := c.records[ref]
	changed := record.claim != nil || record.unread()
	c.changes = append(c.changes, claimChange{before: record.claim})
	c.outcomes.record(ref, nil)
	record.claim, record.version, record.confirmed = nil, "", false
	record.answered, record.failure = true, nil
	c.retry(now, ref, record)
	return changed
}

// failed applies a read that failed; what is known of the claim stays. It
// reports whether the claim has become unread.
func (c *claimCache) failed(now clock.Instant, ref dra.ClaimRef, err error) bool {
	record := c.records[ref]
	previous := record.unread()
	record.failure = err
	c.outcomes.record(ref, err)
	c.retry(now, ref, record)
	return record.unread() != previous
}

func (c *claimCache) retry(now clock.Instant, ref dra.ClaimRef, record *claimRecord) {
	wait := lastRetry
	if record.tries < 7 { // 250 ms doubled seven times is more than lastRetry
		wait = firstRetry << record.tries
	}
	record.tries++
	c.queue.set(ref, now.Elapsed+c.aboutAfter(wait))
}

// aboutAfter is the period plus or minus up to a tenth.
func (c *claimCache) aboutAfter(period time.Duration) time.Duration {
	return period - period/10 + c.jitter(period/5)
}

// takeChanges returns the changes of claims since the last call.
func (c *claimCache) takeChanges() []claimChange {
	changes := c.changes
	c.changes = nil
	return changes
}

// claims returns what is known, sorted by name.
func (c *claimCache) claims() []dra.Claim {
	var all []dra.Claim
	for _, ref := range c.refs() {
		if claim := c.records[ref].claim; claim != nil {
			all = append(all, *claim)
		}
	}
	return all
}

// tried reports whether a read of every claim has ended.
func (c *claimCache) tried() bool {
	for _, record := range c.records {
		if !record.answered && record.failure == nil {
			return false
		}
	}
	return true
}

// unread returns the claims of which nothing is known, sorted by name.
func (c *claimCache) unread() []dra.ClaimRef {
	var all []dra.ClaimRef
	for _, ref := range c.refs() {
		if c.records[ref].unread() {
			all = append(all, ref)
		}
	}
	return all
}

func (c *claimCache) refs() []dra.ClaimRef {
	return slices.SortedFunc(maps.Keys(c.records), compareClaims)
}

func compareClaims(a, b dra.ClaimRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// report reports the status of the claims as a whole: the source is down if no
// claim could be read, and impaired if some could not, or if unlisted is a
// failure to list claims. A source without claims is up while the pods are
// fresh. A status that is not new is reported only with always, so that the
// times of successes and failures count.
func (c *claimCache) report(tracker *source.Tracker, podsFresh bool, unlisted error, always bool) {
	previous := tracker.Status()
	failure, failed, succeeded := c.outcomes.failure(), len(c.outcomes.failed), len(c.outcomes.succeeded)
	if failed > 1 {
		failure = fmt.Errorf("%d of %d claims cannot be read: %w", failed, len(c.records), failure)
	}
	switch {
	case failed > 0 && succeeded == 0:
		if always || previous.Up {
			tracker.Report(failure)
		}
	case failed > 0, unlisted != nil:
		if always || !previous.Up || previous.Reason == source.ReasonNone {
			tracker.Impair(cmp.Or(failure, unlisted))
		}
	case succeeded > 0, len(c.records) == 0 && podsFresh:
		if always || !previous.Up || previous.Reason != source.ReasonNone {
			tracker.Report(nil)
		}
	}
}

// outcomes are those of the last reads of all claims in the cache.
type outcomes struct {
	succeeded map[dra.ClaimRef]bool
	failed    map[dra.ClaimRef]error
	first     dra.ClaimRef // of those that failed, by name; valid while known is set
	known     bool
}

func newOutcomes() outcomes {
	return outcomes{succeeded: make(map[dra.ClaimRef]bool), failed: make(map[dra.ClaimRef]error)}
}

// record replaces the outcome of the last read of a claim.
func (o *outcomes) record(ref dra.ClaimRef, err error) {
	if err == nil {
		o.remove(ref)
		o.succeeded[ref] = true
		return
	}
	delete(o.succeeded, ref)
	if o.failed[ref] = err; o.known && compareClaims(ref, o.first) < 0 {
		o.first = ref
	}
}

func (o *outcomes) remove(ref dra.ClaimRef) {
	delete(o.succeeded, ref)
	delete(o.failed, ref)
	o.known = o.known && ref != o.first
}

// failure is that of the first claim by name; nil: no read failed.
func (o *outcomes) failure() error {
	if len(o.failed) == 0 {
		return nil
	}
	if !o.known {
		o.first, o.known = slices.MinFunc(slices.Collect(maps.Keys(o.failed)), compareClaims), true
	}
	return o.failed[o.first]
}
