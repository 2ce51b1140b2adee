package e2e

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// clockTolerance is the largest difference, in seconds, between an observation
// by the exporter's watches and one by the test's, on a machine that is busy
// starting pods.
const clockTolerance = 0.5

// allPhases returns the values of the label phase in all releases.
func allPhases() []string {
	return []string{"allocation", "binding", "scheduling", "preparation", "start", "preparation_start"}
}

// TestClusterPhases: a delay is in the histogram of its phase and in no other,
// and each phase lasted as long as the test itself observed.
func TestClusterPhases(t *testing.T) {
	covers(t)
	setBehaviour(t, "{prepareDelay: 3s, bindingDelay: 4s}")
	before := clusterPage(t)
	history := watchHistory(t, "phases")
	deploy(t, "phases")
	running(t, "phases", "prompt")
	running(t, "phases", "late")
	after := waitClusterPage(t, "two pods to be ready", func(p *scrape.Page) error {
		return errors.Join(observed(before, p, "bind.life", 1), observed(before, p, "share.example.com", 1))
	})

	late, prompt := history.timesOf(t, "late").phases(true), history.timesOf(t, "prompt").phases(false)
	t.Logf("late: %.3v\nprompt: %.3v", late, prompt)
	checkPhases(t, before, after, "bind.life", late)
	checkPhases(t, before, after, "share.example.com", prompt)
	delays := map[string]float64{"binding": 4, "preparation": 3, "preparation_start": 3}
	const slack = 4 // in seconds, for what else a phase takes on a busy machine
	for _, phase := range allPhases() {
		_, took := deltas(before, after, "bind.life", phase)
		switch delay, has := delays[phase]; {
		case has && late[phase] > 0 && (took < delay || took > delay+slack):
			t.Errorf("%s took %.3f s, and was delayed by %v s", phase, took, delay)
		// The scheduler checks binding conditions every five seconds.
		case phase == "scheduling" && took > 6, !has && phase != "scheduling" && took > 2.5:
			t.Errorf("%s took %.3f s, and was not delayed", phase, took)
		}
	}
	for _, class := range []string{"bind.life", "share.example.com"} {
		checkPhasesAddUp(t, before, after, class)
	}
	if clocks := after.Rows("dra_exporter_clock_anomalies_total", nil); len(clocks) == 0 {
		t.Error("clock anomalies are not counted")
	}
}

// observed returns an error unless exactly this many more pods have become
// ready.
func observed(before, after *scrape.Page, class string, want float64) error {
	labels := scrape.Labels{"deviceclass": class}
	had, _ := before.Histogram("dra_claim_ready_duration_seconds", labels)
	has, _ := after.Histogram("dra_claim_ready_duration_seconds", labels)
	if has-had != want {
		return fmt.Errorf("%v pods with a claim of %s have been ready, not %v", has-had, class, want)
	}
	return nil
}

// deltas returns the increase of the count and sum of a class and phase.
func deltas(before, after *scrape.Page, class, phase string) (count, sum float64) {
	labels := scrape.Labels{"deviceclass": class, "phase": phase}
	had, hadSum := before.Histogram("dra_allocation_duration_seconds", labels)
	has, hasSum := after.Histogram("dra_allocation_duration_seconds", labels)
	return has - had, hasSum - hadSum
}

// checkPhases fails the test unless each of these phases was observed once,
// with its duration, and no other was observed.
func checkPhases(t *testing.T, before, after *scrape.Page, class string, want map[string]float64) {
	t.Helper()
	for _, phase := range allPhases() {
		count, took := deltas(before, after, class, phase)
		expected, was := want[phase]
		switch {
		case !was && count != 0:
			t.Errorf("%s: %s was observed %v times", class, phase, count)
		case was && (count != 1 || math.Abs(took-expected) > clockTolerance):
			t.Errorf("%s: %s was observed %v times and took %.3f s, not %.3f", class, phase, count, took, expected)
		}
	}
}

// checkPhasesAddUp fails the test unless the phases of one pod add up to the
// time until it was ready, within a second, because the API server's
// timestamps have a resolution of one second.
func checkPhasesAddUp(t *testing.T, before, after *scrape.Page, class string) {
	t.Helper()
	var sum float64
	for _, phase := range allPhases() {
		_, took := deltas(before, after, class, phase)
		sum += took
	}
	labels := scrape.Labels{"deviceclass": class}
	_, had := before.Histogram("dra_claim_ready_duration_seconds", labels)
	_, has := after.Histogram("dra_claim_ready_duration_seconds", labels)
	if ready := has - had; math.Abs(ready-sum) > 1+clockTolerance {
		t.Errorf("%s: the phases took %.3f s together, and the pod was ready after %.3f s", class, sum, ready)
	}
}

// counterIncreased returns an error unless a counter has increased. A counter
// that is absent is 0.
func counterIncreased(before, after *scrape.Page, family string, labels scrape.Labels) error {
	if was, is := total(before, family, labels), total(after, family, labels); is <= was {
		return fmt.Errorf("%s%s was %v and is %v", family, labels, was, is)
	}
	return nil
}

// total returns the sum of the rows with the labels.
func total(p *scrape.Page, family string, labels scrape.Labels) (sum float64) {
	for _, row := range p.Rows(family, labels) {
		sum += row.Value
	}
	return sum
}
