package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// alphaDriver publishes what is alpha in Kubernetes 1.37.
const alphaDriver = "alpha.example.com"

// alphaClasses are the classes of alpha.example.com, one for each type of
// device.
const alphaClasses = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: plain.alpha}
spec: {selectors: [{cel: {expression: "device.driver == 'alpha.example.com' && device.attributes['alpha.example.com'].type == 'plain'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: prepared.alpha}
spec: {selectors: [{cel: {expression: "device.driver == 'alpha.example.com' && device.attributes['alpha.example.com'].type == 'prepared'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: half.alpha}
spec: {selectors: [{cel: {expression: "device.driver == 'alpha.example.com' && device.attributes['alpha.example.com'].?profile.orValue('') == 'half'"}}]}
`

// alphaDelay is longer than the start of a pod takes, even on a busy machine.
const alphaDelay = 10 * time.Second

// startAlphaDriver starts alpha.example.com, which prepares slowly, until the
// test ends.
func startAlphaDriver(t *testing.T) {
	t.Helper()
	if err := shared.Apply(t.Context(), alphaClasses); err != nil {
		t.Fatal(err)
	}
	behaviour := filepath.Join(t.TempDir(), "behaviour.yaml")
	if err := os.WriteFile(behaviour, fmt.Appendf(nil, "{prepareDelay: %s}", alphaDelay), 0o600); err != nil {
		t.Fatal(err)
	}
	devices, err := devicesFile(shared, alphaDriver+".yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The driver outlives its test, so that its claims can be unprepared.
	driver, err := shared.StartShapesDriver(context.WithoutCancel(t.Context()), alphaDriver, devices, "--behaviour", behaviour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := driver.Stop(); err != nil {
			t.Error(err)
		}
		err := shared.Client().ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "spec.driver=" + alphaDriver})
		if err != nil {
			t.Error(err)
		}
	})
}

const skippingPods = `
apiVersion: v1
kind: Namespace
metadata: {name: skip}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: plain, namespace: skip}
spec: {spec: {devices: {requests: [{name: main, exactly: {deviceClassName: plain.alpha}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: mixed, namespace: skip}
spec:
  spec:
    devices:
      requests:
      - {name: plain, exactly: {deviceClassName: plain.alpha}}
      - {name: prepared, exactly: {deviceClassName: prepared.alpha}}
---
apiVersion: v1
kind: Pod
metadata: {name: skips, namespace: skip}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimTemplateName: plain}]
---
apiVersion: v1
kind: Pod
metadata: {name: mixes, namespace: skip}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimTemplateName: mixed}]
`

// TestClusterSkippedPreparation: a pod whose claim's devices all skip
// preparation has no such phase, while the driver delays the preparation of the
// other.
func TestClusterSkippedPreparation(t *testing.T) {
	covers(t)
	if lacks(t, releases.SkippedOperations) {
		return // TestFeatures asserts that the API server drops the field
	}
	startAlphaDriver(t)
	before := clusterPage(t)
	deployText(t, "skip", skippingPods)
	running(t, "skip", "skips")
	text := explain(t, "pod", "skip/skips")
	if !strings.Contains(text, "its devices need no preparation on the node") {
		t.Errorf("explain does not say that nothing is prepared:\n%s", text)
	}
	running(t, "skip", "mixes")
	after := waitClusterPage(t, "two pods to be ready", func(p *scrape.Page) error {
		return errors.Join(observed(before, p, "plain.alpha", 1), observed(before, p, "multiple", 1))
	})
	for class, want := range map[string]map[string]float64{
		"plain.alpha": {"allocation": 1, "scheduling": 1, "start": 1},
		"multiple":    {"allocation": 1, "scheduling": 1, "preparation": 1, "start": 1},
	} {
		for _, phase := range allPhases() {
			if count, took := deltas(before, after, class, phase); count != want[phase] {
				t.Errorf("%s: %s was observed %v times (%.3f s), not %v", class, phase, count, took, want[phase])
			}
		}
		checkPhasesAddUp(t, before, after, class)
	}
	if _, took := deltas(before, after, "multiple", "preparation"); took < alphaDelay.Seconds() {
		t.Errorf("the preparation took %.3f s, and was delayed by %s", took, alphaDelay)
	}
	if _, took := deltas(before, after, "plain.alpha", "start"); took >= alphaDelay.Seconds() {
		t.Errorf("the start of the pod that is not prepared took %.3f s", took)
	}
}

const evictedPod = `
apiVersion: v1
kind: Namespace
metadata: {name: evicted}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: only, namespace: evicted}
spec:
  spec:
    devices:
      requests:
      - name: main
        exactly:
          deviceClassName: only.life
          tolerations: [{key: e2e.example.com/worn, operator: Exists, effect: NoExecute, tolerationSeconds: 20}]
---
apiVersion: v1
kind: Pod
metadata: {name: late, namespace: evicted}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimTemplateName: only}]
`

// TestClusterEvictionProgress: a pod that tolerates a taint for some time has
// yet to be evicted during that time. Before Kubernetes 1.35 the controller
// manager does not report it.
func TestClusterEvictionProgress(t *testing.T) {
	covers(t)
	deployText(t, "evicted", evictedPod)
	running(t, "evicted", "late")
	applyRule(t, "NoExecute")
	name := scrape.Labels{"rule": "e2e"}
	if lacks(t, releases.EvictionProgress) {
		waitClusterPage(t, "the rule", func(p *scrape.Page) error {
			return hasGauge(p, "dra_device_taints", scrape.Labels{"driver": lifeDriver, "key": "e2e.example.com/worn"}, 1)
		})
		if err := hasNoRow(clusterPage(t), "dra_taint_rule_eviction_in_progress", name); err != nil {
			t.Error(err)
		}
		return
	}
	waitClusterPage(t, "the eviction to be in progress", func(p *scrape.Page) error {
		return hasGauge(p, "dra_taint_rule_eviction_in_progress", name, 1)
	})
	waitClusterPageWithin(t, 2*time.Minute, "the end of the eviction", func(p *scrape.Page) error {
		return hasGauge(p, "dra_taint_rule_eviction_in_progress", name, 0)
	})
	waitPodGone(t, "evicted", "late")
	pending := fmt.Sprintf(pendingOnRule, "evicted")
	deployText(t, "evicted", pending)
	waitClusterPage(t, "a pod that does not tolerate it", func(p *scrape.Page) error {
		return hasReason(p, scrape.Labels{"namespace": "evicted", "pod": "next"}, "tainted")
	})
	if text := explain(t, "pod", "evicted/next"); !strings.Contains(text, "eviction by the rule: Completed: 1 pod evicted since starting the controller") {
		t.Errorf("explain does not have the state of the eviction:\n%s", text)
	}
}

// pendingOnRule is a pod for the device that a rule taints. Its argument is the
// namespace.
const pendingOnRule = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: next, namespace: %[1]s}
spec: {devices: {requests: [{name: main, exactly: {deviceClassName: only.life}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: next, namespace: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimName: next}]
`
