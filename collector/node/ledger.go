package node

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// ledger keeps what each claim got of each device that it holds, and the totals
// of each namespace.
type ledger struct {
	node          string
	grace         time.Duration
	idleThreshold float64 // utilization ratio

	devices  *devices
	holders  *holders
	counters *counters
	splits   *splits
	prices   *prices

	holds  map[holdKey]*hold
	totals map[namespaceKey]*namespaceTotals

	sortedHolds  []*hold            // held ones first; nil: outdated
	sortedTotals []*namespaceTotals // nil: outdated
}

func newLedger(config Config, devices *devices, holders *holders, counters *counters, splits *splits, prices *prices) *ledger {
	return &ledger{
		node: config.Node, grace: config.Grace, idleThreshold: config.IdleThreshold,
		devices: devices, holders: holders, counters: counters, splits: splits, prices: prices,
		holds: make(map[holdKey]*hold), totals: make(map[namespaceKey]*namespaceTotals),
	}
}

// update adds what every hold got since the last step. It returns the classes of
// the holds that began or have another class now.
func (l *ledger) update(views []claimView, now clock.Instant) (begun []string) {
	held := make(map[holdKey]bool, len(l.holds))
	for i := range views {
		view := &views[i]
		for _, d := range view.devices {
			key := holdKey{view.ref, d.uuid}
			if d.admin || held[key] {
				continue
			}
			held[key] = true
			if class, began := l.updateHold(key, view, now); began {
				begun = append(begun, class)
			}
		}
	}
	for key, t := range l.holds {
		if held[key] {
			continue
		}
		if t.held {
			t.release(now)
			l.sortedHolds = nil
		}
		if d := l.devices.get(key.uuid); d != nil && len(t.stretches) > 0 {
			t.settle(l.counters.of(d), now.Wall, l.totalsOf(t))
		}
	}
	return begun
}

func (l *ledger) updateHold(key holdKey, view *claimView, now clock.Instant) (class string, began bool) {
	t, known := l.holds[key]
	if !known {
		t = &hold{key: key}
		l.holds[key] = t
	}
	d, h := l.devices.get(key.uuid), l.holders.get(key.uuid)
	class = view.classOn(key.uuid)
	began = !t.held || t.class != class
	if began {
		l.sortedHolds = nil
	}
	t.class, t.model = class, d.model()
	t.weight, t.allocated = h.weight(key.claim), h.allocated(key.claim)
	if view.charge == chargedElsewhere {
		t.weight = 0
	}
	_, t.uncounted = h.uncounted()
	p := present{now: now, device: d, growth: l.counters.of(d), attribution: h.attribution()}
	for q := range usages {
		p.uses[q] = l.splits.use(h, key.claim, q, p.attribution)
	}
	if t.held && view.missing {
		t.deferUpdate(&p)
	} else {
		p.perHour, p.priced = l.prices.perHour(d, class)
		p.totals = l.totalsOf(t)
		t.update(&p)
	}
	t.updateIdle(d.fresh, l.idleThreshold, now.Wall)
	return class, began
}

