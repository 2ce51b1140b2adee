package apiserver

import (
	"reflect"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// at is an instant of a clock that started at some point.
func at(elapsed time.Duration) clock.Instant { return clock.Instant{Elapsed: time.Hour + elapsed} }

// middle spreads nothing at random: it takes the middle.
func middle(limit time.Duration) time.Duration { return limit / 2 }

// due takes the one claim that is due; it fails if none is, or not exactly now.
func due[K comparable](t *testing.T, from *agenda[K], now time.Duration) (K, *appointment) {
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
	claim := dra.Claim{Ref: ref, UID: uid, Allocated: true, Results: []dra.Result{{Device: dra.DeviceID{Driver: "d", Pool: "p", Name: "x"}}}}
	for _, pod := range pods {
		claim.ReservedFor = append(claim.ReservedFor, dra.Consumer{Resource: "pods", UID: pod})
	}
	return claim
}

func TestReadsAClaimUntilItIsSettled(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	book := newClaimBook(middle)
	book.want(at(0), map[dra.ClaimRef][]string{ref: {"pod-1"}}, 0)
	now := time.Duration(0)
	steps := []struct {
		after   time.Duration // since the read before
		version string        // that is asked for
		claim   dra.Claim
	}{
		{0, "0", dra.Claim{Ref: ref, UID: "u"}},
		{250 * time.Millisecond, "7", allocated(ref, "u", "somebody")},
		{500 * time.Millisecond, "", allocated(ref, "u")},
		{time.Second, "", allocated(ref, "u", "pod-1")},
		{settlingPeriod, "7", allocated(ref, "u", "pod-1")},
		{claimRefresh, "7", allocated(ref, "u", "pod-1")},
		{claimRefresh, "7", dra.Claim{Ref: ref, UID: "u"}},
		{250 * time.Millisecond, "7", allocated(ref, "u", "pod-1")},
		{claimRefresh, "7", allocated(ref, "u", "pod-1")},
	}
	for i, step := range steps {
		now += step.after
		_, taken := due(t, book.agenda, now)
		if version := book.version(ref); version != step.version {
			t.Errorf("read %d asks for version %q, want %q", i, version, step.version)
		}
		if !book.agenda.done(ref, taken) {
			t.Fatal("the claim is not wanted")
		}
		changed := book.found(at(now), ref, step.claim, "7")
		if want := i == 0 || !reflect.DeepEqual(steps[i-1].claim, step.claim); changed != want {
			t.Errorf("read %d is news: %v, want %v", i, changed, want)
		}
	}
}

func TestRetriesOfAClaimGrowToHalfAMinute(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	book := newClaimBook(middle)
	book.want(at(0), map[dra.ClaimRef][]string{ref: {"pod-1"}}, 0)
	now := time.Duration(0)
	for i, wait := range []time.Duration{0, 250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000} {
		now += wait * time.Millisecond
		_, taken := due(t, book.agenda, now)
		book.agenda.done(ref, taken)
		if i%2 == 0 {
			book.broken(at(now), ref)
		} else if book.missing(at(now), ref) {
			t.Error("a claim that was never there is missed")
		}
		if version := book.version(ref); i%2 == 0 && version != "" {
			t.Errorf("after a failure version %q is asked for", version)
		}
	}
	book.hurry(at(now))
	if _, taken, wait := book.agenda.begin(at(now + startSpread/2)); taken != nil || wait != 29*time.Second {
		t.Errorf("a claim that is missing is hurried: wait %v", wait)
	}
	_, taken := due(t, book.agenda, now+30*time.Second)
	book.agenda.done(ref, taken)
	book.broken(at(now+30*time.Second), ref)
	book.hurry(at(now + 30*time.Second))
	due(t, book.agenda, now+30*time.Second+startSpread/2)
}

func TestKeepsAClaimThatCannotBeReadAndDropsOneThatIsGone(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	book := newClaimBook(middle)
	book.want(at(0), map[dra.ClaimRef][]string{ref: {"pod-1"}}, 0)
	book.found(at(0), ref, allocated(ref, "u", "pod-1"), "7")
	book.broken(at(1), ref)
	if len(book.claims()) != 1 {
		t.Error("a failed read forgets the claim")
	}
	if !book.missing(at(2), ref) || len(book.claims()) != 0 {
		t.Error("a claim that is not found stays")
	}
	if !book.found(at(3), ref, allocated(ref, "v", "pod-1"), "9") || book.claims()[0].UID != "v" {
		t.Error("a claim made anew is not taken over")
	}
	if !book.want(at(4), nil, 0) || len(book.claims()) != 0 || len(book.agenda.appointments) != 0 {
		t.Error("a claim that nobody names stays")
	}
}

func TestReadsAgainForAPodThatTheClaimIsNotReservedFor(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	settled := func(claim dra.Claim) *claimBook {
		book := newClaimBook(middle)
		book.want(at(0), map[dra.ClaimRef][]string{ref: {"pod-1"}}, 0)
		book.found(at(0), ref, claim, "7")
		return book
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
		book := settled(c.claim)
		book.want(at(0), map[dra.ClaimRef][]string{ref: {"pod-1", "pod-2"}}, 0)
		if _, taken, wait := book.agenda.begin(at(0)); (taken != nil) != (c.wait == 0) || wait != c.wait {
			t.Errorf("%s: read after %v, want %v", name, wait, c.wait)
		}
	}
}

func TestAReadOfADroppedClaimIsOfNoInterest(t *testing.T) {
	ref := dra.ClaimRef{Namespace: "lab", Name: "c"}
	book := newClaimBook(middle)
	wanted := map[dra.ClaimRef][]string{ref: {"pod-1"}}
	book.want(at(0), wanted, 0)
	_, taken := due(t, book.agenda, 0)
	if _, twice, _ := book.agenda.begin(at(0)); twice != nil {
		t.Error("a claim is read twice at once")
	}
	book.want(at(0), nil, 0)
	book.want(at(0), wanted, 0)
	if book.agenda.done(ref, taken) {
		t.Error("a read that began before the claim was dropped counts")
	}
}

func slice(name string, generation, count int64, devices ...string) poolSlice {
	made := poolSlice{name: name, pool: poolID{"d", "p"}, generation: generation, count: count}
	for _, device := range devices {
		made.devices = append(made.devices, dra.PublishedDevice{ID: dra.DeviceID{Driver: "d", Pool: "p", Name: device}})
	}
	return made
}

func names(devices []dra.PublishedDevice) string {
	all := ""
	for _, device := range devices {
		all += device.ID.Name
	}
	return all
}

func TestPoolsHaveTheirNewestCompleteGeneration(t *testing.T) {
	known := make(pools)
	for i, step := range []struct {
		present []poolSlice
		want    string
	}{
		{[]poolSlice{slice("s1", 1, 2, "a")}, ""},
		{[]poolSlice{slice("s1", 1, 2, "a"), slice("s2", 1, 2, "b")}, "ab"},
		{[]poolSlice{slice("s3", 2, 2, "c"), slice("s1", 1, 2, "a"), slice("s2", 1, 2, "b")}, "ab"},
		{[]poolSlice{slice("s3", 2, 2, "c")}, "ab"},
		{[]poolSlice{slice("s3", 2, 2, "c"), slice("s1", 1, 2, "a"), slice("s4", 2, 2, "d")}, "cd"},
		{[]poolSlice{slice("s3", 2, 2, "e"), slice("s4", 2, 2, "d")}, "ed"},
		{[]poolSlice{slice("s3", 2, 2, "e"), slice("s4", 2, 2, "e")}, "e"},
		{nil, ""},
		{[]poolSlice{slice("s5", 1, 1, "z")}, "z"},
	} {
		known.update(step.present)
		if got := names(known[poolID{"d", "p"}]); got != step.want {
			t.Errorf("step %d: devices %q, want %q", i, got, step.want)
		}
	}
}

func TestListsFarPoolsAtNeed(t *testing.T) {
	pool := poolID{"d", "p"}
	far := newFarPools(middle)
	wanted := func(devices ...string) map[poolID]map[string]bool {
		set := map[string]bool{}
		for _, device := range devices {
			set[device] = true
		}
		return map[poolID]map[string]bool{pool: set}
	}
	far.want(at(0), wanted("b"))
	_, taken := due(t, far.agenda, 0)
	far.agenda.done(pool, taken)
	far.broken(at(0), pool)
	now := farPoolFirstRetry + farPoolFirstRetry/10
	_, taken = due(t, far.agenda, now)
	far.agenda.done(pool, taken)
	if far.listed(at(now), pool, []poolSlice{slice("s1", 3, 2, "a", "b")}) || names(far.devices()) != "" {
		t.Error("an incomplete generation is taken over")
	}
	now += 2 * now
	_, taken, _ = far.agenda.begin(at(now))
	if taken == nil {
		t.Fatal("an incomplete generation is not listed again soon")
	}
	far.agenda.done(pool, taken)
	whole := []poolSlice{slice("s1", 3, 2, "a", "b"), slice("s2", 3, 2, "c")}
	if !far.listed(at(now), pool, whole) || names(far.devices()) != "b" {
		t.Errorf("devices %q, want the wanted one", names(far.devices()))
	}
	far.want(at(now), wanted("b"))
	if _, again, wait := far.agenda.begin(at(now)); again != nil || wait != farPoolRefresh {
		t.Errorf("the pool is listed again after %v, want %v", wait, farPoolRefresh)
	}
	far.want(at(now), wanted("b", "c"))
	if _, again, _ := far.agenda.begin(at(now)); again == nil {
		t.Error("the pool is not listed for a device that is new")
	}
	if !far.want(at(now), nil) || len(far.devices()) != 0 {
		t.Error("a pool that is not wanted stays")
	}
}
