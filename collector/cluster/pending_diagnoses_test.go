package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A diagnosis is shown as long as it applies: not for a claim that is allocated,
// deleted, or another one with the same name.
func TestDiagnosisEndsWithItsClaim(t *testing.T) {
	families := []string{"dra_claim_pending_candidates", "dra_claim_pending_requested_devices"}
	another := claim("a/c", 50, func(c *dra.ClaimLifecycle) { c.UID, c.Classes = "another", []string{"nic.example.com"} })
	for name, test := range map[string]struct {
		change func(h *harness, p dra.PodLifecycle)
		class  string
		still  bool // diagnosed: the old diagnosis may be published once more
	}{
		"allocated": {func(h *harness, _ dra.PodLifecycle) {
			h.update(claim("a/c", 11, withDevices("gpu-0"), reserved("p"), func(c *dra.ClaimLifecycle) { c.Binding = dra.BindingWaiting }))
		}, "gpu.example.com", true},
		"gone":           {func(h *harness, _ dra.PodLifecycle) { h.remove(claim("a/c", 11)) }, "", true},
		"being deleted":  {func(h *harness, _ dra.PodLifecycle) { h.update(claim("a/c", 11, deleted(50, "keep"))) }, "gpu.example.com", true},
		"made again":     {func(h *harness, _ dra.PodLifecycle) { h.remove(claim("a/c", 11)); h.update(another) }, "nic.example.com", false},
		"made again, as": {func(h *harness, _ dra.PodLifecycle) { h.update(another) }, "nic.example.com", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			p := pod("a/p", 10, "gpu=c")
			h.update(p, claim("a/c", 11))
			h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(p, "gpu", dra.ReasonInsufficient, "none is free", 8, 8, 8, 8, 0, 0)}
			h.step(time.Second)
			if page := h.exposition(families...); strings.Count(page, "\n") != dra.Stages+1 {
				t.Fatalf("the page has\n%s", page)
			}
			if !test.still {
				h.facts.Diagnoses = nil
			}
			test.change(h, p)
			h.step(time.Second)
			h.expectRows("", families...)
			if w := h.onlyPending(); w.Diagnosis != nil || w.DeviceClass != test.class {
				t.Errorf("%s of class %q: %+v", w.Reason, w.DeviceClass, w.Diagnosis)
			}
			before := &h.last.Pending[0]
			h.step(time.Second)
			if before != &h.last.Pending[0] {
				t.Error("it is reported again, though nothing has changed")
			}
		})
	}
}

// Diagnoses need an inventory: while that cannot be filled there are no
// questions, and afterwards there are.
func TestNoQuestionsWithoutInventory(t *testing.T) {
	for name, read := range map[string]func(*Synced, bool){
		"slices":  func(s *Synced, known bool) { s.Slices = known },
		"classes": func(s *Synced, known bool) { s.Classes = known },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.update(pod("a/p", 10, "gpu=c"), claim("a/c", 11))
			for _, known := range []bool{false, true, false, true} {
				read(&h.facts.Synced, known)
				h.step(time.Second)
				if asked := len(h.last.Questions) == 1; asked != known {
					t.Errorf("readable %v, asked %+v", known, h.last.Questions)
				}
				h.onlyPending()
			}
		})
	}
}

// Without nodes it is unknown which devices one node reaches. A shortage in the
// whole cluster is known nevertheless.
func TestDiagnosesWithoutNodes(t *testing.T) {
	for reason, want := range map[dra.PendingReason]dra.PendingReason{
		dra.ReasonNone: dra.ReasonUnknown, dra.ReasonFragmented: dra.ReasonUnknown, dra.ReasonConstraints: dra.ReasonUnknown,
		dra.ReasonInsufficient: dra.ReasonInsufficient, dra.ReasonTainted: dra.ReasonTainted,
	} {
		t.Run(string(reason), func(t *testing.T) {
			h := newHarness(t)
			h.facts.Synced.Nodes = false
			p := pod("a/p", 10, "gpu=c")
			p.Unschedulable = saysCPU
			h.update(p, claim("a/c", 11))
			h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(p, "gpu", reason, "m", 4, 4, 4, 4, 4, 0)}
			h.step(time.Second)
			if w := h.onlyPending(); w.Reason != want || want == dra.ReasonUnknown && !strings.Contains(w.Message, "the nodes cannot be read") {
				t.Errorf("%s: %s", w.Reason, w.Message)
			}
			h.step(time.Minute)
			if want == dra.ReasonUnknown {
				h.expectOnsets("")
			}
			if page := h.exposition("dra_claim_pending_candidates"); strings.Count(page, "\n") != dra.Stages-1 || strings.Contains(page, dra.StageBestNode.String()) {
				t.Errorf("the page has\n%s", page)
			}
			h.facts.Synced.Nodes = true
			h.step(time.Second)
			if page := h.exposition("dra_claim_pending_candidates"); strings.Count(page, "\n") != dra.Stages {
				t.Errorf("once nodes are read the page has\n%s", page)
			}
			if reason == dra.ReasonFragmented && h.onlyPending().Reason != reason {
				t.Errorf("once nodes are read: %s", h.onlyPending().Reason)
			}
		})
	}
}

// Of several classes with one extended resource, the diagnosis names the one that
// the scheduler uses.
func TestDiagnosisHasClassOfExtendedResource(t *testing.T) {
	h := newHarness(t)
	p := pod("a/p", 10)
	p.Extended = map[string]int64{"example.com/gpu": 1}
	h.update(p)
	h.facts.Supply = &dra.Supply{Classes: []dra.ClassSupply{{Class: "new", ExtendedResource: "example.com/gpu"}, {Class: "old", ExtendedResource: "example.com/gpu"}}}
	h.step(time.Second)
	if w := h.onlyPending(); w.DeviceClass != dra.DeviceClassMultiple {
		t.Errorf("class %q before it is diagnosed", w.DeviceClass)
	}
	v := diagnosisFor(p, "example.com/gpu", dra.ReasonInsufficient, "m", 1, 1, 1, 1, 0, 0)
	v.Requests[0].Class = "new"
	h.facts.Diagnoses = []dra.Diagnosis{v}
	h.step(time.Second)
	if w := h.onlyPending(); w.DeviceClass != "new" {
		t.Errorf("class %q", w.DeviceClass)
	}
	h.step(2 * time.Second)
	h.expectOnsets("new/insufficient_devices=1")
}
