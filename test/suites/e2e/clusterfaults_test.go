package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// accountWithoutSlices is an account with the permissions of the shipped one,
// except for ResourceSlices.
const accountWithoutSlices = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: blind, namespace: dra-exporter}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: blind}
rules:
- {apiGroups: [resource.k8s.io], resources: [resourceclaims, resourceclaimtemplates, deviceclasses, devicetaintrules], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods, nodes, events], verbs: [get, list, watch]}
- {apiGroups: [scheduling.k8s.io], resources: [podgroups], verbs: [get, list, watch]}
- {apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [get, list, watch]}
- {apiGroups: [resource.nvidia.com], resources: [computedomains], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: blind}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: blind}
subjects: [{kind: ServiceAccount, name: blind, namespace: dra-exporter}]
`

// TestClusterPermission: a kind that cannot be read is reported and its
// families are absent. The other families equal those of an account with all
// permissions.
func TestClusterPermission(t *testing.T) {
	covers(t)
	deployText(t, "turns", heldPods)
	deployText(t, "turns", secondPod)
	running(t, "turns", "first")
	if err := shared.Apply(t.Context(), accountWithoutSlices); err != nil {
		t.Fatal(err)
	}
	url, err := runClusterRole(t.Context(), "exporter-blind", "blind")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(shared.EndProgram("exporter-blind"), shared.Delete(context.WithoutCancel(t.Context()), accountWithoutSlices)); err != nil {
			t.Error(err)
		}
	})
	pendingLabels := scrape.Labels{"namespace": "turns", "pod": "second"}
	err = cluster.Eventually(t.Context(), "a page without slices", func(ctx context.Context) error {
		p, err := scrape.Fetch(ctx, url+"metrics")
		if err != nil {
			return err
		}
		all := clusterPage(t)
		since, err := all.One("dra_claim_pending_since_timestamp_seconds", pendingLabels)
		if err != nil {
			return err
		}
		errs := []error{
			hasGauge(p, "dra_exporter_source_up", scrape.Labels{"source": "resourceslices"}, 0),
			hasGauge(p, "dra_exporter_source_error_info", scrape.Labels{"source": "resourceslices", "reason": "permission_denied"}, 1),
			hasGauge(p, "dra_exporter_source_up", scrape.Labels{"source": "resourceclaims"}, 1),
			hasGauge(p, "dra_claim_pending_since_timestamp_seconds", pendingLabels, since.Value),
		}
		for _, family := range []string{"dra_devices", "dra_class_devices", "dra_pool_complete", "dra_capacity", "dra_claim_pending_candidates"} {
			errs = append(errs, hasNoRow(p, family, nil))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestClusterAPIServer: while the API server is down every page has its
// previous values and reports their age. Afterwards updates continue.
func TestClusterAPIServer(t *testing.T) {
	covers(t)
	deployText(t, "turns", heldPods)
	running(t, "turns", "first")
	deployText(t, "turns", secondPod)
	waits := scrape.Labels{"namespace": "turns", "pod": "second"}
	before := waitClusterPage(t, "the second pod to wait", func(p *scrape.Page) error { return hasReason(p, waits, "insufficient_devices") })
	check := clusterWatcher.CheckRule(func(p *scrape.Page) []error {
		err := errors.Join(sameStartTimes(before, p), observed(before, p, "only.life", 0))
		if err != nil {
			return []error{err}
		}
		return nil
	})
	apiserver := shared.Process("apiserver")
	kill(t, apiserver)
	waitClusterPage(t, "pods to be down", func(p *scrape.Page) error {
		return hasGauge(p, "dra_exporter_source_up", scrape.Labels{"source": "pods"}, 0)
	})
	time.Sleep(10 * time.Second)
	start(t, apiserver)
	waitClusterPageWithin(t, unhealthyTimeout, "every source that was up", func(p *scrape.Page) error {
		var errs []error
		for _, row := range before.Rows("dra_exporter_source_up", nil) {
			errs = append(errs, hasGauge(p, "dra_exporter_source_up", row.Labels, row.Value))
		}
		return errors.Join(errs...)
	})
	endRuleCheck(t, check, 10)
	waitDevicesPublished(t)
	remove(t, "turns", "first")
	running(t, "turns", "second")
	waitClusterPage(t, "the second pod to be ready", func(p *scrape.Page) error { return observed(before, p, "only.life", 1) })
}

const preparedPod = `
apiVersion: v1
kind: Namespace
metadata: {name: prepared}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: prepared}
spec: {spec: {devices: {requests: [{name: main, exactly: {deviceClassName: gpu.life}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: prepared}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimTemplateName: gpu}]
`

// TestClusterDriverKilled: while a driver is down before it prepares a claim,
// the phase of preparation does not end.
func TestClusterDriverKilled(t *testing.T) {
	covers(t)
	before := clusterPage(t)
	driver := shared.Process("driver-" + lifeDriver)
	kill(t, driver)
	deployText(t, "prepared", preparedPod)
	bound := boundPod(t, "prepared", "train")
	stuck := scrape.Labels{"namespace": "prepared", "pod": "train", "phase": preparationPhase()}
	failures := scrape.Labels{"deviceclass": "gpu.life", "reason": "preparation_failed"}
	waitClusterPage(t, "preparation under way", func(p *scrape.Page) error {
		return errors.Join(
			hasGauge(p, "dra_claim_phase_since_timestamp_seconds", stuck, scheduledAt(bound)),
			counterIncreased(before, p, "dra_allocation_failures_total", failures),
			hasNoRow(p, "dra_claim_pending_since_timestamp_seconds", scrape.Labels{"namespace": "prepared"}),
		)
	})
	check := clusterWatcher.CheckRule(func(p *scrape.Page) []error {
		if err := hasGauge(p, "dra_claim_phase_since_timestamp_seconds", stuck, scheduledAt(bound)); err != nil {
			return []error{err}
		}
		return nil
	})
	time.Sleep(10 * time.Second)
	endRuleCheck(t, check, 10)
	started := time.Now()
	start(t, driver)
	running(t, "prepared", "train")
	after := waitClusterPage(t, "the end of preparation", func(p *scrape.Page) error {
		return errors.Join(hasNoRow(p, "dra_claim_phase_since_timestamp_seconds", scrape.Labels{"namespace": "prepared"}), observed(before, p, "gpu.life", 1))
	})
	away := float64(started.UnixMilli())/1000 - scheduledAt(bound)
	if count, took := deltas(before, after, "gpu.life", preparationPhase()); count != 1 || took < away-2 {
		t.Errorf("preparation was observed %v times and took %.3f s; the driver came back %.3f s after the pod was bound", count, took, away)
	}
}

// preparationPhase is the phase in which devices are prepared.
func preparationPhase() string {
	if !shared.Has(releases.PromptSandboxes) {
		return "preparation_start"
	}
	return "preparation"
}

func boundPod(t *testing.T, namespace, name string) (pod *corev1.Pod) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "pod "+name+" bound", func(ctx context.Context) (err error) {
		pod, err = shared.WaitPod(ctx, namespace, name, corev1.PodPending)
		if err == nil && scheduledAt(pod) == 0 {
			err = errors.New("it is not scheduled")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// scheduledAt is the time at which the pod was bound according to the API
// server, 0 if it is not bound.
func scheduledAt(pod *corev1.Pod) float64 {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return float64(condition.LastTransitionTime.Unix())
		}
	}
	return 0
}