// totalsOf returns the totals to which a hold is added.
func (l *ledger) totalsOf(t *hold) *namespaceTotals {
	key := namespaceKey{t.key.claim.Namespace, t.class, t.model}
	totals, known := l.totals[key]
	if !known {
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

// classOf returns the device class through which the claim holds the device;
// false if it does not.
func (l *ledger) classOf(claim dra.ClaimRef, uuid string) (string, bool) {
	t, known := l.holds[holdKey{claim, uuid}]
	if !known || !t.held {
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

func (l *ledger) allTotals() []*namespaceTotals {
	if l.sortedTotals == nil {
		l.sortedTotals = slices.SortedFunc(maps.Values(l.totals), func(a, b *namespaceTotals) int {
			return cmp.Or(cmp.Compare(a.key.namespace, b.key.namespace), cmp.Compare(a.key.class, b.key.class), cmp.Compare(a.key.model, b.key.model))
		})
	}
	return l.sortedTotals
}

// claimRows adds what claims hold, use and accrued.
func (l *ledger) claimRows(b *rowBuilder) {
	f, holds := b.families, l.all()
	for _, t := range holds {
		var engines []device.Reading
		if t.held {
			engines = l.devices.get(t.key.uuid).of(device.EngineActive)
		}
		t.label(f, l.node, engines)
	}
	b.In(f.claimHeld)
	for _, t := range holds {
		if t.held {
			b.Add(t.labels, 1)
		}
	}
	b.In(f.claimHeldSeconds)
	for _, t := range holds {
		b.addTally(t.labels, t.heldSeconds)
	}
	b.In(f.claimDeviceSeconds)
	for _, t := range holds {
		if !t.uncounted {
			b.addTally(t.labels, t.deviceSeconds)
		}
	}
	b.In(f.claimAllocated)
	for _, t := range holds {
		if t.held && t.allocated > 0 {
			b.Add(t.labels, t.allocated)
		}
	}
	l.gaugeRows(b, holds)
	l.counterRows(b, holds)
}

// gaugeRows adds what each claim uses at present.
func (l *ledger) gaugeRows(b *rowBuilder, holds []*hold) {
	f := b.families
	for q := range usages {
		b.In([usages]*metric.Family{usedTime: f.claimUtilization, usedMemory: f.claimMemory}[q])
		for _, t := range holds {
			if use := &t.uses[q]; t.held && use.known && l.devices.get(t.key.uuid).fresh {
				b.Add(t.accounts[use.attribution].labels, use.value)
			}
		}
	}
	b.In(f.claimPower)
	for _, t := range holds {
		if !t.held {
			continue
		}
		if value, known := l.devices.get(t.key.uuid).gauge(device.Power); known {
			b.Add(t.account().labels, value)
		}
	}
	b.In(f.claimEngine)
	for _, t := range holds {
		if !t.held {
			continue
		}
		if d := l.devices.get(t.key.uuid); d.fresh {
			for i, reading := range d.of(device.EngineActive) {
				b.Add(t.account().engines[i], reading.Value)
			}
		}
	}
	b.In(f.claimIdle)
	for _, t := range holds {
		if t.idling {
			b.Add(t.accounts[t.uses[usedTime].attribution].labels, float64(t.idleSince.UnixMilli())/1000)
		}
	}
}

// counterRows adds what each hold accrued, under every attribution that it ever
// had.
func (l *ledger) counterRows(b *rowBuilder, holds []*hold) {
	f := b.families
	for m := range f.claimMeter {
		b.In(f.claimMeter[m])
		for _, t := range holds {
			for a := range t.accounts {
				b.addTally(t.accounts[a].labels, t.accounts[a].tallies[m])
			}
		}
	}
	b.In(f.claimThrottled)
	for _, t := range holds {
		for a := range t.accounts {
			for i := range t.accounts[a].throttled {
				b.addTally(t.accounts[a].throttled[i].labels, t.accounts[a].throttled[i].tally)
			}
		}
	}
}

// namespaceRows adds the totals of namespaces.
func (l *ledger) namespaceRows(b *rowBuilder) {
	f, all := b.families, l.allTotals()
	for _, n := range all {
		if n.labels == nil {
			n.labels = metric.NewLabels(f.namespaceDevice.Labels, l.node, n.key.namespace, n.key.class, n.key.model)
		}
	}
	for _, row := range []struct {
		family *metric.Family
		of     func(*namespaceTotals) tally
	}{
		{f.namespaceDevice, func(n *namespaceTotals) tally { return n.device }},
		{f.namespaceShared, func(n *namespaceTotals) tally { return n.sharedDevice }},
		{f.namespaceBusy, func(n *namespaceTotals) tally { return n.busy }},
		{f.namespaceEnergy, func(n *namespaceTotals) tally { return n.energy }},
	} {
		b.In(row.family)
		for _, n := range all {
			b.addTally(n.labels, row.of(n))
		}
	}
}

// costRows adds what the device-seconds of namespaces cost.
func (l *ledger) costRows(b *rowBuilder) {
	family := b.families.namespaceCost
	b.In(family)
	for _, n := range l.allTotals() {
		if n.cost.isOpen() && n.costLabels == nil {
			n.costLabels = metric.NewLabels(family.Labels, l.node, n.key.namespace, n.key.class, n.key.model, l.prices.currency())
		}
		b.addTally(n.costLabels, n.cost)
	}
}
