package apiserver

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// at is an instant of a clock that started at some point.
func at(elapsed time.Duration) clock.Instant { return clock.Instant{Elapsed: time.Hour + elapsed} }

// middle returns the middle of the interval, in place of a random value.
func middle(limit time.Duration) time.Duration { return limit / 2 }

// due returns the only claim that is due; the test fails if there is none, or
// if it is not due exactly now.
func due[K comparable](t *testing.T, from *workqueue[K], now time.Duration) (K, *queuedItem) {
	t.Helper()
	if now > 0 {
		if _, early, wait := from.begin(at(now - time.Millisecond)); early != nil || wait != time.Millisecond {
			t.Fatalf("at %v a read is due (%v), or not in a millisecond but in %v", now-time.Millisecond, early != nil, wait)
		}
	}
	key, taken, wait := from.begin(at(now))
	if taken == nil {
		t.Fatalf("at %v nothing is due for another %v", now, wait)
	}
	return key, taken
}

func allocated(ref dra.ClaimRef, uid string, pods ...string) dra.Claim {
	claim := dra.Claim{Ref: ref, UID: uid, Allocated: true, Node: "node-a", Results: []dra.Result{{Device: dra.DeviceID{Driver: "d", Pool: "p", Name: "x"}}}}
	for _, pod := range pods {
		claim.ReservedFor = append(claim.ReservedFor, dra.Consumer{Resource: "pods", UID: pod})
	}
	return claim
}

func TestReadsClaimUntilAllocated(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	cache := newClaimCache(middle)
	wantAll(cache, at(0), map[dra.ClaimRef][]string{ref: {"pod-1"}}, 0)
	now := time.Duration(0)
	steps := []struct {
		after   time.Duration // since the read before
		version string        // requested version
		claim   dra.Claim
	}{
		{0, "0", dra.Claim{Ref: ref, UID: "u"}},
		{250 * time.Millisecond, "7", allocated(ref, "u", "pod-0")},
		{500 * time.Millisecond, "", allocated(ref, "u")},
		{time.Second, "", allocated(ref, "u", "pod-1")},
		{settlingPeriod, "7", allocated(ref, "u", "pod-1")},
		{claimRefresh, "7", allocated(ref, "u", "pod-1")},
		{claimRefresh, "7", dra.Claim{Ref: ref, UID: "u"}},
		{250 * time.Millisecond, "7", dra.Claim{Ref: ref, UID: "u"}},
		{500 * time.Millisecond, "", allocated(ref, "u", "pod-1")},
		{claimRefresh, "7", dra.Claim{Ref: ref, UID: "u"}},
		{250 * time.Millisecond, "7", allocated(ref, "u", "pod-1")},
		{claimRefresh, "7", allocated(ref, "u", "pod-1")},
	}
	for i, step := range steps {
		now += step.after
		_, taken := due(t, cache.queue, now)
		if version := cache.version(ref); version != step.version {
			t.Errorf("read %d asks for version %q, want %q", i, version, step.version)
		}
		if !cache.queue.done(ref, taken) {
			t.Fatal("the claim is not wanted")
		}
		changed := cache.found(at(now), ref, step.claim, "7")
		if want := i == 0 || !reflect.DeepEqual(steps[i-1].claim, step.claim); changed != want {
			t.Errorf("read %d is news: %v, want %v", i, changed, want)
		}
	}
}

// Pods of other nodes start and stop to use a claim with network-attached devices,
// without a change of a pod of this node. Only the first pod decides which node counts.
func TestRereadsClaimOfSeveralNodes(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	for name, c := range map[string]struct {
		pods  []string // of the claim; pod-1 runs here
		waits []time.Duration
	}{
		"first elsewhere": {[]string{"pod-elsewhere", "pod-1"}, []time.Duration{0, settlingPeriod, 2 * settlingPeriod, 4 * settlingPeriod, sharedRefresh, sharedRefresh}},
		"first here":      {[]string{"pod-1", "pod-elsewhere"}, []time.Duration{0, settlingPeriod, claimRefresh, claimRefresh}},
	} {
		t.Run(name, func(t *testing.T) {
			cache := newClaimCache(middle)
			wantAll(cache, at(0), map[dra.ClaimRef][]string{ref: {"pod-1"}}, 0)
			claim := allocated(ref, "u", c.pods...)
			claim.Node = ""
			now := time.Duration(0)
			read := func(wait time.Duration) {
				now += wait
				_, taken := due(t, cache.queue, now)
				cache.queue.done(ref, taken)
				cache.found(at(now), ref, claim, "7")
			}
			for _, wait := range c.waits {
				read(wait)
			}
			claim.ReservedFor = append([]dra.Consumer{{Resource: "pods", UID: "pod-other"}}, claim.ReservedFor...)
			read(c.waits[len(c.waits)-1])
			read(settlingPeriod)
		})
	}
}

