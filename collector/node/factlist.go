package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// factList is facts that queries join with. A fact that does not hold any more is kept
// for the grace, as the counters are that are joined with it. A newer fact about the
// same subject replaces it at once.
type factList[T comparable] struct {
	current []T
	retired []retiredFact[T]
}

type retiredFact[T comparable] struct {
	fact  T
	since clock.Instant // when it ceased to hold
}

// update applies the facts that hold now. sameSubject reports whether two facts are
// about the same subject. It reports whether the facts are others than before.
func (l *factList[T]) update(current []T, now clock.Instant, sameSubject func(a, b T) bool) (changed bool) {
	if slices.Equal(l.current, current) {
		return false
	}
	for _, fact := range l.current {
		l.retired = append(l.retired, retiredFact[T]{fact, now})
	}
	l.retired = slices.DeleteFunc(l.retired, func(r retiredFact[T]) bool {
		return slices.ContainsFunc(current, func(fact T) bool { return sameSubject(r.fact, fact) })
	})
	l.current = current
	return true
}

// evict removes the facts that have not held for longer than the grace, and reports
// whether there were any.
func (l *factList[T]) evict(now clock.Instant, grace time.Duration) (removed bool) {
	count := len(l.retired)
	l.retired = slices.DeleteFunc(l.retired, func(r retiredFact[T]) bool { return now.Since(r.since) > grace })
	return len(l.retired) < count
}

// past returns the facts that do not hold any more.
func (l *factList[T]) past() []T {
	var facts []T
	for i := range l.retired {
		facts = append(facts, l.retired[i].fact)
	}
	return facts
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
