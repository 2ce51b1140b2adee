package node

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

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
