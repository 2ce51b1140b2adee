package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// Reasons of failures that are not reasons of pending references.
const (
	failureBinding     = "binding_failed"
	failurePreparation = "preparation_failed"
	failureCreation    = "claim_creation_failed"
)

// maxClasses is the number of device classes that have counters and histograms
// while it is not known which exist. A claim may name any class: without a limit,
// names of classes could fill the memory, and a histogram is some thirty series.
const maxClasses = 100

// deferDelay is how long a failure waits until its class is known: a claim that
// does not exist must have been diagnosed first.
const deferDelay = 10 * time.Second

// failures counts failures of claims, by device class and reason. The counters
// of a class exist from 0 once the class is known to be used.
type failures struct {
	counts   map[string]*model.FailureCount // by class; immutable
	existing []string                       // classes, sorted; empty: not known
	order    []*model.FailureCount          // sorted by class; nil: one is another
	deferred []deferredFailure
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
	return &failures{counts: make(map[string]*model.FailureCount)}
}

// failureReasons is the closed set of reasons, sorted.
func failureReasons() []string {
	var reasons []string
	for _, reason := range dra.PendingReasons() {
		if isFailure(reason) {
			reasons = append(reasons, string(reason))
		}
	}
	reasons = append(reasons, failureBinding, failurePreparation, failureCreation)
	slices.Sort(reasons)
	return reasons
}

// begin begins a step, with the device classes that exist. It reports whether others do
// than before.
func (f *failures) begin(supply *dra.Supply, now time.Time) (changed bool) {
	f.addClass("", now) // of what fails before its class is known, and of what names a class that does not exist
	if supply == nil || len(supply.Classes) == 0 {
		return false
	}
	same := func(name string, class dra.ClassSupply) bool { return name == class.Class }
	if slices.EqualFunc(f.existing, supply.Classes, same) {
		return false
	}
	f.existing = make([]string, len(supply.Classes))
	for i := range supply.Classes {
		f.existing[i] = supply.Classes[i].Class
	}
	return true
}

// label returns the class as a label: empty for one that does not exist. A tenant
// can invent as many of these as there may be claims.
func (f *failures) label(class string) string {
	if len(f.existing) > 0 && !f.exists(class) {
		return ""
	}
	return class
}

// counted returns the class with the counters and histograms for what happens to a claim
// of the class.
func (f *failures) counted(class string, at time.Time) string {
	if f.addClass(class, at); f.counts[class] == nil {
		return ""
	}
	return class
}

// absent returns the classes that have counters and do not exist.
func (f *failures) absent() []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(f.counts)), func(class string) bool { return f.label(class) == class })
}

// addClass starts the counters of a class at 0, unless they exist, or the class does
// not. While it is not known which do, there are maxClasses at most.
func (f *failures) addClass(class string, at time.Time) {
	if f.counts[class] != nil || f.label(class) != class || len(f.existing) == 0 && len(f.counts) >= maxClasses {
		return
	}
	count := &model.FailureCount{Class: class}
	for _, reason := range failureReasons() {
		count.Reasons = append(count.Reasons, model.Counter{Name: reason, Since: at})
	}
	f.counts[class], f.order = count, nil
}

// exists reports whether the class is one that is known to exist, or stands for several.
func (f *failures) exists(class string) bool {
	_, ok := slices.BinarySearch(f.existing, class)
	return ok || class == "" || class == dra.DeviceClassMultiple
}

// evictClass removes the counters of a class if they are all 0. It reports
// whether there were any.
func (f *failures) evictClass(class string) bool {
	count := f.counts[class]
	if count == nil || slices.ContainsFunc(count.Reasons, func(c model.Counter) bool { return c.Count > 0 }) {
		return false
	}
	delete(f.counts, class)
	f.order = nil
	return true
}

// add counts failures. Those of a class that has no counters count without a
// class; a reason outside the closed set is not counted.
func (f *failures) add(class, reason string, count int64, at time.Time) {
	class = f.counted(class, at)
	previous := f.counts[class]
	if previous == nil {
		return
	}
	if i := slices.IndexFunc(previous.Reasons, func(c model.Counter) bool { return c.Name == reason }); i >= 0 {
		next := &model.FailureCount{Class: class, Reasons: slices.Clone(previous.Reasons)}
		next.Reasons[i].Count += float64(count)
		f.counts[class], f.order = next, nil
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
// IMEX daemon on its node is ready (sigs.k8s.io/dra-driver-nvidia-gpu v0.5.0,
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
// be.
func (f *failures) flush(findClass func(*dra.Warning) string, now clock.Instant) {
	f.deferred = slices.DeleteFunc(f.deferred, func(d deferredFailure) bool {
		class := findClass(d.warning)
		if class == "" && now.Since(d.observed) < deferDelay {
			return false
		}
		f.add(class, warningFailure(d.warning), d.count, now.Wall)
		return true
	})
}

// sorted returns the counters of all classes.
func (f *failures) sorted() []*model.FailureCount {
	if f.order == nil {
		f.order = slices.SortedFunc(maps.Values(f.counts), func(a, b *model.FailureCount) int { return cmp.Compare(a.Class, b.Class) })
	}
	return f.order
}
