package cluster

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A claim that could not be created has no class of its own: the diagnosis has
// it, from the template. Without a diagnosis in time, the failure has no class.
func TestClaimCreationFailures(t *testing.T) {
	const known, unknown = `dra_allocation_failures_total{deviceclass="gpu.example.com",reason="claim_creation_failed"}`, `dra_allocation_failures_total{deviceclass="",reason="claim_creation_failed"}`
	p := pod("a/p", 10, "gpu<one")
	group := dra.Group{Ref: dra.PodRef{Namespace: "a", Name: "gang"}, UID: "uid-gang", Claims: []dra.PodClaim{{Name: "gpu", Template: "one"}}}
	member := p
	member.Group = "gang"
	two := pod("a/p", 10, "gpu<one", "nic<other")
	made := claim("a/p-gpu", 12)
	made.MadeFor, made.PodClaim = dra.Consumer{Resource: "pods", Name: "p", UID: p.UID}, "gpu"
	for _, test := range []struct {
		name        string
		pods        []any // that exist before the event
		later       []any // that are created five seconds after it
		group       bool  // the event refers to the group
		message     string
		diagnosed   bool
		none, class string // expected counts, one digit after a second and one after 12 seconds
	}{
		{name: "diagnosed", pods: []any{p}, diagnosed: true, class: "1 1"},
		{name: "diagnosed too late", pods: []any{p}, none: "0 1"},
		{name: "the pod comes after its event", later: []any{p}, diagnosed: true, class: "0 1"},
		{name: "the pod is unknown", none: "0 1"},
		{name: "it can be made in the end", pods: []any{p}, later: []any{made}, message: "PodResourceClaim gpu: no quota", class: "0 1"},
		{name: "the one that is named", pods: []any{two}, message: "PodResourceClaim gpu: no quota", diagnosed: true, class: "1 1"},
		{name: "one of two", pods: []any{two}, diagnosed: true, none: "0 1"},
		{name: "another that is named", pods: []any{two}, message: "PodResourceClaim nic: no quota", diagnosed: true, none: "0 1"},
		{name: "of a group", pods: []any{group, member}, group: true, message: "PodGroupResourceClaim gpu: no quota", diagnosed: true, class: "1 1"},
		{name: "of a group that is not known", pods: []any{member}, group: true, diagnosed: true, class: "1 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			h.update(claim("a/other", 0))
			h.step(time.Second)
			h.expectRows(unknown+" 0\n"+known+" 0", known, unknown)
			if test.diagnosed {
				h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(p, "gpu", dra.ReasonInsufficient, "m", 1, 1)}
			}
			warning := dra.Warning{Name: "a/e", Pod: p.Ref, PodUID: p.UID, Message: test.message, Count: 3, Last: second(12)}
			if test.group {
				warning.Pod, warning.PodUID = group.Ref, group.UID
			}
			h.update(append(test.pods, warning)...)
			h.step(time.Second)
			h.expectFailures(known, test.class, 0)
			h.expectFailures(unknown, test.none, 0)
			h.step(4 * time.Second)
			h.update(test.later...)
			h.step(time.Second)
			h.step(7 * time.Second)
			h.expectFailures(known, test.class, 2)
			h.expectFailures(unknown, test.none, 2)
			if len(h.state.failures.deferred) > 0 {
				t.Error("a deferred failure is left")
			}
		})
	}
}

// expectFailures fails the test unless a series has the value of the digit at
// this index; 0 without digits.
func (h *harness) expectFailures(series, digits string, at int) {
	h.t.Helper()
	want := "0"
	if digits != "" {
		want = digits[at : at+1]
	}
	if got := unindented(h.exposition(series)); got != unindented(series+" "+want) {
		h.t.Errorf("%s, want %s", got, want)
	}
}