func TestRetryBackoffOfClaim(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	cache := newClaimCache(middle)
	wantAll(cache, at(0), map[dra.ClaimRef][]string{ref: {"pod-1"}}, 0)
	now := time.Duration(0)
	for i, wait := range []time.Duration{0, 250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000} {
		now += wait * time.Millisecond
		_, taken := due(t, cache.queue, now)
		cache.queue.done(ref, taken)
		if i%2 == 0 {
			cache.failed(at(now), ref, context.DeadlineExceeded)
		} else {
			cache.missing(at(now), ref)
		}
		if version := cache.version(ref); i%2 == 0 && version != "" {
			t.Errorf("after a failure version %q is asked for", version)
		}
	}
	cache.retryFailed(at(now))
	if _, taken, wait := cache.queue.begin(at(now + outageSpread/2)); taken != nil || wait != 29*time.Second {
		t.Errorf("a claim that is missing is hurried: wait %v", wait)
	}
	_, taken := due(t, cache.queue, now+30*time.Second)
	cache.queue.done(ref, taken)
	cache.failed(at(now+30*time.Second), ref, context.DeadlineExceeded)
	cache.retryFailed(at(now + 30*time.Second))
	due(t, cache.queue, now+30*time.Second+outageSpread/2)
}

func TestKeepsUnreadableClaimAndDropsDeletedClaim(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	cache := newClaimCache(middle)
	wantAll(cache, at(0), map[dra.ClaimRef][]string{ref: {"pod-1"}}, 0)
	cache.found(at(0), ref, allocated(ref, "u", "pod-1"), "7")
	cache.failed(at(1), ref, context.DeadlineExceeded)
	if len(cache.claims()) != 1 {
		t.Error("a failed read forgets the claim")
	}
	if !cache.missing(at(2), ref) || len(cache.claims()) != 0 {
		t.Error("a claim that is not found stays")
	}
	if !cache.found(at(3), ref, allocated(ref, "v", "pod-1"), "9") || cache.claims()[0].UID != "v" {
		t.Error("a recreated claim does not replace the old one")
	}
	if !wantAll(cache, at(4), nil, 0) || len(cache.claims()) != 0 || len(cache.queue.items) != 0 {
		t.Error("a claim that no pod names stays")
	}
}

func TestRereadsClaimForUnreservedPod(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	settled := func(claim dra.Claim) *claimCache {
		cache := newClaimCache(middle)
		wantAll(cache, at(0), map[dra.ClaimRef][]string{ref: {"pod-1"}}, 0)
		cache.found(at(0), ref, claim, "7")
		return cache
	}
	group := dra.Claim{Ref: ref, Allocated: true, ReservedFor: []dra.Consumer{{Resource: "podgroups", UID: "g"}}}
	for name, c := range map[string]struct {
		claim dra.Claim
		wait  time.Duration
	}{
		"reserved for the other alone": {allocated(ref, "u", "pod-1"), 0},
		"reserved for both":            {allocated(ref, "u", "pod-1", "pod-2"), settlingPeriod},
		"reserved for a group of pods": {group, settlingPeriod},
	} {
		cache := settled(c.claim)
		wantAll(cache, at(0), map[dra.ClaimRef][]string{ref: {"pod-1", "pod-2"}}, 0)
		if _, taken, wait := cache.queue.begin(at(0)); (taken != nil) != (c.wait == 0) || wait != c.wait {
			t.Errorf("%s: read after %v, want %v", name, wait, c.wait)
		}
	}
}

