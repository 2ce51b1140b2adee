package node

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// holdKey names what accounts are kept for: one device of one claim, by
// name, so that a claim re-created under its name goes on.
type holdKey struct {
	claim dra.ClaimRef
	uuid  string
}

// A hold is a claim's hold of a device, and all that it accrued. It lives
// while the claim holds the device, and the grace beyond.
type hold struct {
	key      holdKey
	class    string
	model    string
	held     bool
	released clock.Instant // when it let go; meaningless while held

	seen        time.Duration // elapsed time of the last step in which it certainly held the device
	broken      bool          // the attribution has changed since
	stretches   []stretch     // the newest last, of which it is not known yet what grew in them
	attribution attribution
	uses        [usages]use           // of what processes may split, each with its own attribution
	pending     [attributions]float64 // busy seconds of a hold that may have ended, since seen
	weight      float64
	allocated   float64   // memory, bytes; 0: unknown
	idling      bool      // it does nothing at present
	idleSince   time.Time // since when; zero: it was busy when last seen

	heldSeconds   tally // elapsed seconds
	deviceSeconds tally // weighted seconds
	uncounted     bool  // device-seconds are not known at present
	accounts      [attributions]account
	labels        *metric.Labels
}

// A stretch is a time, in elapsed time, through which a claim held a device
// under one attribution. What happened between two stretches is not known.
type stretch struct {
	from, to    time.Duration
	attribution attribution
}

// mostStretches bounds what is remembered of a hold while a quantity of its
// device is not measured. What grew in stretches that are forgotten is
// unattributed.
const mostStretches = 32

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

// hold notes that the claim holds the device in this step, and how long it has
// done so since it was last seen.
func (t *hold) hold(u *deviceState, now time.Duration) (held time.Duration) {
	present := u.attribution()
	for q := range usages {
		t.uses[q].take(u.use(t.key.claim, q, present), !t.held, now)
	}
	if !t.held {
		t.idleSince, t.pending = time.Time{}, [attributions]float64{}
	} else {
		held = now - t.seen
	}
	if last := len(t.stretches) - 1; t.held && !t.broken && t.attribution == present {
		t.stretches[last].to = now
	} else {
		t.stretches = append(t.stretches, stretch{now, now, present})
	}
	t.held, t.broken, t.attribution, t.seen = true, false, present, now
	return held
}

// doubt is for a step in which the hold may have ended: its uses go on, and
// what it accrues waits.
func (t *hold) doubt(u *deviceState, now time.Duration) {
	present := u.attribution()
	t.broken = t.broken || t.attribution != present
	t.attribution = present
	for q := range usages {
		t.uses[q].take(u.use(t.key.claim, q, present), false, now)
	}
	use := &t.uses[usedTime]
	t.pending[use.attribution] += use.busy(&u.growth[meterBusy])
}

// accrue credits the tenure with the time that it has held the device since
// it was last seen. The totals of its namespace rise with it.
func (t *hold) accrue(u *deviceState, held time.Duration, now time.Time, totals *namespaceTotals) {
	t.heldSeconds.add(held.Seconds(), now)
	totals.device.open(now)
	totals.sharedDevice.open(now)
	totals.charge(u, t.class, 0, now)
	if t.uncounted {
		return
	}
	weighted := t.weight * held.Seconds()
	t.deviceSeconds.add(weighted, now)
	totals.device.total += weighted
	totals.charge(u, t.class, weighted, now)
	if t.uses[usedTime].attribution == shared {
		totals.sharedDevice.total += weighted
	}
}

// open begins the accounts of what the device is known to count.
func (t *hold) open(u *deviceState, now time.Time, totals *namespaceTotals) {
	current := &t.accounts[t.attribution]
	for m := meterBusy + 1; m < meters; m++ {
		if u.growth[m].known {
			current.tallies[m].open(now)
		}
	}
	for i := range u.reason {
		current.reason(u.reason[i].reason).open(now)
	}
	if u.growth[meterEnergy].known && t.attribution != shared {
		totals.energy.open(now)
	}
}

// settle credits the tenure with its share of what the device's counters have
// grown by since they were measured before: a hold that has ended, too, for a
// counter may be measured after that.
func (t *hold) settle(u *deviceState, now time.Time, totals *namespaceTotals) {
	for m := meterBusy + 1; m < meters; m++ {
		g := &u.growth[m]
		if !g.grew || g.amount == 0 {
			continue
		}
		for i := range t.stretches {
			s := &t.stretches[i]
			if part := g.amount * g.share(s.from, s.to); part > 0 {
				t.accounts[s.attribution].tallies[m].add(part, now)
				if m == meterEnergy && s.attribution != shared {
					totals.energy.add(part, now)
				}
			}
		}
	}
	for i := range u.reason {
		g := &u.reason[i]
		if !g.grew || g.amount == 0 {
			continue
		}
		for i := range t.stretches {
			s := &t.stretches[i]
			if part := g.amount * g.share(s.from, s.to); part > 0 {
				t.accounts[s.attribution].reason(g.reason).add(part, now)
			}
		}
	}
	t.forget(u)
}

// forget drops the stretches that no counter's next growth can reach.
func (t *hold) forget(u *deviceState) {
	last := len(t.stretches)
	if t.held {
		last--
	}
	if last <= 0 {
		return
	}
	oldest := u.oldest()
	past := max(0, len(t.stretches)-mostStretches)
	for past < last && t.stretches[past].to <= oldest {
		past++
	}
	t.stretches = slices.Delete(t.stretches, 0, past)
}

// accrueBusy credits the tenure with the integral of its own utilization, over
// the same time as the device's, and with what waited while it was in doubt.
func (t *hold) accrueBusy(g *growth, now time.Time, totals *namespaceTotals) {
	if !g.known {
		return
	}
	use := &t.uses[usedTime]
	t.pending[use.attribution] += use.busy(g)
	t.accounts[use.attribution].tallies[meterBusy].open(now)
	if use.attribution != shared {
		totals.busy.open(now)
	}
	for a, busy := range t.pending {
		if busy > 0 {
			t.accounts[a].tallies[meterBusy].add(busy, now)
			if attribution(a) != shared {
				totals.busy.add(busy, now)
			}
			t.pending[a] = 0
		}
	}
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
func (t *hold) idle(u *deviceState, threshold float64, now time.Time) {
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
func (t *hold) release(now clock.Instant) {
	t.held, t.idling, t.released, t.idleSince, t.uncounted = false, false, now, time.Time{}, false
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
func (u *deviceState) weight(claim dra.ClaimRef) float64 {
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
func (u *deviceState) sharedCapacity() string {
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

func (u *deviceState) allConsume(capacity string) bool {
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
