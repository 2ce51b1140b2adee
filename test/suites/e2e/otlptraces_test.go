package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// tracing is a cluster role that pushes traces, and the test's own
// observations of the pods.
type tracing struct {
	*collector
	sender  *sender
	before  *scrape.Page // of the role, before there was a pod
	history *podHistory
	users   map[string]user // by pod
}

// testTraces checks the traces of pods from pending to running, or to their
// end before that.
func testTraces(t *testing.T) {
	covers(t)
	c := startCollector(t, "otelcol-traces")
	w := &tracing{collector: c, history: watchHistory(t, "traces"), users: map[string]user{}}
	// Standard environment variables; other tests use the flags.
	w.sender = startClusterSender(t, "traces", []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.grpc, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_BSP_SCHEDULE_DELAY=200",
	})
	w.before = w.page(t)

	setBehaviour(t, "{prepareDelay: 3s, bindingDelay: 4s}")
	deploy(t, "traces")
	for _, pod := range []string{"late", "prompt", "holder"} {
		w.users[pod] = userOf(t, "traces", pod)
		running(t, "traces", pod)
	}
	t.Run("delays", w.testDelays)
	t.Run("exemplars", w.testExemplars)
	t.Run("deleted while pending", w.testDeletedWhilePending)
	t.Run("waiting for a device", w.testWaited)
	t.Run("preparation fails", w.testPreparationFails)
	t.Run("restart", w.testRestart)
}

