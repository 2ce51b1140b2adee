package node

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// tenureKey names what accounts are kept for: one device of one claim, by
// name, so that a claim re-created under its name goes on.
type tenureKey struct {
	claim dra.ClaimRef
	uuid  string
}

// A tenure is a claim's hold of a device, and all that it accrued. It lives
// while the claim holds the device, and the grace beyond.
type tenure struct {
	key      tenureKey
	class    string
	model    string
	held     bool
	released clock.Instant // when it let go; meaningless while held

	heldSince   uint64 // step that first saw the present hold
	attribution attribution
	activeSince uint64      // step since which the attribution has been this one
	uses        [usages]use // of what processes may split, each with its own attribution
	weight      float64
	allocated   float64   // memory, bytes; 0: unknown
	idling      bool      // it does nothing at present
	idleSince   time.Time // since when; zero: it was busy when last seen

	heldSeconds   tally // elapsed seconds
	deviceSeconds tally // weighted seconds
	accounts      [attributions]account
	labels        *metric.Labels
}

// An account is what accrued under one attribution. While another
// attribution is in force it is frozen, never moved.
type account struct {
	tallies   [meters]tally
	throttled []reasonTally
	labels    *metric.Labels
	engines   []*metric.Labels
	slotted   []device.Reading
}

type reasonTally struct {
	reason string
	tally
	labels *metric.Labels
}

// hold notes that the claim holds the device in this step.
func (t *tenure) hold(u *unit, step uint64) {
	now := u.attribution()
	for q := range usages {
		t.uses[q].take(u.use(t.key.claim, q, now), !t.held, step)
	}
	if !t.held {
		t.heldSince, t.activeSince, t.idleSince = step, step, time.Time{}
	} else if t.attribution != now {
		t.activeSince = step
	}
	t.held, t.attribution = true, now
}

// accrue credits the tenure with what it got since the step before: elapsed
// seconds if it held at both ends, and each growth of the device that began
// when it was already active. The totals of its namespace rise with it.
func (t *tenure) accrue(u *unit, step uint64, elapsed time.Duration, now time.Time, totals *namespaceTotals) {
	t.heldSeconds.open(now)
	t.deviceSeconds.open(now)
	totals.device.open(now)
	totals.sharedDevice.open(now)
	totals.charge(u, t.class, 0, now)
	if t.heldSince < step {
		weighted := t.weight * elapsed.Seconds()
		t.heldSeconds.total += elapsed.Seconds()
		t.deviceSeconds.total += weighted
		totals.device.total += weighted
		totals.charge(u, t.class, weighted, now)
		if t.uses[usedTime].attribution == shared {
			totals.sharedDevice.total += weighted
		}
	}
	current := &t.accounts[t.attribution]
	for m := meterBusy + 1; m < meters; m++ {
		if g := &u.growth[m]; g.known {
			current.tallies[m].add(g.share(t.activeSince), now)
		}
	}
	for i := range u.reason {
		g := &u.reason[i]
		account := current.reason(g.reason)
		account.open(now)
		account.total += g.share(t.activeSince)
	}
	if g := &u.growth[meterEnergy]; g.known && t.attribution != shared {
		totals.energy.add(g.share(t.activeSince), now)
	}
	t.accrueBusy(&u.growth[meterBusy], now, totals)
}

// accrueBusy credits the tenure with the integral of its own utilization, over
// the same time as the device's.
func (t *tenure) accrueBusy(g *growth, now time.Time, totals *namespaceTotals) {
	if !g.known {
		return
	}
	use := &t.uses[usedTime]
	busy := 0.0
	if use.known && g.since > 0 && use.activeSince <= g.since {
		busy = use.value * g.over
	}
	t.accounts[use.attribution].tallies[meterBusy].add(busy, now)
	if use.attribution != shared {
		totals.busy.add(busy, now)
	}
}

// share is what a holder that has been active since the given step gets.
func (g *growth) share(activeSince uint64) float64 {
	if g.since == 0 || activeSince > g.since {
		return 0
	}
	return g.amount
}

func (a *account) reason(name string) *reasonTally {
	for i := range a.throttled {
		if a.throttled[i].reason == name {
			return &a.throttled[i]
		}
	}
	a.throttled = append(a.throttled, reasonTally{reason: name})
	return &a.throttled[len(a.throttled)-1]
}

// idle keeps since when the device has done nothing for the claim. A gap in
// reading hides it and forgets nothing.
func (t *tenure) idle(u *unit, threshold float64, now time.Time) {
	use := &t.uses[usedTime]
	known := use.known && u.fresh
	t.idling = known && use.value < threshold
	switch {
	case !known:
	case !t.idling:
		t.idleSince = time.Time{}
	case t.idleSince.IsZero():
		t.idleSince = now
	}
}

// release notes that the claim let go.
func (t *tenure) release(now clock.Instant) {
	t.held, t.idling, t.released, t.idleSince = false, false, now, time.Time{}
}

// namespaceKey is the labels of the totals that outlive claims.
type namespaceKey struct {
	namespace, class, model string
}

// namespaceTotals are never taken away while the process lives.
type namespaceTotals struct {
	device, sharedDevice, busy, energy tally
	cost                               costTotal
	labels                             *metric.Labels
}

// weight is the share of the device's time that a claim is charged with: its
// part of one capacity that all holders consume, else an equal part.
func (u *unit) weight(claim dra.ClaimRef) float64 {
	capacity := u.sharedCapacity()
	if capacity == "" {
		return 1 / float64(max(1, u.holders.claims+u.holders.plugins))
	}
	own, all := 0.0, 0.0
	for _, share := range u.holders.shares {
		all += share.consumed[capacity]
		if share.claim == claim {
			own = share.consumed[capacity]
		}
	}
	// A driver that publishes less than it did leaves more consumed than there
	// is; the device is still there once.
	return own / max(all, u.published.Capacity[capacity])
}

// sharedCapacity is the one capacity by which the unit is divided: memory if
// every holder consumes it, else the alphabetically first that all consume;
// empty if there is none.
func (u *unit) sharedCapacity() string {
	if u.holders.plugins > 0 {
		return ""
	}
	if u.allConsume("memory") {
		return "memory"
	}
	first := ""
	for name := range u.published.Capacity {
		if (first == "" || name < first) && u.allConsume(name) {
			first = name
		}
	}
	return first
}

func (u *unit) allConsume(capacity string) bool {
	if u.published.Capacity[capacity] <= 0 {
		return false
	}
	for _, share := range u.holders.shares {
		if _, consumes := share.consumed[capacity]; !consumes {
			return false
		}
	}
	return len(u.holders.shares) > 0
}
