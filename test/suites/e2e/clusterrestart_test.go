package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const heldPods = `
apiVersion: v1
kind: Namespace
metadata: {name: turns}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: only, namespace: turns}
spec: {spec: {devices: {requests: [{name: main, exactly: {deviceClassName: only.life}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: first, namespace: turns}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimTemplateName: only}]
`

const secondPod = `
apiVersion: v1
kind: Pod
metadata: {name: second, namespace: turns}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimTemplateName: only}]
`

// TestClusterRestart: after a restart the process observes nothing that
// happened before it, reports the same pending claims, and observes a pending
// claim that began before the restart.
func TestClusterRestart(t *testing.T) {
	covers(t)
	deployText(t, "turns", heldPods)
	running(t, "turns", "first")
	history := watchHistory(t, "turns")
	deployText(t, "turns", secondPod)
	pendingLabels := scrape.Labels{"namespace": "turns", "pod": "second"}
	before := waitClusterPage(t, "the second pod to wait", func(p *scrape.Page) error {
		return hasReason(p, pendingLabels, "insufficient_devices")
	})

	exporter := shared.Process(clusterProcess)
	kill(t, exporter)
	time.Sleep(2 * time.Second)
	start(t, exporter)
	after := waitClusterPage(t, "another process that says the same", func(p *scrape.Page) error {
		if processStart(t, p) == processStart(t, before) {
			return errors.New("it is the same process")
		}
		return errors.Join(hasReason(p, pendingLabels, "insufficient_devices"), sameStartTimes(before, p))
	})
	for _, family := range []string{"dra_allocation_duration_seconds", "dra_claim_ready_duration_seconds"} {
		if count, _ := after.Histogram(family, nil); count != 0 {
			t.Errorf("%s has %v observations of what was before", family, count)
		}
	}

	remove(t, "turns", "first")
	running(t, "turns", "second")
	ended := waitClusterPage(t, "the second pod to be ready", func(p *scrape.Page) error { return observed(after, p, "only.life", 1) })
	times := history.timesOf(t, "second")
	count, took := deltas(after, ended, "only.life", "allocation")
	// The claim was pending before this process started, so its start is
	// truncated to the second.
	if want := times[allocated].Sub(times[pending]).Seconds(); count != 1 || took < want-clockTolerance || took > want+1+clockTolerance {
		t.Errorf("the wait was observed %v times and took %.3f s, not %.3f", count, took, want)
	}
	if err := hasNoRow(ended, "dra_claim_pending_since_timestamp_seconds", pendingLabels); err != nil {
		t.Error(err)
	}
}

// hasReason returns an error unless the pod's claim is pending for this
// reason.
func hasReason(p *scrape.Page, pod scrape.Labels, reason string) error {
	row, err := p.One("dra_claim_pending_reason_info", pod)
	if err == nil && row.Labels["reason"] != reason {
		err = fmt.Errorf("%s waits because of %s, not %s", pod, row.Labels["reason"], reason)
	}
	return err
}

// sameStartTimes returns an error unless both pages have the same start times.
func sameStartTimes(before, after *scrape.Page) error {
	for _, family := range []string{"dra_claim_pending_since_timestamp_seconds", "dra_claim_phase_since_timestamp_seconds", "dra_claim_terminating_since_timestamp_seconds"} {
		for _, row := range before.Rows(family, nil) {
			if err := hasGauge(after, family, row.Labels, row.Value); err != nil {
				return err
			}
		}
		if was, is := before.Count(family, nil), after.Count(family, nil); was != is {
			return fmt.Errorf("%s had %d rows and has %d", family, was, is)
		}
	}
	return nil
}
