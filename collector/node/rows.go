package node

import (
	"cmp"
	"maps"
	"slices"
	"time"

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
	s.devices.infoRows(b)
	b.holderRows(s.devices.all())
	s.devices.readingRows(b)
	b.busyRows(s.devices.all())
	b.strayRows(s.devices.all())
	b.podRows(s.devices.all(), s.config)
	b.healthRows(s)
	b.claimRows(s.order.tenures, s.devices.byUUID, s.config)
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
	tenures []*hold
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
		tenures: make([]*hold, 0, len(s.tenures)),
		records: make([]*record, 0, len(s.records)),
		totals:  make([]namespaceEntry, 0, len(s.totals)),
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
	slices.SortFunc(o.tenures, func(a, b *hold) int {
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

// infoRows are facts to join on. A fact that does not hold any more stays for
// the grace, because the counters that are joined with it do; a newer fact
// about the same thing replaces it at once.
type infoRows[T comparable] struct {
	live, retired []infoRow[T]
	current       []T // what live was made from
}

type infoRow[T comparable] struct {
	says    T
	labels  *metric.Labels
	retired clock.Instant
}

// update takes in what holds now. about tells whether two facts are about the
// same thing; label is asked for facts that are new.
func (r *infoRows[T]) update(current []T, now clock.Instant, about func(a, b T) bool, label func(T) *metric.Labels) {
	if slices.Equal(r.current, current) {
		return
	}
	before := slices.Concat(r.live, r.retired)
	live := make([]infoRow[T], len(current))
	for i, says := range current {
		if at := slices.IndexFunc(before, func(row infoRow[T]) bool { return row.says == says }); at >= 0 {
			live[i] = infoRow[T]{says: says, labels: before[at].labels}
		} else {
			live[i] = infoRow[T]{says: says, labels: label(says)}
		}
	}
	replaced := func(row infoRow[T]) bool {
		return slices.ContainsFunc(current, func(says T) bool { return about(row.says, says) })
	}
	for i := range r.live {
		r.live[i].retired = now
	}
	r.retired = slices.DeleteFunc(append(r.retired, r.live...), replaced)
	r.live, r.current = live, current
}

// forget drops what has been retired for longer than the grace.
func (r *infoRows[T]) forget(now clock.Instant, grace time.Duration) {
	r.retired = slices.DeleteFunc(r.retired, func(row infoRow[T]) bool { return now.Since(row.retired) > grace })
}

// addTo shows what holds, and what is remembered as past: all of it, unless
// what the facts are about is there.
func (r *infoRows[T]) addTo(b *rowBuilder, live bool) {
	for i := range r.live {
		b.addFact(r.live[i].labels, live)
	}
	for i := range r.retired {
		b.addFact(r.retired[i].labels, false)
	}
}

// one is 1 for the state that holds and 0 for the others.
func one(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

func flag(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