// page scrapes the page of the role that pushes.
func (w *tracing) page(t *testing.T) *scrape.Page {
	t.Helper()
	p, err := scrape.Fetch(t.Context(), w.sender.url+"metrics")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// userOf waits for the claim of a pod that has one.
func userOf(t *testing.T, namespace, name string) (u user) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "the claim of "+name, func(ctx context.Context) error {
		pod, err := shared.Client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(pod.Status.ResourceClaimStatuses) != 1 || pod.Status.ResourceClaimStatuses[0].ResourceClaimName == nil {
			return errors.New("it has none yet")
		}
		claim, err := shared.Client().ResourceV1().ResourceClaims(namespace).Get(ctx, *pod.Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		u = user{pod: string(pod.UID), claim: string(claim.UID)}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// traceTime is within which the trace of an ended pod must arrive.
const traceTime = 30 * time.Second

// waitWholeTrace waits until the collector has the trace of a running pod.
func (w *tracing) waitWholeTrace(t *testing.T, pod string, phases ...string) (root receivedSpan, byPhase map[string]receivedSpan) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), traceTime)
	defer cancel()
	err := cluster.Eventually(ctx, "the trace of "+pod, func(context.Context) error {
		all, err := w.spans(w.sender.name, "traces")
		if err != nil {
			return err
		}
		root, byPhase, err = wholeTrace(w.users[pod], all, phases...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for phase, s := range byPhase {
		if s.failed || s.attributes["error.type"] != nil {
			t.Errorf("%s of %s has failed: %v", phase, pod, s)
		}
	}
	w.checkAttributes(t, pod, root)
	return root, byPhase
}

// checkAttributes fails the test unless a span has the attributes of its pod
// and claim.
func (w *tracing) checkAttributes(t *testing.T, pod string, s receivedSpan) {
	t.Helper()
	for key, want := range map[string]any{
		"k8s.namespace.name": "traces", "k8s.pod.name": pod,
		"k8s.pod.uid": w.users[pod].pod, "dra.resourceclaim.uid": w.users[pod].claim,
	} {
		if s.attributes[key] != want {
			t.Errorf("%s of %s says that %s is %v, not %v", s.name, pod, key, s.attributes[key], want)
		}
	}
}

// workingPhases returns the phases of a pod without binding conditions.
func workingPhases() []string {
	if !shared.Has(releases.PromptSandboxes) {
		return []string{"allocation", "scheduling", "preparation_start"}
	}
	return []string{"allocation", "scheduling", "preparation", "start"}
}

// bindingPhases returns the phases of a pod with binding conditions.
func bindingPhases() []string {
	return append([]string{"allocation", "binding"}, workingPhases()[1:]...)
}

// testDelays: each span is as long as the histogram's observation and as the
// test's own, and the delays are in their phases.
func (w *tracing) testDelays(t *testing.T) {
	late, ofLate := w.waitWholeTrace(t, "late", bindingPhases()...)
	prompt, ofPrompt := w.waitWholeTrace(t, "prompt", workingPhases()...)
	if devices := fmt.Sprint(late.attributes["dra.devices"]); devices != "["+path.Join(lifeDriver, shared.NodeName(), "bind-0")+"]" {
		t.Errorf("late was given %s", devices)
	}
	after := w.page(t)
	w.checkHistograms(t, after, "bind.life", late, ofLate)
	w.checkHistograms(t, after, "share.example.com", prompt, ofPrompt)
	w.checkHistory(t, "late", ofLate, true)
	w.checkHistory(t, "prompt", ofPrompt, false)
	const slack = 4 * time.Second // for what else a phase takes on a busy machine
	for phase, delay := range map[string]time.Duration{"binding": 4 * time.Second, preparationPhase(): 3 * time.Second} {
		if took := ofLate[phase].length(); took < delay || took > delay+slack {
			t.Errorf("%s took %s, and was delayed by %s", phase, took, delay)
		}
	}
	for pod, phases := range map[string]map[string]receivedSpan{"late": ofLate, "prompt": ofPrompt} {
		for phase, s := range phases {
			delayed := phase == "ready" || pod == "late" && (phase == "binding" || phase == preparationPhase())
			// The scheduler checks binding conditions every five seconds.
			if most := 2500 * time.Millisecond; !delayed && phase != "scheduling" && s.length() > most || phase == "scheduling" && s.length() > 6*time.Second {
				t.Errorf("%s of %s took %s, and was not delayed", phase, pod, s.length())
			}
		}
	}
}

// checkHistograms fails the test unless the durations of the trace of a
// class's only pod are those of the histograms.
func (w *tracing) checkHistograms(t *testing.T, after *scrape.Page, class string, root receivedSpan, phases map[string]receivedSpan) {
	t.Helper()
	labels := scrape.Labels{"deviceclass": class}
	hadCount, had := w.before.Histogram("dra_claim_ready_duration_seconds", labels)
	count, has := after.Histogram("dra_claim_ready_duration_seconds", labels)
	if count-hadCount != 1 || math.Abs(has-had-root.length().Seconds()) > spanError(root) {
		t.Errorf("%s: %v pods were ready after %.6f s, the trace took %s", class, count-hadCount, has-had, root.length())
	}
	for phase, s := range phases {
		if phase == "ready" {
			continue
		}
		if count, took := deltas(w.before, after, class, phase); count != 1 || math.Abs(took-s.length().Seconds()) > spanError(s) {
			t.Errorf("%s: %s was observed %v times and took %.6f s, its span took %s (±%.3f)", class, phase, count, took, s.length(), spanError(s))
		}
	}
}

// spanError returns by how many seconds a span may be too long or too short:
// its own error bounds and a millisecond.
func spanError(s receivedSpan) float64 {
	const rounding = 0.001
	begin, _ := s.attributes["dra.phase.begin.error_seconds"].(float64)
	end, _ := s.attributes["dra.phase.end.error_seconds"].(float64)
	return begin + end + rounding
}

// checkHistory fails the test unless each phase begins and ends when the test
// observed it.
func (w *tracing) checkHistory(t *testing.T, pod string, phases map[string]receivedSpan, hasConditions bool) {
	t.Helper()
	times := w.history.timesOf(t, pod)
	ends := map[string]podStep{"allocation": allocated, "binding": attached, "scheduling": bound, "preparation": sandbox, "start": started, "preparation_start": started, "ready": started}
	begins := map[string]podStep{"allocation": pending, "binding": allocated, "scheduling": attached, "preparation": bound, "start": sandbox, "preparation_start": bound, "ready": pending}
	for phase, s := range phases {
		for what, bounds := range map[string][2]time.Time{"begins": {s.begin, times[begins[phase]]}, "ends": {s.end, times[ends[phase]]}} {
			if off := bounds[0].Sub(bounds[1]).Seconds(); math.Abs(off) > clockTolerance+spanError(s) {
				t.Errorf("%s of %s %s %.3f s from when we saw it", phase, pod, what, off)
			}
		}
	}
}
