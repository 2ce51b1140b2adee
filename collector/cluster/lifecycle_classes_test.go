package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// claimOfClass returns a claim of the class.
func claimOfClass(name, class string) dra.ClaimLifecycle {
	return claim(name, 10, func(c *dra.ClaimLifecycle) { c.Classes = []string{class} })
}

// histogramCount counts the histograms that exist after the last step.
func histogramCount(h *harness, d durations) int {
	d.apply(&h.last, nil)
	metrics := make(chan prometheus.Metric)
	go func() {
		defer close(metrics)
		for _, vec := range d.all() {
			vec.Collect(metrics)
		}
	}()
	count := 0
	for range metrics {
		count++
	}
	return count
}

// A claim may name any class. While it is not known which exist, claims of many invented
// classes get counters and histograms of at most maxClasses; then none of a class that
// does not exist has series.
func TestClassesThatDoNotExist(t *testing.T) {
	const flood = 20_000
	h := newHarness(t)
	h.state = NewState(Config{MaxSeries: 2000})
	d := newDurations(h.state.families.Families())
	for i := range flood {
		h.update(claimOfClass(fmt.Sprintf("evil/c-%d", i), fmt.Sprintf("class-%d", i)))
	}
	h.step(time.Second)
	if got := len(h.state.failures.counts); got > maxClasses {
		t.Fatalf("counters of %d classes, want %d at most", got, maxClasses)
	}
	if got, most := histogramCount(h, d), maxClasses*8; got > most {
		t.Errorf("%d histograms, want %d at most", got, most)
	}
	for family, count := range h.rowCounts() {
		if count > 2000 {
			t.Errorf("%d rows of %s in spite of the cap", count, family)
		}
	}

	known := func(classes ...string) {
		h.facts.Supply = &dra.Supply{}
		for _, class := range classes {
			h.facts.Supply.Classes = append(h.facts.Supply.Classes, dra.ClassSupply{Class: class})
		}
	}
	known("real")
	h.update(claimOfClass("good/c", "real"))
	h.step(time.Second)
	if h.state.failures.counts["real"] == nil || len(h.state.failures.counts) != 2 {
		t.Errorf("counters of the classes %v, want those of the one that exists, and those without a class", h.state.failures.counts)
	}
	if got := histogramCount(h, d); got > 8 {
		t.Errorf("%d histograms of the class that exists", got)
	}
	if counts := h.rowCounts(); counts["dra_claims"] != 2*model.ClaimStates {
		t.Errorf("%d series of claims", counts["dra_claims"])
	}
	h.state.failures.add("class-made-up", failureBinding, 2, h.now.Wall)
	counted := slices.IndexFunc(h.state.failures.counts[""].Reasons, func(c model.Counter) bool { return c.Name == failureBinding && c.Count >= 2 })
	if counted < 0 {
		t.Errorf("failures of a class that does not exist are lost: %+v", h.state.failures.counts[""])
	}

	// An invented class that is created has series from then on.
	known("class-7", "real")
	h.step(time.Second)
	if h.state.failures.counts["class-7"] == nil || h.rowCounts()["dra_claims"] != 3*model.ClaimStates {
		t.Errorf("a class that came to exist has no counters: %v", h.state.failures.counts)
	}
	known("real")
	h.step(time.Second)
	if got := histogramCount(h, d); got > 8 || h.rowCounts()["dra_claims"] != 2*model.ClaimStates {
		t.Errorf("%d histograms after the class has gone", got)
	}

	for i := range flood {
		h.remove(claimOfClass(fmt.Sprintf("evil/c-%d", i), fmt.Sprintf("class-%d", i)))
	}
	h.step(time.Second)
	if got := len(h.state.failures.counts); got > 2 {
		t.Errorf("counters of %d classes after all claims of them have gone", got)
	}
}

// What happens to claims of a class that does not exist, or no longer, is measured
// without a class.
func TestPhasesOfClassesThatDoNotExist(t *testing.T) {
	f := newFailures()
	f.begin(&dra.Supply{Classes: []dra.ClassSupply{{Class: "real"}}}, testStart())
	for class, want := range map[string]string{"real": "real", "made-up": "", "": "", dra.DeviceClassMultiple: dra.DeviceClassMultiple} {
		if got := f.counted(class, testStart()); got != want {
			t.Errorf("%q is counted as %q, want %q", class, got, want)
		}
	}
	f.add("real", failureBinding, 1, testStart())
	f.begin(&dra.Supply{Classes: []dra.ClassSupply{{Class: "other"}}}, testStart())
	for _, class := range f.absent() {
		f.evictClass(class)
	}
	if got := f.counted("real", testStart()); got != "real" {
		t.Errorf("a class of which something was counted is now counted as %q", got)
	}
}

// rowCounts counts the rows of each family after the last step.
func (h *harness) rowCounts() map[string]int {
	rows := make(map[string]int)
	for _, row := range h.last.Rows() {
		rows[row.Family.Name]++
	}
	return rows
}
