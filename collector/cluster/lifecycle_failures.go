package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Reasons of failures that are no reasons to wait.
const (
	failureBinding     = "binding_failed"
	failurePreparation = "preparation_failed"
	failureCreation    = "claim_creation_failed"
)

// maxClasses is how many classes have counters and histograms that are not
// known to exist. A claim may name any class, so that who may make claims could
// otherwise fill the memory with names.
const maxClasses = 1000

// failures counts what went wrong with claims, by device class and reason. The
// counters of a class exist from 0 once the class is known to be used.
type failures struct {
	counts  map[failureKey]*failureCount
	classes map[string]bool
	supply  *dra.Supply     // has the classes that exist; nil: not known
	order   []*failureCount // as pages show them; nil: to be made anew
	owed    []owed
}

type failureKey struct{ class, reason string }

type failureCount struct {
	key    failureKey
	total  float64
	start  time.Time
	labels *metric.Labels
}

func newFailures() failures {
	return failures{counts: make(map[failureKey]*failureCount), classes: make(map[string]bool)}
}

// failureReasons is the closed set. To wait at a gate or for an unknown reason
// is no failure.
func failureReasons() []string {
	var reasons []string
	for _, reason := range dra.PendingReasons() {
		if isFailure(reason) {
			reasons = append(reasons, string(reason))
		}
	}
	return append(reasons, failureBinding, failurePreparation, failureCreation)
}

// open has the counters of a class begin at 0, unless they have, or there are
// too many.
func (f *failures) open(class string, at time.Time) {
	if f.classes[class] || (len(f.classes) >= maxClasses && !f.exists(class)) {
		return
	}
	f.classes[class] = true
	for _, reason := range failureReasons() {
		f.counts[failureKey{class, reason}] = &failureCount{key: failureKey{class, reason}, start: at}
	}
	f.order = nil
}

// exists reports whether the class is known to exist, not merely named.
func (f *failures) exists(class string) bool {
	if f.supply == nil {
		return false
	}
	_, found := slices.BinarySearchFunc(f.supply.Classes, class, func(known dra.ClassSupply, name string) int {
		return cmp.Compare(known.Class, name)
	})
	return found
}

// add counts failures, those of a class that there is no room for with those
// whose class is not known; a reason outside the closed set is not counted.
func (f *failures) add(class, reason string, count int64, at time.Time) {
	if f.open(class, at); !f.classes[class] {
		class = ""
	}
	if counter, known := f.counts[failureKey{class, reason}]; known {
		counter.total += float64(count)
	}
}

// failureRows adds the counters of all classes.
func (s *State) failureRows() {
	f := &s.failures
	if f.order == nil {
		f.order = slices.SortedFunc(maps.Values(f.counts), func(a, b *failureCount) int {
			return cmp.Or(cmp.Compare(a.key.class, b.key.class), cmp.Compare(a.key.reason, b.key.reason))
		})
	}
	s.rows.In(s.families.failures)
	for _, counter := range f.order {
		if counter.labels == nil {
			counter.labels = metric.NewLabels(s.families.failures.Labels, counter.key.class, counter.key.reason)
		}
		s.rows.AddFrom(counter.labels, counter.total, counter.start)
	}
}
