package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// expectOnsets compares the counters of failures that are not zero, each as
// class/reason=count.
func (h *harness) expectOnsets(want string) {
	h.t.Helper()
	got := ""
	for _, row := range h.last.Rows() {
		if row.Family.Name == "dra_allocation_failures_total" && row.Value > 0 {
			got += fmt.Sprintf("%s/%s=%v ", row.Labels.Get("deviceclass"), row.Labels.Get("reason"), row.Value)
		}
	}
	if unindented(got) != want {
		h.t.Errorf("counted %q, want %q", got, want)
	}
}

func (h *harness) setDiagnosis(p dra.PodLifecycle, reason dra.PendingReason) {
	h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(p, "gpu", reason, "")}
	if reason != dra.ReasonNone {
		h.facts.Diagnoses[0].Message = "m"
	}
}

// While claims or pods cannot be read, pending references are unknown and
// nothing is counted. What a list shows by then is not counted afterwards
// either.
func TestNoOnsetsWithoutReads(t *testing.T) {
	for _, test := range []struct {
		name   string
		live   bool
		forbid func(*Synced, bool)
		want   string
	}{
		{"claims, of a pod that came", true, func(s *Synced, known bool) { s.Claims = known }, "gpu.example.com/insufficient_devices=1"},
		{"claims, of a pod that was there", false, func(s *Synced, known bool) { s.Claims = known }, ""},
		{"pods", true, func(s *Synced, known bool) { s.Pods = known }, "gpu.example.com/insufficient_devices=1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			h.live = test.live
			test.forbid(&h.facts.Synced, false)
			p := pod("a/p", 10, "gpu=c")
			p.Claims[0].Template = "one"
			h.update(p)
			h.step(time.Second)
			h.step(time.Minute)
			h.expectOnsets("")
			h.live = false
			h.update(claim("a/c", 5))
			test.forbid(&h.facts.Synced, true)
			h.setDiagnosis(p, dra.ReasonInsufficient)
			h.step(time.Second)
			h.step(time.Minute)
			h.expectOnsets(test.want)
		})
	}
}

// A scheduler's message is no reason before the diagnosis, and is not counted.
// A restart therefore does not count again what has not been diagnosed yet.
func TestOnsetsAfterDiagnosis(t *testing.T) {
	for said, scheduler := range map[dra.PendingReason]string{dra.ReasonOther: saysCPU, dra.ReasonNoDeviceClass: saysClass} {
		for _, live := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, live %v", said, live), func(t *testing.T) {
				h := newHarness(t)
				h.live = live
				p := pod("a/p", 10, "gpu=c")
				p.Unschedulable = scheduler
				h.update(p, claim("a/c", 11))
				h.step(time.Second)
				h.live = true
				h.step(time.Minute)
				if w := h.onlyPending(); w.Reason != dra.ReasonPendingDiagnosis {
					t.Errorf("%s: %s", w.Reason, w.Message)
				}
				h.expectOnsets("")
				h.setDiagnosis(p, dra.ReasonInsufficient)
				h.step(time.Second)
				h.step(time.Minute)
				h.expectOnsets(map[bool]string{true: "gpu.example.com/insufficient_devices=1"}[live])
			})
		}
	}
	t.Run("it is unknown which devices one node", func(t *testing.T) {
		h := newHarness(t)
		h.facts.Synced.Slices = false
		p := pod("a/p", 10, "gpu=c")
		p.Unschedulable = saysCPU
		h.update(p, claim("a/c", 11))
		h.step(time.Second)
		h.step(time.Minute)
		h.expectOnsets("gpu.example.com/other_constraints=1")
	})
}

// Once devices suffice, the scheduler's last message is outdated. Its other
// obstacles count as a reason only after its backoff.
func TestOnsetsAfterBackoff(t *testing.T) {
	for scheduler, delay := range map[string]time.Duration{saysBoth: 15 * time.Second, saysCPU: 2 * time.Second} {
		t.Run(scheduler, func(t *testing.T) {
			h := newHarness(t)
			p := pod("a/p", 10, "gpu=c")
			p.Unschedulable = scheduler
			h.update(p, claim("a/c", 11))
			h.setDiagnosis(p, dra.ReasonNone)
			h.step(time.Second)
			if w := h.onlyPending(); w.Reason != dra.ReasonOther {
				t.Errorf("%s: %s", w.Reason, w.Message)
			}
			h.step(delay - time.Second)
			h.expectOnsets("")
			h.step(time.Second)
			h.expectOnsets("gpu.example.com/other_constraints=1")
		})
	}
}

// While the watch of pods or of claims is broken, the other delivers half of
// the events: no claim counts as missing, and none as orphaned. What is still
// so once both are up does.
func TestOneWatchBehindAnother(t *testing.T) {
	for _, behind := range []string{"resourceclaims", "pods"} {
		t.Run(behind, func(t *testing.T) {
			h := newHarness(t)
			h.facts.Sources = []source.Status{{Name: "pods", Up: behind != "pods"}, {Name: "resourceclaims", Up: behind != "resourceclaims"}}
			p := pod("a/p", 10, "gpu<one")
			p.Claims[0].Claim = "p-gpu-x" // named by the pod's status
			h.update(p, claim("a/held", 4, withDevices("gpu-0"), reserved("ghost")))
			h.step(time.Second)
			h.step(time.Minute)
			want := "resourceclaim p-gpu-x, which the pod's status names, does not exist"
			if w := h.onlyPending(); w.Reason != dra.ReasonClaimNotCreated || w.Message != want {
				t.Errorf("%s: %s", w.Reason, w.Message)
			}
			h.expectOnsets("")
			h.expectRows("", "dra_claim_orphaned")
			for i := range h.facts.Sources {
				h.facts.Sources[i].Up = true
			}
			h.step(time.Second)
			h.expectOnsets("")
			h.expectRows("", "dra_claim_orphaned")
			h.step(time.Second)
			h.expectOnsets("/claim_not_created=1")
			h.expectRows(`dra_claim_orphaned{namespace="a",resourceclaim="held"} 1`, "dra_claim_orphaned")
		})
	}
}

// A problem that a scheduling gate hid did not exist before the exporter
// started.
func TestOnsetAfterGate(t *testing.T) {
	h := newHarness(t)
	h.live = false
	p := pod("a/p", 10, "gpu=c")
	p.Gated = true
	h.update(p, claim("a/c", 11))
	h.step(time.Second)
	h.live = true
	h.step(time.Hour)
	p.Gated = false
	h.update(p)
	h.setDiagnosis(p, dra.ReasonInsufficient)
	h.step(time.Second)
	h.step(2 * time.Second)
	h.expectOnsets("gpu.example.com/insufficient_devices=1")
}

// A pod that replaces a listed pod of the same name was not found in a list.
func TestOnsetOfReplacedPod(t *testing.T) {
	h := newHarness(t)
	h.live = false
	listed := pod("a/p", 10, "gpu=nothing")
	h.update(listed)
	h.live = true
	h.remove(listed)
	p := pod("a/p", 20, "gpu=nothing")
	p.UID = "another"
	h.update(p)
	h.step(time.Second)
	h.step(2 * time.Second)
	h.expectOnsets("/claim_missing=1")
}
