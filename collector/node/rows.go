package node

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// rowBuilder writes the state down.
type rowBuilder struct {
	*metric.Builder
	families *families
	states   [processStates]*metric.Labels // of dra_exporter_process_attribution

	plain       *metric.Labels // none
	ofUnmatched [2]*metric.Labels
	ofUncounted [uncountedReasons]*metric.Labels
}

func newRowBuilder(config Config) rowBuilder {
	families := newFamilies()
	families.addPodLabels(config.PodLabels)
	b := rowBuilder{Builder: metric.NewBuilder(config.MaxSeries, families.self.Dropped), families: families, plain: metric.NewLabels(nil)}
	for i, side := range []string{"published", "hardware"} {
		b.ofUnmatched[i] = metric.NewLabels(families.unmatched.Labels, side)
	}
	for because := range uncountedReasons {
		b.ofUncounted[because] = metric.NewLabels(families.uncounted.Labels, because.String())
	}
	return b
}

func (b *rowBuilder) addTally(labels *metric.Labels, t tally) {
	if t.isOpen() {
		b.AddFrom(labels, t.total, t.start)
	}
}

// addFact adds an info row, of what holds or of what has ended.
func (b *rowBuilder) addFact(labels *metric.Labels, holds bool) {
	if holds {
		b.Add(labels, 1)
		return
	}
	b.AddPast(labels, 1)
}

// allRows writes down the state: device truth first, then claims, facts to
// join on, totals, and the exporter itself.
func (s *State) allRows(facts Facts, now clock.Instant) []metric.Row {
	b := &s.rows
	b.Begin()
	s.arrange()
	b.deviceRows(s.order.units, s.config)
	b.healthRows(s)
	b.claimRows(s.order.tenures, s.units, s.config)
	b.factRows(s.order.records, &s.plugins)
	b.namespaceRows(s.order.totals, s.config)
	b.costRows(s)
	b.processRows(s, facts)
	b.exporterRows(s, facts, now)
	return b.Rows()
}

// ordered lists everything in the order in which pages show it, so that the
// same state always gives the same page. What is held comes first: a cap drops
// what is only remembered.
type ordered struct {
	units   []*unit
	tenures []*tenure
	records []*record
	totals  []namespaceEntry
	classes []string // that violations are counted for
}

type namespaceEntry struct {
	key    namespaceKey
	totals *namespaceTotals
}

// arrange makes the order anew where something came or went.
func (s *State) arrange() {
	if s.reorder {
		s.order, s.reorder = s.inOrder(), false
	}
}

func (s *State) inOrder() ordered {
	o := ordered{
		units:   make([]*unit, 0, len(s.units)),
		tenures: make([]*tenure, 0, len(s.tenures)),
		records: make([]*record, 0, len(s.records)),
		totals:  make([]namespaceEntry, 0, len(s.totals)),
	}
	for _, u := range s.units {
		o.units = append(o.units, u)
	}
	for _, t := range s.tenures {
		o.tenures = append(o.tenures, t)
	}
	for _, r := range s.records {
		o.records = append(o.records, r)
	}
	for key, totals := range s.totals {
		o.totals = append(o.totals, namespaceEntry{key, totals})
	}
	o.classes = slices.Sorted(maps.Keys(s.violations))
	slices.SortFunc(o.units, func(a, b *unit) int { return cmp.Compare(a.uuid, b.uuid) })
	slices.SortFunc(o.tenures, func(a, b *tenure) int {
		return cmp.Or(compareFlags(a.held, b.held), compareClaims(a.key.claim, b.key.claim), cmp.Compare(a.key.uuid, b.key.uuid))
	})
	slices.SortFunc(o.records, func(a, b *record) int {
		return cmp.Or(compareFlags(a.live, b.live), compareClaims(a.ref, b.ref))
	})
	slices.SortFunc(o.totals, func(a, b namespaceEntry) int {
		return cmp.Or(cmp.Compare(a.key.namespace, b.key.namespace), cmp.Compare(a.key.class, b.key.class), cmp.Compare(a.key.model, b.key.model))
	})
	return o
}

// compareFlags puts true first.
func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func compareClaims(a, b dra.ClaimRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
