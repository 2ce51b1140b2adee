package node

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// ledger keeps what each claim got of each device that it holds, and the totals
// of each namespace.
type ledger struct {
	grace         time.Duration
	idleThreshold float64 // utilization ratio

	holds  map[holdKey]*hold
	step   uint64 // counts steps
	totals map[namespaceKey]*namespaceTotals

	sortedHolds  []*hold            // held ones first; nil: outdated
	sortedTotals []*namespaceTotals // nil: outdated

	shownAccounts, shownReasons int // of the model before
}

func newLedger(config Config) *ledger {
	return &ledger{
		grace: config.Grace, idleThreshold: config.IdleThreshold,
		holds: make(map[holdKey]*hold), totals: make(map[namespaceKey]*namespaceTotals),
	}
}

// update adds what every hold got since the last step. It returns the classes of
// the holds that began or have another class now.
func (l *ledger) update(devices *devices, views []claimView, now clock.Instant) (begun []string) {
	l.step++
	for i := range views {
		view := &views[i]
		for _, d := range view.devices {
			key := holdKey{view.ref, d.uuid}
			if d.admin {
				continue
			}
			t, ok := l.holds[key]
			if !ok {
				t = &hold{key: key}
				l.holds[key] = t
			}
			if t.step == l.step {
				continue // the claim holds the device twice
			}
			t.step = l.step
			if class, began := l.updateHold(t, devices.get(d.uuid), view, now); began {
				begun = append(begun, class)
			}
		}
	}
	for key, t := range l.holds {
		if t.step == l.step {
			continue
		}
		if t.held {
			t.release(now)
			l.sortedHolds = nil
		}
		if d := devices.get(key.uuid); d != nil && len(t.stretches) > 0 {
			t.creditGrowth(&d.growth, now.Wall, l.findTotals(t))
		}
	}
	return begun
}

func (l *ledger) updateHold(t *hold, d *deviceState, view *claimView, now clock.Instant) (class string, began bool) {
	key, h := t.key, &d.holders
	t.device = d
	class = view.classOn(key.uuid)
	began = !t.held || t.class != class
	if began {
		l.sortedHolds = nil
	}
	t.class, t.model = class, d.model()
	weight, ok := h.weight(key.claim)
	t.bundled = view.bundles[key.uuid]
	t.weight, t.allocated = weight*float64(max(1, t.bundled)), h.allocated(key.claim)
	if view.charge == chargedElsewhere {
		t.weight = 0
	}
	because, uncounted := h.uncounted()
	t.uncounted = !ok || uncounted && because != uncountedShare
	p := holdInput{now: now, device: d, growth: &d.growth, attribution: d.attribution()}
	for q := range usages {
		p.uses[q] = d.use(key.claim, q, p.attribution)
	}
	if t.held && view.missing {
		t.deferUpdate(&p)
	} else {
		p.perHour, p.priced = d.prices.perHour(class)
		p.totals = l.findTotals(t)
		t.update(&p)
	}
	t.updateIdle(d.fresh, l.idleThreshold, now.Wall)
	return class, began
}

// findTotals returns the totals to which a hold is added.
func (l *ledger) findTotals(t *hold) *namespaceTotals {
	key := namespaceKey{t.key.claim.Namespace, t.class, t.model}
	totals, ok := l.totals[key]
	if !ok {
		totals = &namespaceTotals{key: key}
		l.totals[key] = totals
		l.sortedTotals = nil
	}
	return totals
}

// evict removes the holds whose grace has ended.
func (l *ledger) evict(now clock.Instant) {
	for key, t := range l.holds {
		if !t.held && now.Since(t.released) > l.grace {
			delete(l.holds, key)
			l.sortedHolds = nil
		}
	}
}

// heldClass returns the device class through which the claim holds the device;
// false if it does not.
func (l *ledger) heldClass(claim dra.ClaimRef, uuid string) (string, bool) {
	t, ok := l.holds[holdKey{claim, uuid}]
	if !ok || !t.held {
		return "", false
	}
	return t.class, true
}

// all returns the holds in the order of their rows: held ones come first, as the
// limit of series drops the last rows.
func (l *ledger) all() []*hold {
	if l.sortedHolds == nil {
		l.sortedHolds = slices.SortedFunc(maps.Values(l.holds), func(a, b *hold) int {
			return cmp.Or(compareFlags(a.held, b.held), compareClaims(a.key.claim, b.key.claim), cmp.Compare(a.key.uuid, b.key.uuid))
		})
	}
	return l.sortedHolds
}

