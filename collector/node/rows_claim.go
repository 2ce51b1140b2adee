package node

import (
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

func (b *rowBuilder) claimRows(tenures []*hold, units map[string]*deviceState, config Config) {
	f := b.families
	for _, t := range tenures {
		t.label(f, units[t.key.uuid], config.Node)
	}
	b.In(f.claimHeld)
	for _, t := range tenures {
		if t.held {
			b.Add(t.labels, 1)
		}
	}
	b.In(f.claimHeldSeconds)
	for _, t := range tenures {
		b.addTally(t.labels, t.heldSeconds)
	}
	b.In(f.claimDeviceSeconds)
	for _, t := range tenures {
		if !t.uncounted {
			b.addTally(t.labels, t.deviceSeconds)
		}
	}
	b.In(f.claimAllocated)
	for _, t := range tenures {
		if t.held && t.allocated > 0 {
			b.Add(t.labels, t.allocated)
		}
	}
	b.claimGauges(tenures, units)
	b.claimCounters(tenures)
}

// claimGauges shows what each holder gets at this moment.
func (b *rowBuilder) claimGauges(tenures []*hold, units map[string]*deviceState) {
	f := b.families
	for q := range usages {
		b.In([usages]*metric.Family{usedTime: f.claimUtilization, usedMemory: f.claimMemory}[q])
		for _, t := range tenures {
			if use := &t.uses[q]; t.held && use.known && units[t.key.uuid].fresh {
				b.Add(t.accounts[use.attribution].labels, use.value)
			}
		}
	}
	b.In(f.claimPower)
	for _, t := range tenures {
		if !t.held {
			continue
		}
		if value, known := units[t.key.uuid].gauge(device.Power); known {
			b.Add(t.account().labels, value)
		}
	}
	b.In(f.claimEngine)
	for _, t := range tenures {
		if u := units[t.key.uuid]; t.held && u.fresh {
			for i, reading := range u.of(device.EngineActive) {
				b.Add(t.account().engines[i], reading.Value)
			}
		}
	}
	b.In(f.claimIdle)
	for _, t := range tenures {
		if t.idling {
			b.Add(t.accounts[t.uses[usedTime].attribution].labels, float64(t.idleSince.UnixMilli())/1000)
		}
	}
}

// claimCounters shows what each tenure accrued, under every attribution that
// it ever had.
func (b *rowBuilder) claimCounters(tenures []*hold) {
	f := b.families
	for m := range f.claimMeter {
		b.In(f.claimMeter[m])
		for _, t := range tenures {
			for a := range t.accounts {
				b.addTally(t.accounts[a].labels, t.accounts[a].tallies[m])
			}
		}
	}
	b.In(f.claimThrottled)
	for _, t := range tenures {
		for a := range t.accounts {
			for i := range t.accounts[a].throttled {
				b.addTally(t.accounts[a].throttled[i].labels, t.accounts[a].throttled[i].tally)
			}
		}
	}
}

// account is the one that accrues at present what processes do not split.
func (t *hold) account() *account { return &t.accounts[t.attribution] }

// label makes the labels of the tenure and of its present account, or keeps
// them.
func (t *hold) label(f *families, u *deviceState, node string) {
	claim := t.key.claim
	if t.labels == nil {
		t.labels = metric.NewLabels(f.claimHeld.Labels, node, claim.Namespace, claim.Name, t.key.uuid)
	}
	more := func(family *metric.Family, of attribution, values ...string) *metric.Labels {
		return metric.NewLabels(family.Labels, append([]string{node, claim.Namespace, claim.Name, t.key.uuid, of.String()}, values...)...)
	}
	for of := range attributions {
		account := &t.accounts[of]
		used := of == t.attribution || of == t.uses[usedTime].attribution || of == t.uses[usedMemory].attribution
		if used && account.labels == nil {
			account.labels = more(f.claimUtilization, of)
		}
		for i := range account.throttled {
			if account.throttled[i].labels == nil {
				account.throttled[i].labels = more(f.claimThrottled, of, account.throttled[i].reason)
			}
		}
	}
	if !t.held {
		return
	}
	a := t.account()
	for i, reading := range u.of(device.EngineActive) {
		if i < len(a.engines) && sameReading(a.slotted[i], reading) {
			continue
		}
		a.engines, a.slotted = a.engines[:min(i, len(a.engines))], a.slotted[:min(i, len(a.slotted))]
		a.engines, a.slotted = append(a.engines, more(f.claimEngine, t.attribution, reading.Details[0])), append(a.slotted, reading)
	}
}
