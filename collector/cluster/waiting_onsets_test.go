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
func (h *hall) expectOnsets(want string) {
	h.t.Helper()
	got := ""
	for _, row := range h.last.Rows {
		if row.Family.Name == "dra_allocation_failures_total" && row.Value > 0 {
			got += fmt.Sprintf("%s/%s=%v ", row.Labels.Get("deviceclass"), row.Labels.Get("reason"), row.Value)
		}
	}
	if trimmed(got) != want {
		h.t.Errorf("counted %q, want %q", got, want)
	}
}

func (h *hall) judge(p dra.PodLife, reason dra.PendingReason) {
	h.facts.Verdicts = []dra.Verdict{judged(p, "gpu", reason, "")}
	if reason != dra.ReasonNone {
		h.facts.Verdicts[0].Message = "m"
	}
}

// While claims or pods cannot be read nobody knows who waits, and nothing is
// counted; what was found in a list by then is not counted afterwards either.
func TestNoOnsetOfWhatCannotBeRead(t *testing.T) {
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
			h := newHall(t)
			h.live = test.live
			test.forbid(&h.facts.Synced, false)
			p := pod("a/p", 10, "gpu=c")
			p.Claims[0].Template = "one"
			h.tell(p)
			h.step(time.Second)
			h.step(time.Minute)
			h.expectOnsets("")
			h.live = false
			h.tell(claim("a/c", 5))
			test.forbid(&h.facts.Synced, true)
			h.judge(p, dra.ReasonInsufficient)
			h.step(time.Second)
			h.step(time.Minute)
			h.expectOnsets(test.want)
		})
	}
}

// What the scheduler says is no reason before the diagnosis, and is not counted;
// so a restart does not count again what is yet to be diagnosed.
func TestOnsetsWaitForTheJudge(t *testing.T) {
	for said, scheduler := range map[dra.PendingReason]string{dra.ReasonOther: saysCPU, dra.ReasonNoDeviceClass: saysClass} {
		for _, live := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, live %v", said, live), func(t *testing.T) {
				h := newHall(t)
				h.live = live
				p := pod("a/p", 10, "gpu=c")
				p.Unschedulable = scheduler
				h.tell(p, claim("a/c", 11))
				h.step(time.Second)
				h.live = true
				h.step(time.Minute)
				if w := h.one(); w.Reason != dra.ReasonPendingDiagnosis {
					t.Errorf("%s: %s", w.Reason, w.Message)
				}
				h.expectOnsets("")
				h.judge(p, dra.ReasonInsufficient)
				h.step(time.Second)
				h.step(time.Minute)
				h.expectOnsets(map[bool]string{true: "gpu.example.com/insufficient_devices=1"}[live])
			})
		}
	}
	t.Run("it is unknown which devices one node", func(t *testing.T) {
		h := newHall(t)
		h.facts.Synced.Slices = false
		p := pod("a/p", 10, "gpu=c")
		p.Unschedulable = saysCPU
		h.tell(p, claim("a/c", 11))
		h.step(time.Second)
		h.step(time.Minute)
		h.expectOnsets("gpu.example.com/other_constraints=1")
	})
}

// Once devices suffice, the scheduler's last word is of before; until it has
// had time to try again, what else it spoke of is no trouble.
func TestOnsetsWaitForTheBackoff(t *testing.T) {
	for scheduler, delay := range map[string]time.Duration{saysBoth: 15 * time.Second, saysCPU: 2 * time.Second} {
		t.Run(scheduler, func(t *testing.T) {
			h := newHall(t)
			p := pod("a/p", 10, "gpu=c")
			p.Unschedulable = scheduler
			h.tell(p, claim("a/c", 11))
			h.judge(p, dra.ReasonNone)
			h.step(time.Second)
			if w := h.one(); w.Reason != dra.ReasonOther {
				t.Errorf("%s: %s", w.Reason, w.Message)
			}
			h.step(delay - time.Second)
			h.expectOnsets("")
			h.step(time.Second)
			h.expectOnsets("gpu.example.com/other_constraints=1")
		})
	}
}

// While the watch of pods or of claims is not alive, what the other tells is
// half of what happened: no claim is called missing for good, and none
// orphaned. What is still so once they agree is.
func TestOneWatchBehindTheOther(t *testing.T) {
	for _, behind := range []string{"resourceclaims", "pods"} {
		t.Run(behind, func(t *testing.T) {
			h := newHall(t)
			h.facts.Sources = []source.Status{{Name: "pods", Up: behind != "pods"}, {Name: "resourceclaims", Up: behind != "resourceclaims"}}
			p := pod("a/p", 10, "gpu<one")
			p.Claims[0].Claim = "p-gpu-x" // which the pod's status names
			h.tell(p, claim("a/held", 4, given("gpu-0"), reserved("ghost")))
			h.step(time.Second)
			h.step(time.Minute)
			want := "resourceclaim p-gpu-x, which the pod's status names, does not exist"
			if w := h.one(); w.Reason != dra.ReasonClaimNotCreated || w.Message != want {
				t.Errorf("%s: %s", w.Reason, w.Message)
			}
			h.expectOnsets("")
			h.expect("", "dra_claim_orphaned")
			for i := range h.facts.Sources {
				h.facts.Sources[i].Up = true
			}
			h.step(time.Second)
			h.expectOnsets("")
			h.expect("", "dra_claim_orphaned")
			h.step(time.Second)
			h.expectOnsets("/claim_not_created=1")
			h.expect(`dra_claim_orphaned{namespace="a",resourceclaim="held"} 1`, "dra_claim_orphaned")
		})
	}
}

// Trouble that a gate hid was not there before the exporter.
func TestAGateEndsTheSilence(t *testing.T) {
	h := newHall(t)
	h.live = false
	p := pod("a/p", 10, "gpu=c")
	p.Gated = true
	h.tell(p, claim("a/c", 11))
	h.step(time.Second)
	h.live = true
	h.step(time.Hour)
	p.Gated = false
	h.tell(p)
	h.judge(p, dra.ReasonInsufficient)
	h.step(time.Second)
	h.step(2 * time.Second)
	h.expectOnsets("gpu.example.com/insufficient_devices=1")
}

// A pod that came under the name of one that a list held is no find.
func TestOnlyThePodOfTheListWasFound(t *testing.T) {
	h := newHall(t)
	h.live = false
	listed := pod("a/p", 10, "gpu=nothing")
	h.tell(listed)
	h.live = true
	h.lose(listed)
	p := pod("a/p", 20, "gpu=nothing")
	p.UID = "another"
	h.tell(p)
	h.step(time.Second)
	h.step(2 * time.Second)
	h.expectOnsets("/claim_missing=1")
}