// models returns the holds, in the order of their rows.
func (l *ledger) models() []model.Hold {
	all := l.all()
	holds := make([]model.Hold, len(all))
	accounts, reasons := make([]model.Account, 0, l.shownAccounts), make([]model.Throttling, 0, l.shownReasons)
	for i, t := range all {
		h := &holds[i]
		h.Claim, h.UUID, h.Held, h.Attribution = t.key.claim, t.key.uuid, t.held, t.attribution
		h.Utilization, h.Memory, h.HeldSeconds = t.use(usedTime), t.use(usedMemory), t.heldSeconds.model()
		if !t.uncounted {
			h.DeviceSeconds = t.deviceSeconds.model()
		}
		if t.held {
			h.Power.Value, h.Power.Known = t.device.gauge(device.Power)
			h.Allocated, h.Bundled = t.allocated, t.bundled
			if t.device.fresh {
				h.Engines = t.device.of(device.EngineActive)
			}
		}
		if t.idling {
			h.IdleSince = t.idleSince
		}
		first := len(accounts)
		for a := range t.accounts {
			if account := &t.accounts[a]; account.isOpen() {
				reasons = account.appendThrottling(reasons)
				accounts = append(accounts, account.model(model.Attribution(a), reasons))
			}
		}
		h.Accounts = accounts[first:len(accounts):len(accounts)]
	}
	l.shownAccounts, l.shownReasons = len(accounts), len(reasons)
	return holds
}

// isOpen reports whether anything is counted.
func (a *account) isOpen() bool {
	return len(a.throttled) > 0 || slices.ContainsFunc(a.tallies[:], tally.isOpen)
}

func (a *account) appendThrottling(list []model.Throttling) []model.Throttling {
	for i := range a.throttled {
		list = append(list, model.Throttling{Reason: a.throttled[i].reason, Seconds: a.throttled[i].model()})
	}
	return list
}

// model returns what is counted. The last of the reasons are those of the account.
func (a *account) model(attribution model.Attribution, reasons []model.Throttling) model.Account {
	t := &a.tallies
	return model.Account{
		Attribution: attribution, Busy: t[meterBusy].model(), Energy: t[meterEnergy].model(),
		NVLinkTransmit: t[meterNVLinkTransmit].model(), NVLinkReceive: t[meterNVLinkReceive].model(),
		PCIeTransmit: t[meterPCIeTransmit].model(), PCIeReceive: t[meterPCIeReceive].model(),
		NetworkTransmit: t[meterNetworkTransmit].model(), NetworkReceive: t[meterNetworkReceive].model(),
		ExecutionIdle: t[meterExecutionIdle].model(), ExecutionIdleEnergy: t[meterExecutionIdleEnergy].model(),
		Throttled: reasons[len(reasons)-len(a.throttled) : len(reasons) : len(reasons)],
	}
}

// totalModels returns the totals of namespaces.
func (l *ledger) totalModels() []model.Totals {
	all := l.allTotals()
	totals := make([]model.Totals, len(all))
	for i, n := range all {
		totals[i] = model.Totals{
			Namespace: n.key.namespace, Class: n.key.class, Model: n.key.model,
			DeviceSeconds: n.device.model(), SharedSeconds: n.sharedDevice.model(), BusySeconds: n.busy.model(), Energy: n.energy.model(), Cost: n.cost.model(),
		}
	}
	return totals
}

func (l *ledger) allTotals() []*namespaceTotals {
	if l.sortedTotals == nil {
		l.sortedTotals = slices.SortedFunc(maps.Values(l.totals), func(a, b *namespaceTotals) int {
			return cmp.Or(cmp.Compare(a.key.namespace, b.key.namespace), cmp.Compare(a.key.class, b.key.class), cmp.Compare(a.key.model, b.key.model))
		})
	}
	return l.sortedTotals
}

// holdKey identifies a hold: one device of one claim, by name, so that a claim
// that is recreated under its name goes on.
type holdKey struct {
	claim dra.ClaimRef
	uuid  string
}

