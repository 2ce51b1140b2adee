package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const unhealthyTimeout = 90 * time.Second

// TestClusterUnhealthy: claims that cannot be deleted, orphaned claims, failed
// preparation and binding, and devices whose health the driver and the kubelet
// report differently.
func TestClusterUnhealthy(t *testing.T) {
	covers(t)
	t.Run("terminating", testTerminating)
	t.Run("orphaned", testOrphaned)
	t.Run("preparation fails", testPreparationFails)
	t.Run("binding fails", testBindingFails)
	t.Run("health", testHealthDisagreement)
}

const stuckClaim = `
apiVersion: v1
kind: Namespace
metadata: {name: unhealthy}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: stuck, namespace: unhealthy, finalizers: [e2e.example.com/keep]}
spec: {devices: {requests: [{name: main, exactly: {deviceClassName: only.life}}]}}
`

func testTerminating(t *testing.T) {
	deployText(t, "unhealthy", stuckClaim)
	claims := shared.Client().ResourceV1().ResourceClaims("unhealthy")
	if err := claims.Delete(t.Context(), "stuck", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	claim, err := claims.Get(t.Context(), "stuck", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels := scrape.Labels{"namespace": "unhealthy", "resourceclaim": "stuck"}
	waitClusterPage(t, "a claim that cannot go", func(p *scrape.Page) error {
		return errors.Join(
			hasGauge(p, "dra_claim_terminating_since_timestamp_seconds", labels, float64(claim.DeletionTimestamp.Unix())),
			hasGauge(p, "dra_claims", scrape.Labels{"namespace": "unhealthy", "deviceclass": "only.life", "state": "terminating"}, 1),
		)
	})
	if text := explain(t, "claim", "unhealthy/stuck"); !strings.Contains(text, "e2e.example.com/keep") {
		t.Errorf("explain does not name the finalizer:\n%s", text)
	}
	free := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := claims.Patch(t.Context(), "stuck", types.MergePatchType, free, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	waitClusterPage(t, "the claim to be gone", func(p *scrape.Page) error {
		return hasNoRow(p, "dra_claim_terminating_since_timestamp_seconds", labels)
	})
}

const orphanedPod = `
apiVersion: v1
kind: Namespace
metadata: {name: unhealthy}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: orphan, namespace: unhealthy}
spec: {devices: {requests: [{name: main, exactly: {deviceClassName: only.life}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: leaver, namespace: unhealthy}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimName: orphan}]
`

// testOrphaned: while the controller manager is down, the reservation of a
// deleted pod is not removed.
func testOrphaned(t *testing.T) {
	deployText(t, "unhealthy", orphanedPod)
	running(t, "unhealthy", "leaver")
	manager := shared.Process("controller-manager")
	kill(t, manager)
	if err := shared.Client().CoreV1().Pods("unhealthy").Delete(t.Context(), "leaver", *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	orphaned := scrape.Labels{"namespace": "unhealthy", "resourceclaim": "orphan"}
	waitClusterPage(t, "an orphan", func(p *scrape.Page) error { return hasGauge(p, "dra_claim_orphaned", orphaned, 1) })
	if text := explain(t, "claim", "unhealthy/orphan"); !strings.Contains(text, "reserved for pod leaver, which does not exist") {
		t.Errorf("explain does not name the pod that is gone:\n%s", text)
	}
	start(t, manager)
	waitClusterPageWithin(t, unhealthyTimeout, "no orphan", func(p *scrape.Page) error { return hasNoRow(p, "dra_claim_orphaned", orphaned) })
}

func testPreparationFails(t *testing.T) {
	setBehaviour(t, "prepareError: no such cable")
	before := clusterPage(t)
	deployText(t, "prepared", preparedPod)
	boundPod(t, "prepared", "train")
	waitClusterPage(t, "a preparation that fails", func(p *scrape.Page) error {
		return counterIncreased(before, p, "dra_allocation_failures_total", scrape.Labels{"deviceclass": "gpu.life", "reason": "preparation_failed"})
	})
	if text := explain(t, "pod", "prepared/train"); !strings.Contains(text, "no such cable") {
		t.Errorf("explain does not say why:\n%s", text)
	}
}

const boundLate = `
apiVersion: v1
kind: Namespace
metadata: {name: unhealthy}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: cable, namespace: unhealthy}
spec: {devices: {requests: [{name: main, exactly: {deviceClassName: bind.life}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: cable, namespace: unhealthy}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimName: cable}]
`

func testBindingFails(t *testing.T) {
	setBehaviour(t, "{bindingDelay: 1s, bindingFailure: no such cable}")
	before := clusterPage(t)
	deployText(t, "unhealthy", boundLate)
	waitClusterPage(t, "a binding that fails", func(p *scrape.Page) error {
		return counterIncreased(before, p, "dra_allocation_failures_total", scrape.Labels{"deviceclass": "bind.life", "reason": "binding_failed"})
	})
}

// testHealthDisagreement: the driver's slice has no taint of the device, while
// the driver reports it as unhealthy to the kubelet.
func testHealthDisagreement(t *testing.T) {
	deployText(t, "turns", heldPods)
	running(t, "turns", "first")
	disagreement := scrape.Labels{"driver": lifeDriver, "pool": "node-a", "device": "only-0"}
	waitClusterPage(t, "both to be content", func(p *scrape.Page) error {
		if rows := p.Rows("dra_device_health_disagreement", disagreement); len(rows) == 1 && rows[0].Value != 0 {
			return fmt.Errorf("they disagree: %v", rows)
		}
		return nil
	})
	setBehaviour(t, "{unhealthy: [only-0], healthMessage: fan 2 has stopped}")
	if !shared.Has(releases.DeviceHealth) {
		waitClusterPage(t, "no health by the kubelet", func(p *scrape.Page) error {
			return hasNoRow(p, "dra_device_health_disagreement", disagreement)
		})
		return
	}
	waitClusterPageWithin(t, unhealthyTimeout, "two words on one device", func(p *scrape.Page) error {
		return hasGauge(p, "dra_device_health_disagreement", disagreement, 1)
	})
	waitKubeletMessage(t, "turns", "fan 2 has stopped")
}

// waitKubeletMessage waits until the agent's document of claims has the kubelet's
// message about a device of a claim of the namespace.
func waitKubeletMessage(t *testing.T, namespace, message string) {
	t.Helper()
	url, err := agentURL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSuffix(url, "metrics") + "api/v1/claims?namespace=" + namespace
	want := fmt.Sprintf(`"kubeletMessage": %q`, message)
	var document []byte
	for deadline := time.Now().Add(unhealthyTimeout); time.Now().Before(deadline); time.Sleep(time.Second) {
		response, err := http.Get(url)
		if err != nil {
			continue
		}
		document, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err == nil && strings.Contains(string(document), want) {
			return
		}
	}
	t.Errorf("the agent does not show %s:\n%s", want, document)
}
