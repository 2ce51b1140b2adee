package cluster

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// names describes changes, sorted and each once.
func names(changes []Change) []string {
	var all []string
	for _, c := range changes {
		switch {
		case c.Claim != nil:
			all = append(all, "claim "+c.Claim.Ref.String())
		case c.Pod != nil:
			all = append(all, "pod "+c.Pod.Ref.String())
		case c.Group != nil:
			all = append(all, "group "+c.Group.Ref.String())
		case c.Warning != nil:
			all = append(all, "event "+c.Warning.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// The objects of a namespace are all that exist there, and those of other namespaces are
// the claims that were asked for with what may use them.
func TestObjects(t *testing.T) {
	h := newHarness(t)
	warning := func(name string, kind dra.WarningKind) dra.Warning {
		return dra.Warning{Name: name, Kind: kind, Pod: dra.PodRef{Namespace: name[:1], Name: "p"}, PodUID: "uid-p", Message: "no", Count: 1, Last: testStart()}
	}
	group := dra.Group{Ref: dra.PodRef{Namespace: "a", Name: "gang"}, UID: "gang"}
	h.update(
		pod("a/p", 0, "gpu=c", "other=missing"), claim("a/c", 0), group,
		pod("b/p", 0, "gpu=held"), pod("b/q", 0, "gpu=unrelated"), claim("b/held", 0, reserved("p", "r")), claim("b/unrelated", 0), pod("b/r", 0, "x=y"),
		warning("a/create", dra.WarningCreation), warning("a/prepare", dra.WarningPreparation), warning("b/prepare", dra.WarningPreparation), warning("a/over", dra.WarningPreparation),
	)
	h.step(time.Second)
	h.remove(warning("a/over", dra.WarningPreparation))
	h.step(time.Second)
	want := []string{"claim a/c", "event a/create", "event a/prepare", "group a/gang", "pod a/p"}
	if got := names(h.state.index.objects("a", nil)); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	want = append(want, "claim b/held", "pod b/p", "pod b/r")
	slices.Sort(want)
	if got := names(h.state.index.objects("a", []dra.ClaimRef{{Namespace: "b", Name: "held"}, {Namespace: "b", Name: "gone"}, {Namespace: "a", Name: "c"}})); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// Events about preparation are only shown to people: no more than a number of them is
// kept, and their counts are not affected.
func TestPreparationWarningsAreBounded(t *testing.T) {
	w := newWarnings()
	warning := func(i int) *dra.Warning {
		return &dra.Warning{Name: fmt.Sprint(i), Kind: dra.WarningPreparation, Count: 2}
	}
	for i := range maxPreparationWarnings + 10 {
		if occurred := w.apply(warning(i), false); occurred != 1 {
			t.Fatalf("event %d occurred %d times", i, occurred)
		}
	}
	if len(w.preparation) != maxPreparationWarnings || len(w.counts) != maxPreparationWarnings+10 {
		t.Errorf("%d events are kept, %d counted", len(w.preparation), len(w.counts))
	}
	w.apply(warning(0), true)
	w.apply(warning(maxPreparationWarnings), false)
	if w.preparation["0"] != nil || w.preparation[fmt.Sprint(maxPreparationWarnings)] == nil {
		t.Error("an event that is gone keeps its place")
	}
}

// Objects can be listed while steps are made.
func TestObjectsDuringSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeInputs{settled: true}
		runner, _, stop := run(t, f)
		defer stop()
		for i := range 50 {
			p := pod(fmt.Sprintf("a/p%d", i), 0, "gpu=c")
			f.deliver(Change{Pod: &p})
			time.Sleep(time.Millisecond)
			_ = runner.Objects("a", nil)
		}
		time.Sleep(time.Minute)
		if got := len(runner.Objects("a", nil)); got != 50 {
			t.Errorf("%d objects, want 50", got)
		}
	})
}
