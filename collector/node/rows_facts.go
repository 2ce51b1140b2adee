package node

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func (b *rowBuilder) factRows(records []*record, plugins *plugins) {
	f := b.families
	b.in(f.claimInfo)
	for _, r := range records {
		b.add(r.labels, 1)
	}
	b.in(f.claimDeviceInfo)
	for _, r := range records {
		r.devices.addTo(b)
	}
	b.in(f.claimConsumerInfo)
	for _, r := range records {
		r.consumers.addTo(b)
	}
	b.in(f.pluginConsumerInfo)
	plugins.rows.addTo(b)
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
		b.in(row.family)
		for _, e := range entries {
			b.addTally(e.totals.labels, row.of(e.totals))
		}
	}
}

// exporterRows is what the exporter says of itself. It comes last, because
// it tells what the caps dropped before.
func (b *rowBuilder) exporterRows(s *State, facts Facts, now clock.Instant) {
	f := b.families
	b.in(f.buildInfo)
	v := s.config.Version
	b.add(metric.NewLabels(f.buildInfo.Labels, v.Version, v.Revision, v.GoVersion), 1)
	b.sourceRows(facts.Sources)
	b.in(f.sampleTime)
	if newest := s.newestSample(); !newest.IsZero() {
		b.add(metric.NewLabels(nil), float64(newest.Wall.UnixMilli())/1000)
	}
	b.in(f.unmatched)
	b.add(metric.NewLabels(f.unmatched.Labels, "published"), float64(s.unmatched.published))
	b.add(metric.NewLabels(f.unmatched.Labels, "hardware"), float64(s.unmatched.hardware))
	b.in(f.resets)
	b.addTally(metric.NewLabels(nil), s.resets)
	b.in(f.dropped)
	for _, family := range slices.SortedFunc(maps.Keys(s.dropped), func(a, b *metric.Family) int { return cmp.Compare(a.Name, b.Name) }) {
		b.add(metric.NewLabels(f.dropped.Labels, family.Name), s.dropped[family])
	}
}

func (b *rowBuilder) sourceRows(sources []source.Status) {
	f := b.families
	labels := make([]*metric.Labels, len(sources))
	for i, status := range sources {
		labels[i] = metric.NewLabels(f.sourceUp.Labels, status.Name)
	}
	b.in(f.sourceUp)
	for i, status := range sources {
		up := 0.0
		if status.Up {
			up = 1
		}
		b.add(labels[i], up)
	}
	b.in(f.sourceError)
	for _, status := range sources {
		if status.Reason != source.ReasonNone {
			b.add(metric.NewLabels(f.sourceError.Labels, status.Name, string(status.Reason)), 1)
		}
	}
	b.in(f.sourceSuccess)
	for i, status := range sources {
		if !status.LastSuccess.IsZero() {
			b.add(labels[i], float64(status.LastSuccess.Wall.UnixMilli())/1000)
		}
	}
	b.in(f.sourceErrors)
	for i, status := range sources {
		b.add(labels[i], float64(status.Errors))
	}
}

// newestSample is when any device was last read.
func (s *State) newestSample() clock.Instant {
	var newest clock.Instant
	for _, u := range s.units {
		if u.at.Elapsed > newest.Elapsed {
			newest = u.at
		}
	}
	return newest
}
