package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

const pendingAlert = "DRAClaimPendingTooLong"

// lateClass is a device class with a selector that the test sets. latePods are
// two pods with a claim of that class, one of which has a scheduling gate.
const (
	lateClass = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: late.alerts}
spec: {selectors: [{cel: {expression: "%s"}}]}
`
	latePods = `
apiVersion: v1
kind: Namespace
metadata: {name: alerts}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: late, namespace: alerts}
spec: {spec: {devices: {requests: [{name: main, exactly: {deviceClassName: late.alerts}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: late, namespace: alerts}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: late}]
---
apiVersion: v1
kind: Pod
metadata: {name: gated, namespace: alerts}
spec:
  terminationGracePeriodSeconds: 1
  schedulingGates: [{name: e2e.example.com/later}]
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: late}]
`
)

// TestPendingAlert: Alertmanager notifies of a pending claim, with annotations
// that say what is wrong. It does so once, even if the reason changes, not
// while the pod is gated, and it notifies when the alert is resolved.
func TestPendingAlert(t *testing.T) {
	covers(t)
	a := startAlertmanager(t, "alertmanager-pending")
	serve(t, "prometheus-pending", serverConfig{
		jobs:         []object{monitorJob(t, 2*time.Second), clusterJob(clusterURL, 2*time.Second)},
		rules:        []string{shippedRules(t), ruleFile(t, alertRules, pendingReplacements()...)},
		every:        time.Second,
		alertmanager: a.address,
		flags:        []string{"--rules.alert.resend-delay=1s"}, // Prometheus sends changed annotations immediately
	})
	deployText(t, "alerts", latePods)
	t.Cleanup(func() {
		if err := shared.Delete(context.WithoutCancel(t.Context()), fmt.Sprintf(lateClass, "false")); err != nil {
			t.Error(err)
		}
	})
	first := a.waitNotified(t, "the alert of the pod that waits", func(n notification) bool { return pendingFor(n, "late", "firing") })
	checkPendingAnnotations(t, first)
	if waited := first.at.Sub(a.began); waited < 5*time.Second {
		t.Errorf("the alert arrived after %s", waited)
	}

	setLateSelector(t, "false")
	second := a.waitFiring(t, "another reason", func(n notification) bool {
		return n.Labels["pod"] == "late" && strings.Contains(n.Annotations["description"], "no_matching_device")
	})
	if second.Fingerprint != first.Fingerprint || !second.StartsAt.Equal(first.StartsAt) {
		t.Errorf("with another reason it is another alert:\n%v\nnot\n%v", second, first)
	}
	checkNotNotified(t, a, "gated")
	ungate(t, "alerts", "gated")
	a.waitNotified(t, "the alert of the pod that was gated", func(n notification) bool { return pendingFor(n, "gated", "firing") })

	setLateSelector(t, "device.driver == 'life.example.com' && device.attributes['life.example.com'].type == 'gpu'")
	running(t, "alerts", "late")
	over := a.waitNotified(t, "the end of the wait", func(n notification) bool { return pendingFor(n, "late", "resolved") })
	if over.Fingerprint != first.Fingerprint {
		t.Errorf("%v ended, and %v began", over, first)
	}
	a.checkFiredAndResolvedOnce(t, "late")
}

// pendingReplacements replaces minutes by seconds in the alert.
func pendingReplacements() []replacement {
	const text = `(dra_claim_pending_since_timestamp_seconds) > %s
          unless on (cluster, namespace, pod, pod_claim)
          last_over_time(dra_claim_pending_reason_info{reason=~"scheduling_gated|queue_quota"}[%s])
        keep_firing_for: %s
`
	return []replacement{{fmt.Sprintf(text, "900", "15m", "5m"), fmt.Sprintf(text, "5", "5s", "1s"), 1}}
}

func pendingFor(n notification, pod, status string) bool {
	return n.Labels["alertname"] == pendingAlert && n.Labels["namespace"] == "alerts" && n.Labels["pod"] == pod && n.Status == status
}

// checkPendingAnnotations fails the test unless the notification names the
// pod, the claim's class, the reason, and where to look.
func checkPendingAnnotations(t *testing.T, n notification) {
	t.Helper()
	summary, description := n.Annotations["summary"], n.Annotations["description"]
	for _, want := range []struct{ text, part string }{
		{summary, "alerts/late"}, {summary, "gpu"}, {summary, "device class"},
		{description, "late.alerts"}, {description, "no_device_class"},
		{n.Annotations["runbook_url"], "/docs/runbooks/" + pendingAlert + ".md"},
		{n.Annotations["dashboard_url"], "/d/dra-"}, {n.Annotations["dashboard_url"], "var-namespace=alerts"},
		{n.Labels["severity"], "warning"},
	} {
		if !strings.Contains(want.text, want.part) {
			t.Errorf("%q is not in %q", want.part, want.text)
		}
	}
	for _, text := range n.Annotations {
		if templateFailed(text) {
			t.Errorf("an annotation is %q", text)
		}
	}
	for _, label := range []string{"reason", "deviceclass", "resourceclaim"} {
		if value, there := n.Labels[label]; there {
			t.Errorf("%s=%s is a part of what the alert is", label, value)
		}
	}
	t.Logf("the webhook received:\n%s\n%s", summary, description)
}

// templateFailed reports whether a template of Prometheus failed in a text.
func templateFailed(text string) bool {
	return strings.Contains(text, "<no value>") || strings.Contains(text, "error expanding template")
}

// checkNotNotified fails the test if the webhook was notified of this pod.
func checkNotNotified(t *testing.T, a *alertmanager, pod string) {
	t.Helper()
	for _, n := range a.webhook.all() {
		if n.Labels["alertname"] == pendingAlert && n.Labels["pod"] == pod {
			t.Errorf("there is an alert of it: %v", n)
		}
	}
}

// checkFiredAndResolvedOnce fails the test unless the webhook was notified of
// this pod's alert twice: firing, then resolved.
func (a *alertmanager) checkFiredAndResolvedOnce(t *testing.T, pod string) {
	t.Helper()
	var statuses []any
	for _, n := range a.webhook.all() {
		if n.Labels["alertname"] == pendingAlert && n.Labels["pod"] == pod {
			statuses = append(statuses, n.Status)
		}
	}
	if !slices.Equal(statuses, []any{"firing", "resolved"}) {
		t.Errorf("of %s the webhook received %v", pod, statuses)
	}
}

// waitFiring waits until Alertmanager has a firing alert for which is returns
// true.
func (a *alertmanager) waitFiring(t *testing.T, what string, is func(notification) bool) (found notification) {
	t.Helper()
	err := cluster.Eventually(t.Context(), what, func(ctx context.Context) error {
		all, err := a.firing(ctx, pendingAlert)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, is)
		if i < 0 {
			return errors.New("there are " + fmt.Sprint(all))
		}
		found = all[i]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// setLateSelector sets the selector of the pods' device class.
func setLateSelector(t *testing.T, expression string) {
	t.Helper()
	if err := shared.Apply(t.Context(), fmt.Sprintf(lateClass, expression)); err != nil {
		t.Fatal(err)
	}
}

func ungate(t *testing.T, namespace, pod string) {
	t.Helper()
	patch := []byte(`{"spec":{"schedulingGates":[]}}`)
	if _, err := shared.Client().CoreV1().Pods(namespace).Patch(t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