// hold is a claim's hold of a device, and everything that it accrued. It is kept
// while the claim holds the device, and for the grace after that.
type hold struct {
	key      holdKey
	class    string
	model    string
	held     bool
	device   *deviceState  // while held
	step     uint64        // the last one of the ledger in which the claim held the device
	released clock.Instant // meaningless while held

	seen        time.Duration // elapsed time of the last step in which it certainly held the device
	broken      bool          // the attribution has changed since
	stretches   []stretch     // the newest last, for which growth is not complete yet
	attribution model.Attribution
	uses        [usages]use                 // what processes may split, each with its own attribution
	pending     [model.Attributions]float64 // busy seconds since seen, of a hold that may have ended
	bundled     int                         // number of devices of a bundle; 0: it is one device
	weight      float64
	allocated   float64   // memory, bytes; 0: unknown
	idling      bool      // it does not use the device at present
	idleSince   time.Time // since when; zero: it was busy when last seen

	heldSeconds   tally // elapsed seconds
	deviceSeconds tally // weighted seconds
	uncounted     bool  // device-seconds are not known at present
	accounts      [model.Attributions]account
}

// stretch is a span of elapsed time through which a claim held a device under
// one attribution. What happened between two stretches is not known.
type stretch struct {
	from, to    time.Duration
	attribution model.Attribution
}

// maxStretches limits what is kept of a hold while a quantity of its device is
// not measured. Growth in stretches that were removed is unattributed.
const maxStretches = 32

// account is what accrued under one attribution. While another attribution
// applies it does not change, and is never added to another account.
type account struct {
	tallies   [meters]tally
	throttled []reasonTally
}

type reasonTally struct {
	reason string
	tally
}

// holdInput is what the stages before determine about a hold in a step.
type holdInput struct {
	now         clock.Instant
	device      *deviceState
	growth      *deviceGrowth
	attribution model.Attribution
	uses        [usages]use
	perHour     float64
	priced      bool // perHour is known
	totals      *namespaceTotals
}

// update is for a step in which the claim certainly holds the device.
func (t *hold) update(p *holdInput) {
	began, elapsed, held := !t.held, p.now.Elapsed, time.Duration(0)
	for q := range usages {
		t.uses[q].update(p.uses[q], began, elapsed)
	}
	if began {
		t.idleSince, t.pending = time.Time{}, [model.Attributions]float64{}
	} else {
		held = elapsed - t.seen
	}
	if last := len(t.stretches) - 1; !began && !t.broken && t.attribution == p.attribution {
		t.stretches[last].to = elapsed
	} else {
		t.stretches = append(t.stretches, stretch{elapsed, elapsed, p.attribution})
	}
	t.held, t.broken, t.attribution, t.seen = true, false, p.attribution, elapsed
	t.accrueTime(held, p)
	t.open(p)
	t.creditGrowth(p.growth, p.now.Wall, p.totals)
	t.accrueBusy(p)
}

// deferUpdate is for a step in which the hold may have ended: its uses go on,
// and what it accrues is added when it is known whether it has.
func (t *hold) deferUpdate(p *holdInput) {
	t.broken = t.broken || t.attribution != p.attribution
	t.attribution = p.attribution
	for q := range usages {
		t.uses[q].update(p.uses[q], false, p.now.Elapsed)
	}
	use := &t.uses[usedTime]
	t.pending[use.attribution] += use.busy(&p.growth.meters[meterBusy])
}

// accrueTime adds the time for which the claim has held the device since it was
// last seen, to the hold and to the totals of its namespace.
func (t *hold) accrueTime(held time.Duration, p *holdInput) {
	now, totals := p.now.Wall, p.totals
	t.heldSeconds.add(held.Seconds(), now)
	totals.device.open(now)
	totals.sharedDevice.open(now)
	weighted := 0.0
	if !t.uncounted {
		weighted = t.weight * held.Seconds()
		t.deviceSeconds.add(weighted, now)
		totals.device.total += weighted
		if t.uses[usedTime].attribution == model.Shared {
			totals.sharedDevice.total += weighted
		}
	}
	if p.priced {
		totals.charge(p.perHour, weighted, now)
	}
}

// open opens the accounts of what the device is known to count.
func (t *hold) open(p *holdInput) {
	now, account := p.now.Wall, t.account()
	for m := meterBusy + 1; m < meters; m++ {
		if p.growth.meters[m].known {
			account.tallies[m].open(now)
		}
	}
	for i := range p.growth.throttled {
		account.reason(p.growth.throttled[i].reason).open(now)
	}
	if p.growth.meters[meterEnergy].known && t.attribution != model.Shared {
		p.totals.energy.open(now)
	}
}

