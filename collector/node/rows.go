package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// rowBuilder collects the rows of a snapshot.
type rowBuilder struct {
	*metric.Builder
	families *families
	plain    *metric.Labels // none
	access   *metric.Labels // nil: the access mode is unknown
}

func newRowBuilder(config Config, f *families) *rowBuilder {
	b := &rowBuilder{Builder: metric.NewBuilder(config.MaxSeries, f.self.Dropped), families: f, plain: metric.NewLabels(nil)}
	if config.Access.Mode != "" {
		b.access = metric.NewLabels(f.accessMode.Labels, config.Access.Mode, config.Access.Reason)
	}
	return b
}

// accessRows adds how the agent has access to GPUs.
func (b *rowBuilder) accessRows() {
	b.In(b.families.accessMode)
	if b.access != nil {
		b.Add(b.access, 1)
	}
}

func (b *rowBuilder) addTally(labels *metric.Labels, t tally) {
	if t.isOpen() {
		b.AddFrom(labels, t.total, t.start)
	}
}

// addFact adds an info row: a past one if its fact does not hold any more.
func (b *rowBuilder) addFact(labels *metric.Labels, holds bool) {
	if holds {
		b.Add(labels, 1)
		return
	}
	b.AddPast(labels, 1)
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

// infoRows are facts that queries join with. A fact that does not hold any more
// is kept for the grace, as the counters are that are joined with it. A newer
// fact about the same subject replaces it at once.
type infoRows[T comparable] struct {
	live, retired []infoRow[T]
	current       []T // what live was made from
}

type infoRow[T comparable] struct {
	fact    T
	labels  *metric.Labels
	retired clock.Instant // since when the fact does not hold
}

// update applies the facts that hold now. sameSubject reports whether two facts
// are about the same subject; label returns the labels of a new fact. It reports
// whether the facts are others than before.
func (r *infoRows[T]) update(current []T, now clock.Instant, sameSubject func(a, b T) bool, label func(T) *metric.Labels) (changed bool) {
	if slices.Equal(r.current, current) {
		return false
	}
	previous := slices.Concat(r.live, r.retired)
	live := make([]infoRow[T], len(current))
	for i, fact := range current {
		if at := slices.IndexFunc(previous, func(row infoRow[T]) bool { return row.fact == fact }); at >= 0 {
			live[i] = infoRow[T]{fact: fact, labels: previous[at].labels}
		} else {
			live[i] = infoRow[T]{fact: fact, labels: label(fact)}
		}
	}
	replaced := func(row infoRow[T]) bool {
		return slices.ContainsFunc(current, func(fact T) bool { return sameSubject(row.fact, fact) })
	}
	for i := range r.live {
		r.live[i].retired = now
	}
	r.retired = slices.DeleteFunc(append(r.retired, r.live...), replaced)
	r.live, r.current = live, current
	return true
}

// evict removes the facts that have not held for longer than the grace, and reports
// whether there were any.
func (r *infoRows[T]) evict(now clock.Instant, grace time.Duration) (removed bool) {
	count := len(r.retired)
	r.retired = slices.DeleteFunc(r.retired, func(row infoRow[T]) bool { return now.Since(row.retired) > grace })
	return len(r.retired) < count
}

// past returns the facts that do not hold any more.
func (r *infoRows[T]) past() []T {
	var facts []T
	for i := range r.retired {
		facts = append(facts, r.retired[i].fact)
	}
	return facts
}

// addTo adds the rows. If their subject is not there any more, all are past.
func (r *infoRows[T]) addTo(b *rowBuilder, live bool) {
	for i := range r.live {
		b.addFact(r.live[i].labels, live)
	}
	for i := range r.retired {
		b.addFact(r.retired[i].labels, false)
	}
}

// one returns 1 for true and 0 for false.
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
