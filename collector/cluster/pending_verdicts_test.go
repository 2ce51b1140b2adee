package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// What was judged is shown as long as it is judged: not of a claim that has its
// devices, is gone, or is another one under the same name.
func TestAVerdictEndsWithItsSubject(t *testing.T) {
	funnel := []string{"dra_claim_pending_candidates", "dra_claim_pending_requested_devices"}
	another := claim("a/c", 50, func(c *dra.ClaimLife) { c.UID, c.Classes = "another", []string{"nic.example.com"} })
	for name, test := range map[string]struct {
		change func(h *hall, p dra.PodLife)
		class  string
		still  bool // judged: the old verdict may come once more
	}{
		"allocated": {func(h *hall, _ dra.PodLife) {
			h.tell(claim("a/c", 11, given("gpu-0"), reserved("p"), func(c *dra.ClaimLife) { c.Binding = dra.BindingWaiting }))
		}, "gpu.example.com", true},
		"gone":           {func(h *hall, _ dra.PodLife) { h.lose(claim("a/c", 11)) }, "", true},
		"being deleted":  {func(h *hall, _ dra.PodLife) { h.tell(claim("a/c", 11, deleted(50, "keep"))) }, "gpu.example.com", true},
		"made again":     {func(h *hall, _ dra.PodLife) { h.lose(claim("a/c", 11)); h.tell(another) }, "nic.example.com", false},
		"made again, as": {func(h *hall, _ dra.PodLife) { h.tell(another) }, "nic.example.com", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t)
			p := pod("a/p", 10, "gpu=c")
			h.tell(p, claim("a/c", 11))
			h.facts.Verdicts = []dra.Verdict{judged(p, "gpu", dra.ReasonInsufficient, "none is free", 8, 8, 8, 8, 0, 0)}
			h.step(time.Second)
			if page := h.page(funnel...); strings.Count(page, "\n") != dra.Stages+1 {
				t.Fatalf("the page has\n%s", page)
			}
			if !test.still {
				h.facts.Verdicts = nil
			}
			test.change(h, p)
			h.step(time.Second)
			h.expect("", funnel...)
			if w := h.one(); w.Verdict != nil || w.DeviceClass != test.class {
				t.Errorf("%s of class %q: %+v", w.Reason, w.DeviceClass, w.Verdict)
			}
			told := &h.last.Pending[0]
			h.step(time.Second)
			if told != &h.last.Pending[0] {
				t.Error("it is told again, though nothing has changed")
			}
		})
	}
}

// A judge goes by an inventory: as long as that cannot be filled nobody asks
// him, and once it can be, he is asked.
func TestNobodyIsAskedAboutWhatCannotBeRead(t *testing.T) {
	for name, read := range map[string]func(*Synced, bool){
		"slices":  func(s *Synced, known bool) { s.Slices = known },
		"classes": func(s *Synced, known bool) { s.Classes = known },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t)
			h.tell(pod("a/p", 10, "gpu=c"), claim("a/c", 11))
			for _, known := range []bool{false, true, false, true} {
				read(&h.facts.Synced, known)
				h.step(time.Second)
				if asked := len(h.last.Questions) == 1; asked != known {
					t.Errorf("readable %v, asked %+v", known, h.last.Questions)
				}
				h.one()
			}
		})
	}
}

// Without the nodes nobody can judge what one node reaches; what is too little
// in the whole cluster is so nevertheless.
func TestNodesThatNobodyMayRead(t *testing.T) {
	for reason, want := range map[dra.PendingReason]dra.PendingReason{
		dra.ReasonNone: dra.ReasonUnknown, dra.ReasonFragmented: dra.ReasonUnknown, dra.ReasonConstraints: dra.ReasonUnknown,
		dra.ReasonInsufficient: dra.ReasonInsufficient, dra.ReasonTainted: dra.ReasonTainted,
	} {
		t.Run(string(reason), func(t *testing.T) {
			h := newHall(t)
			h.facts.Synced.Nodes = false
			p := pod("a/p", 10, "gpu=c")
			p.Unschedulable = saysCPU
			h.tell(p, claim("a/c", 11))
			h.facts.Verdicts = []dra.Verdict{judged(p, "gpu", reason, "m", 4, 4, 4, 4, 4, 0)}
			h.step(time.Second)
			if w := h.one(); w.Reason != want || want == dra.ReasonUnknown && !strings.Contains(w.Message, "the nodes cannot be read") {
				t.Errorf("%s: %s", w.Reason, w.Message)
			}
			h.step(time.Minute)
			if want == dra.ReasonUnknown {
				h.expectOnsets("")
			}
			if page := h.page("dra_claim_pending_candidates"); strings.Count(page, "\n") != dra.Stages-1 || strings.Contains(page, dra.StageBestNode.String()) {
				t.Errorf("the page has\n%s", page)
			}
			h.facts.Synced.Nodes = true
			h.step(time.Second)
			if page := h.page("dra_claim_pending_candidates"); strings.Count(page, "\n") != dra.Stages {
				t.Errorf("once nodes are read the page has\n%s", page)
			}
			if reason == dra.ReasonFragmented && h.one().Reason != reason {
				t.Errorf("once nodes are read: %s", h.one().Reason)
			}
		})
	}
}

// Of several classes with one extended resource the judge knows which one the
// scheduler takes.
func TestTheJudgeTellsTheClassOfAnExtendedResource(t *testing.T) {
	h := newHall(t)
	p := pod("a/p", 10)
	p.Extended = map[string]int64{"example.com/gpu": 1}
	h.tell(p)
	h.facts.Supply = &dra.Supply{Classes: []dra.ClassSupply{{Class: "new", ExtendedResource: "example.com/gpu"}, {Class: "old", ExtendedResource: "example.com/gpu"}}}
	h.step(time.Second)
	if w := h.one(); w.DeviceClass != dra.DeviceClassMultiple {
		t.Errorf("class %q before it is judged", w.DeviceClass)
	}
	v := judged(p, "example.com/gpu", dra.ReasonInsufficient, "m", 1, 1, 1, 1, 0, 0)
	v.Funnel[0].Class = "new"
	h.facts.Verdicts = []dra.Verdict{v}
	h.step(time.Second)
	if w := h.one(); w.DeviceClass != "new" {
		t.Errorf("class %q", w.DeviceClass)
	}
	h.step(2 * time.Second)
	h.expectOnsets("new/insufficient_devices=1")
}