// creditGrowth adds the hold's part of what the device's counters have grown by since
// they were measured before. It is also called after the hold has ended, as a
// counter may be measured after that.
func (t *hold) creditGrowth(g *deviceGrowth, now time.Time, totals *namespaceTotals) {
	for m := meterBusy + 1; m < meters; m++ {
		for a, part := range t.parts(&g.meters[m]) {
			t.accounts[a].tallies[m].add(part, now)
			if m == meterEnergy && a != model.Shared {
				totals.energy.add(part, now)
			}
		}
	}
	for i := range g.throttled {
		reason := &g.throttled[i]
		for a, part := range t.parts(&reason.growth) {
			t.accounts[a].reason(reason.reason).add(part, now)
		}
	}
	t.trim(g)
}

// parts returns the parts of a growth that fall into the stretches of the hold,
// with their attributions.
func (t *hold) parts(g *growth) iter.Seq2[model.Attribution, float64] {
	return func(yield func(model.Attribution, float64) bool) {
		if !g.grew || g.amount == 0 {
			return
		}
		for i := range t.stretches {
			s := &t.stretches[i]
			if part := g.amount * g.share(s.from, s.to); part > 0 && !yield(s.attribution, part) {
				return
			}
		}
	}
}

// trim removes the stretches before the oldest measurement since which
// something is still to grow.
func (t *hold) trim(g *deviceGrowth) {
	last := len(t.stretches)
	if t.held {
		last--
	}
	if last <= 0 {
		return
	}
	oldest := g.oldest()
	past := max(0, len(t.stretches)-maxStretches)
	for past < last && t.stretches[past].to <= oldest {
		past++
	}
	t.stretches = slices.Delete(t.stretches, 0, past)
}

// accrueBusy adds the integral of the hold's own utilization, over the same time
// as the device's, and what was deferred.
func (t *hold) accrueBusy(p *holdInput) {
	g, now := &p.growth.meters[meterBusy], p.now.Wall
	if !g.known {
		return
	}
	use := &t.uses[usedTime]
	t.pending[use.attribution] += use.busy(g)
	t.accounts[use.attribution].tallies[meterBusy].open(now)
	if use.attribution != model.Shared {
		p.totals.busy.open(now)
	}
	for a, busy := range t.pending {
		if busy > 0 {
			t.accounts[a].tallies[meterBusy].add(busy, now)
			if model.Attribution(a) != model.Shared {
				p.totals.busy.add(busy, now)
			}
			t.pending[a] = 0
		}
	}
}

// updateIdle keeps since when the claim has not used the device. A gap in the
// readings hides it and does not end it.
func (t *hold) updateIdle(fresh bool, threshold float64, now time.Time) {
	use := &t.uses[usedTime]
	known := use.known && fresh
	t.idling = known && use.value < threshold
	switch {
	case !known:
	case !t.idling:
		t.idleSince = time.Time{}
	case t.idleSince.IsZero():
		t.idleSince = now
	}
}

// release ends the hold.
func (t *hold) release(now clock.Instant) {
	t.held, t.idling, t.released, t.idleSince, t.uncounted = false, false, now, time.Time{}, false
	t.device = nil
}

// use returns what the claim uses at present.
func (t *hold) use(q usage) model.Use {
	use := &t.uses[q]
	return model.Use{Value: use.value, Known: t.held && use.known && t.device.fresh, Attribution: use.attribution}
}

// account is the one to which the present growth is added, unless processes
// split it.
func (t *hold) account() *account { return &t.accounts[t.attribution] }

// reason returns the tally of throttled time for a reason.
func (a *account) reason(name string) *reasonTally {
	for i := range a.throttled {
		if a.throttled[i].reason == name {
			return &a.throttled[i]
		}
	}
	a.throttled = append(a.throttled, reasonTally{reason: name})
	return &a.throttled[len(a.throttled)-1]
}

// namespaceKey is the labels of totals that are kept after claims end.
type namespaceKey struct {
	namespace, class, model string
}

// namespaceTotals are never removed while the process lives.
type namespaceTotals struct {
	key namespaceKey

	device, sharedDevice, busy, energy tally

	cost tally // of device-seconds, in the currency of the price list; open once a price is known

}

// charge adds what weighted device-seconds cost.
func (n *namespaceTotals) charge(perHour, seconds float64, now time.Time) {
	n.cost.add(seconds*perHour/time.Hour.Seconds(), now)
}
