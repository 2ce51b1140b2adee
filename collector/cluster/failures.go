package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Reasons of failures that are not reasons of pending references.
const (
	failureBinding     = "binding_failed"
	failurePreparation = "preparation_failed"
	failureCreation    = "claim_creation_failed"
)

// maxClasses is the number of device classes that have counters and histograms
// without being known to exist. A claim may name any class: without a limit,
// names of classes could fill the memory.
const maxClasses = 1000

// deferDelay is how long a failure waits until its class is known: a claim that
// does not exist must have been diagnosed first.
const deferDelay = 10 * time.Second

// failures counts failures of claims, by device class and reason. The counters
// of a class exist from 0 once the class is known to be used.
type failures struct {
	counts   map[failureKey]*failureCount
	classes  map[string]bool
	supply   *dra.Supply     // has the classes that exist; nil: not known
	order    []*failureCount // as output; nil: must be sorted again
	deferred []deferredFailure
}

type failureKey struct{ class, reason string }

type failureCount struct {
	key    failureKey
	total  float64
	start  time.Time
	labels *metric.Labels
}

// deferredFailure is a failure to create or prepare a claim that is not counted
// yet. Its Kubernetes event may be observed before the pod that it is about, and
// before the claim.
type deferredFailure struct {
	warning  *dra.Warning
	count    int64
	observed clock.Instant
}

func newFailures() *failures {
	return &failures{counts: make(map[failureKey]*failureCount), classes: make(map[string]bool)}
}

// failureReasons is the closed set of reasons.
func failureReasons() []string {
	var reasons []string
	for _, reason := range dra.PendingReasons() {
		if isFailure(reason) {
			reasons = append(reasons, string(reason))
		}
	}
	return append(reasons, failureBinding, failurePreparation, failureCreation)
}

// begin begins a step, with the device classes that exist.
func (f *failures) begin(supply *dra.Supply, now time.Time) {
	f.addClass("", now) // of what fails before its class is known
	f.supply = supply
}

// addClass starts the counters of a class at 0, unless they exist, or there are
// too many.
func (f *failures) addClass(class string, at time.Time) {
	if f.classes[class] || (len(f.classes) >= maxClasses && !f.exists(class)) {
		return
	}
	f.classes[class] = true
	for _, reason := range failureReasons() {
		f.counts[failureKey{class, reason}] = &failureCount{key: failureKey{class, reason}, start: at}
	}
	f.order = nil
}

// exists reports whether the class is known to exist.
func (f *failures) exists(class string) bool {
	if f.supply == nil {
		return false
	}
	_, found := slices.BinarySearchFunc(f.supply.Classes, class, func(known dra.ClassSupply, name string) int {
		return cmp.Compare(known.Class, name)
	})
	return found
}

// evictClass removes the counters of a class if they are all 0. It reports
// whether there were any.
func (f *failures) evictClass(class string) bool {
	if !f.classes[class] {
		return false
	}
	for _, reason := range failureReasons() {
		if f.counts[failureKey{class, reason}].total > 0 {
			return false
		}
	}
	for _, reason := range failureReasons() {
		delete(f.counts, failureKey{class, reason})
	}
	delete(f.classes, class)
	f.order = nil
	return true
}

// add counts failures. Those of a class that has no counters count without a
// class; a reason outside the closed set is not counted.
func (f *failures) add(class, reason string, count int64, at time.Time) {
	if f.addClass(class, at); !f.classes[class] {
		class = ""
	}
	if counter, known := f.counts[failureKey{class, reason}]; known {
		counter.total += float64(count)
	}
}

// applyWarning counts a Kubernetes event that was observed live. class is that of
// the claims that it reports; while it is empty, the event waits for flush.
func (f *failures) applyWarning(u *update, class string) {
	switch {
	case !u.Live || u.occurrences == 0:
	case class == "":
		f.deferred = append(f.deferred, deferredFailure{u.Warning, u.occurrences, u.At})
	default:
		f.add(class, warningFailure(u.Warning), u.occurrences, u.At.Wall)
	}
}

// domainText is part of the error with which NVIDIA's driver has a pod wait until the
// IMEX daemon on its node is ready (sigs.k8s.io/dra-driver-nvidia-gpu v0.4.1,
// cmd/compute-domain-kubelet-plugin).
const domainText = "node not ready in ComputeDomain"

// warningFailure is the reason with which the failure that a Kubernetes event
// reports is counted.
func warningFailure(warning *dra.Warning) string {
	switch {
	case warning.Kind == dra.WarningCreation:
		return failureCreation
	case strings.Contains(warning.Message, domainText):
		return string(dra.ReasonComputeDomain)
	default:
		return failurePreparation
	}
}

// flush counts the deferred failures whose class is known by now, or will not
// be. It runs after pending was updated.
func (f *failures) flush(p *pending, now clock.Instant) {
	f.deferred = slices.DeleteFunc(f.deferred, func(d deferredFailure) bool {
		class := p.warningClass(d.warning)
		if class == "" && now.Since(d.observed) < deferDelay {
			return false
		}
		f.add(class, warningFailure(d.warning), d.count, now.Wall)
		return true
	})
}

// rows adds the counters of all classes.
func (f *failures) rows(b *metric.Builder, family *metric.Family) {
	if f.order == nil {
		f.order = slices.SortedFunc(maps.Values(f.counts), func(a, b *failureCount) int {
			return cmp.Or(cmp.Compare(a.key.class, b.key.class), cmp.Compare(a.key.reason, b.key.reason))
		})
	}
	b.In(family)
	for _, counter := range f.order {
		if counter.labels == nil {
			counter.labels = metric.NewLabels(family.Labels, counter.key.class, counter.key.reason)
		}
		b.AddFrom(counter.labels, counter.total, counter.start)
	}
}
