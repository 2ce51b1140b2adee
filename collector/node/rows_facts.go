package node

import (
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

func (b *rowBuilder) factRows(records []*record, plugins *plugins) {
	f := b.families
	b.In(f.claimInfo)
	for _, r := range records {
		b.addFact(r.labels, r.live)
	}
	b.In(f.claimDeviceInfo)
	for _, r := range records {
		r.devices.addTo(b, r.live)
	}
	b.In(f.claimConsumerInfo)
	for _, r := range records {
		r.consumers.addTo(b, r.live)
	}
	b.In(f.pluginConsumerInfo)
	plugins.rows.addTo(b, true)
}

func (b *rowBuilder) namespaceRows(entries []namespaceEntry, config Config) {
	f := b.families
	for _, e := range entries {
		if e.totals.labels == nil {
			e.totals.labels = metric.NewLabels(f.namespaceDevice.Labels, config.Node, e.key.namespace, e.key.class, e.key.model)
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
		for _, e := range entries {
			b.addTally(e.totals.labels, row.of(e.totals))
		}
	}
}

// exporterRows is what the exporter says of itself. It comes last, because
// it tells what the caps dropped before.
func (b *rowBuilder) exporterRows(s *State, facts Facts, now clock.Instant) {
	f := b.families
	f.self.Rows(b.Builder, s.config.Version, facts.Sources)
	s.devices.sampleRows(b)
	b.In(f.unmatched)
	b.Add(b.ofUnmatched[0], float64(s.unmatched.published))
	b.Add(b.ofUnmatched[1], float64(s.unmatched.hardware))
	b.In(f.conflicting)
	b.Add(b.plain, float64(len(s.unmatched.conflicting)))
	uncounted := [uncountedReasons]int{}
	for _, u := range s.devices.byUUID {
		if because, is := u.holders.uncounted(); is {
			uncounted[because]++
		}
	}
	b.In(f.uncounted)
	for because := range uncountedReasons {
		b.Add(b.ofUncounted[because], float64(uncounted[because]))
	}
	b.In(f.resets)
	b.addTally(b.plain, s.resets)
	f.self.DroppedRows(b.Builder)
}
