package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// A harness passes changes of objects to the reducer, as the API server
// delivers them, and keeps its output.
type harness struct {
	t      testing.TB
	state  State
	facts  Facts
	now    clock.Instant
	last   Snapshot
	events []Event
	live   bool
}

func testStart() time.Time { return time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC) }

func allSynced() Synced {
	return Synced{Claims: true, Pods: true, Slices: true, Classes: true, Nodes: true, Events: true}
}

func newHarness(t testing.TB) *harness {
	return &harness{
		t: t, live: true, now: clock.Instant{Wall: testStart().Add(time.Hour), Elapsed: time.Hour},
		state: NewState(Config{Interval: time.Second, Version: self.Build{Version: "v0", Revision: "abc", GoVersion: "go"}}),
		facts: Facts{Synced: allSynced(), Sources: []source.Status{{Name: "pods", Up: true, Queue: source.Queue{Watched: true, Events: 3, Lag: time.Second}}}},
	}
}

// update delivers objects as added or modified.
func (h *harness) update(objects ...any) {
	for _, object := range objects {
		h.change(object, false)
	}
}

// remove delivers objects as deleted.
func (h *harness) remove(objects ...any) {
	for _, object := range objects {
		h.change(object, true)
	}
}

func (h *harness) change(object any, gone bool) {
	change := Change{At: h.now, Live: h.live, Gone: gone}
	switch o := object.(type) {
	case dra.ClaimLifecycle:
		change.Claim = &o
	case dra.PodLifecycle:
		change.Pod = &o
	case dra.Group:
		change.Group = &o
	case dra.Node:
		change.Node = &o
	case dra.Warning:
		change.Warning = &o
	case dra.KueueWorkload:
		change.KueueWorkload = &o
	case dra.ComputeDomain:
		change.ComputeDomain = &o
	case dra.Autoscaling:
		change.Autoscaling = &o
	default:
		h.t.Fatalf("no change reports a %T", object)
	}
	h.facts.Changes = append(h.facts.Changes, change)
}

// step advances the time and makes a step.
func (h *harness) step(after time.Duration) {
	h.now = h.now.Add(after)
	h.state, h.last, h.events = Step(h.state, h.facts, h.now)
	h.facts.Changes = nil
}

// exposition returns the text of the last snapshot, without comments, of
// families whose names begin with one of the prefixes.
func (h *harness) exposition(prefixes ...string) string {
	h.t.Helper()
	var lines strings.Builder
	for line := range strings.Lines(metrictest.Text(h.t, metric.NewPage(h.last.Rows()))) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) {
				lines.WriteString(line)
				break
			}
		}
	}
	return lines.String()
}

// expectRows compares what exposition returns.
func (h *harness) expectRows(want string, prefixes ...string) {
	h.t.Helper()
	if got, want := unindented(h.exposition(prefixes...)), unindented(want); got != want {
		h.t.Errorf("the page has\n%s\nwant\n%s", got, want)
	}
}

// unindented returns text without the indentation of a test's source.
func unindented(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\t", "")) }

// onlyPending returns the pending reference; the test fails unless there is
// exactly one.
func (h *harness) onlyPending() PendingRef {
	h.t.Helper()
	if len(h.last.Pending) != 1 {
		h.t.Fatalf("%d wait: %+v", len(h.last.Pending), h.last.Pending)
	}
	return *h.last.Pending[0]
}

// pod returns a pod "namespace/name" that was created this many seconds after
// testStart. Its claims are given as name=claim, or as name<template if the
// claim does not exist yet.
func pod(name string, created int, claims ...string) dra.PodLifecycle {
	namespace, short, _ := strings.Cut(name, "/")
	p := dra.PodLifecycle{Ref: dra.PodRef{Namespace: namespace, Name: short}, UID: "uid-" + short, Created: second(created)}
	for _, claim := range claims {
		if inside, of, found := strings.Cut(claim, "="); found {
			p.Claims = append(p.Claims, dra.PodClaim{Name: inside, Claim: of})
		} else {
			inside, of, _ := strings.Cut(claim, "<")
			p.Claims = append(p.Claims, dra.PodClaim{Name: inside, Template: of})
		}
	}
	return p
}

func second(n int) time.Time { return testStart().Add(time.Duration(n) * time.Second) }

// claim returns a claim of the class gpu.example.com.
func claim(name string, created int, alter ...func(*dra.ClaimLifecycle)) dra.ClaimLifecycle {
	namespace, short, _ := strings.Cut(name, "/")
	c := dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: namespace, Name: short}, UID: "uid-" + short, Created: second(created), Classes: []string{"gpu.example.com"}}
	for _, f := range alter {
		f(&c)
	}
	return c
}

// withDevices allocates devices of the pool node-a.
func withDevices(devices ...string) func(*dra.ClaimLifecycle) {
	return func(c *dra.ClaimLifecycle) {
		c.Allocated, c.Node = true, "node-a"
		for _, device := range devices {
			c.Results = append(c.Results, dra.AllocatedDevice{Request: "gpu", Class: "gpu.example.com", Device: deviceOf(device)})
		}
	}
}

func deviceOf(name string) dra.DeviceID {
	return dra.DeviceID{Driver: "gpu.example.com", Pool: "node-a", Name: name}
}

// reserved reserves the claim for pods.
func reserved(pods ...string) func(*dra.ClaimLifecycle) {
	return func(c *dra.ClaimLifecycle) {
		for _, pod := range pods {
			c.ReservedFor = append(c.ReservedFor, dra.Consumer{Resource: "pods", Name: pod, UID: "uid-" + pod})
		}
	}
}

func deleted(at int, finalizers ...string) func(*dra.ClaimLifecycle) {
	return func(c *dra.ClaimLifecycle) { c.Deleted, c.Finalizers = second(at), finalizers }
}

// diagnosisFor returns a diagnosis on a pod's reference.
func diagnosisFor(p dra.PodLifecycle, podClaim string, reason dra.PendingReason, message string, left ...int) dra.Diagnosis {
	v := dra.Diagnosis{Pod: p.Ref, PodUID: p.UID, PodClaim: podClaim, Version: 1, Reason: reason, Message: message}
	if len(left) > 0 {
		v.Requests = []dra.RequestStages{{Request: "gpu", Class: "gpu.example.com", Count: 1}}
		copy(v.Requests[0].Left[:], left)
	}
	return v
}
