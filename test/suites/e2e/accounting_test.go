package e2e

import (
	"math"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const shortJob = `
apiVersion: v1
kind: Namespace
metadata: {name: short}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: short}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: job, namespace: short}
spec:
  restartPolicy: Never
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, args: [sleep, "10"], resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
`

// TestShortJob runs a pod for 10 s between two scrapes that are 60 s apart, so
// that no scrape observes its claim holding a device. This agent's grace
// period is 30 s, so that the job must end in the second half of the time
// between the scrapes.
func TestShortJob(t *testing.T) {
	covers(t)
	const interval = 60 * time.Second
	s := startPrometheus(t, "prometheus-accounting", monitorJob(t, interval))
	first := s.waitRows(t, `timestamp(dra_exporter_build_info{instance="`+shared.NodeName()+`"})`, oneRow)[0]
	next := time.UnixMilli(int64(first.Value * 1000)).Add(interval)
	for key := range first.Labels {
		if slices.Contains([]string{"pod", "namespace", "container", "endpoint"}, key) {
			t.Errorf("the exporter's own label %s is there: %s", key, first.Labels)
		}
	}
	if early := time.Until(next.Add(-35 * time.Second)); early > 0 {
		time.Sleep(early)
	}
	history := watchHistory(t, "short")
	deployText(t, "short", shortJob)
	if _, err := shared.WaitPod(t.Context(), "short", "job", corev1.PodSucceeded); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	released := eventually(t, "the claim to let go", func(p *scrape.Page) error { return heldOnly(p, "short") })
	if !released.At.Before(next) {
		t.Fatalf("the job has not ended before the scrape at %s", next)
	}
	total, err := released.One("dra_namespace_device_seconds_total", scrape.Labels{"namespace": "short", "deviceclass": "gpu.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	checkDeviceSeconds(t, history.timesOf(t, "job"), ended, total.Value)

	raw := s.waitRows(t, `dra_namespace_device_seconds_total{namespace="short"}`, oneRow)[0]
	if raw.Value != total.Value {
		t.Errorf("the raw total is %v, on the agent's page %v", raw.Value, total.Value)
	}
	for _, expr := range []string{
		`claim_device:dra_claim_device_seconds:increase5m{namespace="short"}`,
		`claim_device:dra_claim_held_seconds:increase5m{namespace="short"}`,
		`namespace_class:dra_namespace_device_seconds:increase5m{namespace="short"}`,
	} {
		if row := s.waitRows(t, expr, oneRow)[0]; row.Value != total.Value {
			t.Errorf("%s is %v, not %v", expr, row.Value, total.Value)
		}
	}
	for _, blind := range []string{
		`count_over_time(dra_claim_held{namespace="short"}[5m])`,
		`increase(dra_claim_device_seconds_total{namespace="short"}[5m]) > 0`,
	} {
		if rows, err := s.query(t.Context(), blind); err != nil || len(rows) > 0 {
			t.Errorf("the job is no test of the rule: %s is %v (%v)", blind, rows, err)
		}
	}
	s.checkRulesHealthy(t)
}

// checkDeviceSeconds compares device-seconds with what the test observed: the
// hold begins when the claim is reserved and ends when the pod has ended. The
// agent observes both up to a second later.
func checkDeviceSeconds(t *testing.T, steps stepTimes, ended time.Time, seconds float64) {
	t.Helper()
	held := ended.Sub(steps[bound]).Seconds()
	t.Logf("the pod held its device for %.2f s; the agent counted %.2f s", held, seconds)
	if steps[bound].IsZero() || held < 10 || math.Abs(seconds-held) > 2 {
		t.Errorf("it counted %.2f s of %.2f s", seconds, held)
	}
}
