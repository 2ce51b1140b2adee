package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/dra"
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
		for _, vec := range d {
			vec.Collect(metrics)
		}
	}()
	count := 0
	for range metrics {
		count++
	}
	return count
}

// A claim may name any class. Claims of a hundred thousand classes that do not
// exist get counters and histograms of at most maxClasses, and do not displace
// classes that exist.
func TestClassesThatDoNotExist(t *testing.T) {
	const flood = 100_000
	h := newHarness(t)
	h.state = NewState(Config{MaxSeries: 2000})
	d := newDurations(h.state.families)
	for i := range flood {
		h.update(claimOfClass(fmt.Sprintf("evil/c-%d", i), fmt.Sprintf("class-%d", i)))
	}
	h.step(time.Second)
	if got := len(h.state.failures.classes); got > maxClasses {
		t.Fatalf("counters of %d classes, want %d at most", got, maxClasses)
	}
	if got, most := histogramCount(h, d), maxClasses*8; got > most {
		t.Errorf("%d histograms, want %d at most", got, most)
	}
	rows := make(map[string]int)
	for _, row := range h.last.Rows() {
		rows[row.Family.Name]++
	}
	for family, count := range rows {
		if count > 2000 {
			t.Errorf("%d rows of %s in spite of the cap", count, family)
		}
	}

	h.facts.Supply = &dra.Supply{Classes: []dra.ClassSupply{{Class: "real"}}}
	h.update(claimOfClass("good/c", "real"))
	h.step(time.Second)
	if !h.state.failures.classes["real"] {
		t.Error("a class that exists has no counters")
	}
	h.state.failures.add("class-made-up", failureBinding, 2, h.now.Wall)
	if counted := h.state.failures.counts[failureKey{"", failureBinding}]; counted.total < 2 {
		t.Errorf("failures of a class that there is no room for are lost: %+v", counted)
	}

	for i := range flood {
		h.remove(claimOfClass(fmt.Sprintf("evil/c-%d", i), fmt.Sprintf("class-%d", i)))
	}
	h.step(time.Second)
	if got := len(h.state.failures.classes); got > 3 {
		t.Errorf("counters of %d classes after all claims of them have gone", got)
	}
	if got := histogramCount(h, d); got > 3*8 {
		t.Errorf("%d histograms after all claims have gone", got)
	}
}
