package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// tracedPod is one more pod of the templates of testdata/claims/traces.yaml.
// Its arguments are a name and a template.
const tracedPod = `
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: traces}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimTemplateName: %s}]
`

// addPod creates such a pod.
func (w *tracing) addPod(t *testing.T, pod, template string) {
	t.Helper()
	if err := shared.Apply(t.Context(), fmt.Sprintf(tracedPod, pod, template)); err != nil {
		t.Fatal(err)
	}
	w.users[pod] = userOf(t, "traces", pod)
}

// waitPage waits until check accepts a page of the role that pushes.
func (w *tracing) waitPage(t *testing.T, what string, check func(*scrape.Page) error) {
	t.Helper()
	err := cluster.Eventually(t.Context(), what, func(ctx context.Context) error {
		p, err := scrape.Fetch(ctx, w.sender.url+"metrics")
		if err != nil {
			return err
		}
		return check(p)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waitFailedTrace waits for the trace of a pod that ended before it ran. It
// must have these phases. The last of them and the root must have failed for
// this reason.
func (w *tracing) waitFailedTrace(t *testing.T, pod, reason string, phases ...string) map[string]receivedSpan {
	t.Helper()
	var root receivedSpan
	var byPhase map[string]receivedSpan
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
	w.checkAttributes(t, pod, root)
	last := phases[len(phases)-1]
	for phase, s := range byPhase {
		if want := phase == "ready" || phase == last; s.failed != want || want && s.attributes["error.type"] != reason {
			t.Errorf("%s of %s has failed: %v, because of %v (%s)", phase, pod, s.failed, s.attributes["error.type"], s.message)
		}
	}
	return byPhase
}

// waitDevicesInUse waits until a pod is pending because all devices of its
// class are in use.
func (w *tracing) waitDevicesInUse(t *testing.T, pod string) {
	t.Helper()
	labels := scrape.Labels{"namespace": "traces", "pod": pod}
	w.waitPage(t, pod+" to wait", func(p *scrape.Page) error { return hasReason(p, labels, "insufficient_devices") })
}

// minReasonTime is for how long a reason must last before it is reported as an
// event: until then only one of two watches may have delivered its change.
const minReasonTime = 3 * time.Second

// testDeletedWhilePending: a pod that was never allocated its device has a
// trace.
func (w *tracing) testDeletedWhilePending(t *testing.T) {
	w.addPod(t, "doomed", "only")
	w.waitDevicesInUse(t, "doomed")
	time.Sleep(minReasonTime)
	remove(t, "traces", "doomed")
	spans := w.waitFailedTrace(t, "doomed", "pod_deleted", "allocation")
	checkWaitEvents(t, spans["allocation"])
}

// checkWaitEvents fails the test unless a span has an event that devices were
// in use, within its duration.
func checkWaitEvents(t *testing.T, s receivedSpan) {
	t.Helper()
	e := s.event("pending", "insufficient_devices")
	if e == nil {
		t.Fatalf("no event has the reason why it waited: %v", s)
	}
	if e.at.Before(s.begin) || e.at.After(s.end) {
		t.Errorf("the event is of %s, the span from %s to %s", e.at, s.begin, s.end)
	}
	if message, _ := e.attributes["dra.event.message"].(string); !strings.Contains(message, "request main asks for 1 device") {
		t.Errorf("it says %q", message)
	}
}

// testWaited: the trace of a pod that was pending has the reason as an event.
func (w *tracing) testWaited(t *testing.T) {
	w.addPod(t, "waiter", "only")
	w.waitDevicesInUse(t, "waiter")
	time.Sleep(minReasonTime)
	remove(t, "traces", "holder")
	running(t, "traces", "waiter")
	root, spans := w.waitWholeTrace(t, "waiter", workingPhases()...)
	checkWaitEvents(t, spans["allocation"])
	if at := spans["allocation"].length(); at < minReasonTime || at > root.length() {
		t.Errorf("it waited for %s of %s", at, root.length())
	}
}

// testPreparationFails: the kubelet's message about each attempt is an event
// of the span of the preparation.
func (w *tracing) testPreparationFails(t *testing.T) {
	setBehaviour(t, "prepareError: no such cable")
	before := w.page(t)
	w.addPod(t, "broken", "gpu")
	boundPod(t, "traces", "broken")
	w.waitPage(t, "a preparation that fails", func(p *scrape.Page) error {
		return counterIncreased(before, p, "dra_allocation_failures_total", scrape.Labels{"deviceclass": "gpu.life", "reason": "preparation_failed"})
	})
	remove(t, "traces", "broken")
	spans := w.waitFailedTrace(t, "broken", "pod_deleted", "allocation", "scheduling", preparationPhase())
	e := spans[preparationPhase()].event("FailedPrepareDynamicResources", "preparation_failed")
	if e == nil {
		t.Fatalf("no event reports the failed preparation: %v", spans[preparationPhase()])
	}
	if message, _ := e.attributes["dra.event.message"].(string); !strings.Contains(message, "no such cable") {
		t.Errorf("the driver reported %q", message)
	}
}

// testRestart: after a restart the process pushes no span again.
func (w *tracing) testRestart(t *testing.T) {
	first, err := w.spans(w.sender.name, "traces")
	if err != nil {
		t.Fatal(err)
	}
	old := processStart(t, w.page(t))
	kill(t, w.sender.process)
	start(t, w.sender.process)
	w.waitPage(t, "another process", func(p *scrape.Page) error {
		if processStart(t, p) == old {
			return errors.New("it is the same process")
		}
		return nil
	})
	w.addPod(t, "fence", "gpu")
	running(t, "traces", "fence")
	w.waitWholeTrace(t, "fence", workingPhases()...)
	all, err := w.spans(w.sender.name, "traces")
	if err != nil {
		t.Fatal(err)
	}
	if own := traceOf(w.users["fence"], all); len(all) != len(first)+len(own) {
		t.Errorf("%d spans were reported, %d of them by the process before, and %d of the new pod", len(all), len(first), len(own))
	}
	w.checkOnce(t, all)
}

// checkOnce fails the test if a span occurs twice, or a pod has several
// traces.
func (w *tracing) checkOnce(t *testing.T, all []receivedSpan) {
	t.Helper()
	seen, traces := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		if seen[s.trace+s.id] {
			t.Errorf("a span was reported twice: %v", s)
		}
		seen[s.trace+s.id], traces[s.trace] = true, true
	}
	if len(traces) != len(w.users) {
		t.Errorf("there are %d traces of %d pods", len(traces), len(w.users))
	}
}