func TestReadOfDroppedClaimIsIgnored(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	cache := newClaimCache(middle)
	wanted := map[dra.ClaimRef][]string{ref: {"pod-1"}}
	wantAll(cache, at(0), wanted, 0)
	_, taken := due(t, cache.queue, 0)
	if _, twice, _ := cache.queue.begin(at(0)); twice != nil {
		t.Error("a claim is read twice at once")
	}
	wantAll(cache, at(0), nil, 0)
	wantAll(cache, at(0), wanted, 0)
	if cache.queue.done(ref, taken) {
		t.Error("a read that began before the claim was dropped counts")
	}
}

func TestReportsUnreadClaims(t *testing.T) {
	here, gone := dra.ClaimRef{Namespace: "lab", Name: "here"}, dra.ClaimRef{Namespace: "lab", Name: "gone"}
	cache := newClaimCache(middle)
	wanted := map[dra.ClaimRef][]string{here: {"pod-1"}, gone: {"pod-1"}}
	for _, step := range []struct {
		what string
		do   func() (changed bool)
		news bool
		want []dra.ClaimRef
	}{
		{"nothing is wanted", func() bool { return false }, false, nil},
		{"nothing is read", func() bool { return wantAll(cache, at(0), wanted, 0) }, true, []dra.ClaimRef{gone, here}},
		{"one is found", func() bool { return cache.found(at(0), here, dra.Claim{Ref: here}, "7") }, true, []dra.ClaimRef{gone}},
		{"the other fails", func() bool { return cache.failed(at(0), gone, context.DeadlineExceeded) }, false, []dra.ClaimRef{gone}},
		{"the other is missing", func() bool { return cache.missing(at(0), gone) }, true, nil},
		{"it is missing again", func() bool { return cache.missing(at(0), gone) }, false, nil},
		{"a pod more names it", func() bool {
			return wantAll(cache, at(0), map[dra.ClaimRef][]string{here: {"pod-1"}, gone: {"pod-1", "pod-2"}}, 0)
		}, false, nil},
		{"the first fails later", func() bool { return cache.failed(at(0), here, context.DeadlineExceeded) }, false, nil},
		{"so does the missing one", func() bool { return cache.failed(at(0), gone, context.DeadlineExceeded) }, true, []dra.ClaimRef{gone}},
		{"it is not wanted", func() bool { return wantAll(cache, at(0), map[dra.ClaimRef][]string{here: {"pod-1"}}, 0) }, true, nil},
	} {
		if news := step.do(); news != step.news || !slices.Equal(cache.unread(), step.want) {
			t.Errorf("%s: unread are %v (news: %v), want %v", step.what, cache.unread(), news, step.want)
		}
	}
}

func TestUnreadClaimsComeFirst(t *testing.T) {
	old, young := dra.ClaimRef{Namespace: "lab", Name: "old"}, dra.ClaimRef{Namespace: "lab", Name: "young"}
	cache := newClaimCache(middle)
	wantAll(cache, at(0), map[dra.ClaimRef][]string{old: {"pod-1"}}, 0)
	cache.found(at(0), old, allocated(old, "u", "pod-1"), "7")
	wantAll(cache, at(time.Minute), map[dra.ClaimRef][]string{old: {"pod-1"}, young: {"pod-2"}}, 0)
	for _, want := range []dra.ClaimRef{young, old} {
		if ref, taken, _ := cache.queue.begin(at(time.Minute)); taken == nil || ref != want {
			t.Errorf("read %v, want %v", ref, want)
		}
	}
}

// wantAll replaces the claims that are wanted.
func wantAll(cache *claimCache, now clock.Instant, wanted map[dra.ClaimRef][]string, within time.Duration) (changed bool) {
	for ref := range cache.records {
		if len(wanted[ref]) == 0 {
			changed = cache.setConsumers(now, ref, nil, within) || changed
		}
	}
	for ref, consumers := range wanted {
		changed = cache.setConsumers(now, ref, consumers, within) || changed
	}
	return changed
}
