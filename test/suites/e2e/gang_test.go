package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// gangManifests are a gang of three and the templates of its claims: no device
// satisfies those of the second.
const gangManifests = `
apiVersion: v1
kind: Namespace
metadata: {name: gang}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: gang}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: none, namespace: gang}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, selectors: [{cel: {expression: 'device.driver == "none"'}}]}}]}}}
---
apiVersion: ` + cluster.PodGroupVersion + `
kind: PodGroup
metadata: {name: ring, namespace: gang}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
`

// gangPod is a pod of the gang, whose claim is made from a template.
func gangPod(name, template string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: gang}
spec:
  terminationGracePeriodSeconds: 1
  schedulingGroup: {podGroupName: ring}
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: %s}]
`, name, template)
}

// TestGang: while the real scheduler places no pod of a gang, because one does not
// exist or has no device, the others have the reason gang_quorum, which names it. The
// reason ends when the gang is placed.
func TestGang(t *testing.T) {
	covers(t)
	if !shared.Has(releases.PodGroups) {
		t.Skip("this release has no PodGroups of the version that is read")
	}
	deployText(t, "gang", gangManifests+gangPod("ring-0", "gpu")+gangPod("ring-1", "gpu"))
	reason := func(p *scrape.Page, pod, reason string) error {
		return hasGauge(p, "dra_claim_pending_reason_info", scrape.Labels{"namespace": "gang", "pod": pod, "reason": reason}, 1)
	}
	explains := func(what string, words ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		text := ""
		err := cluster.Eventually(ctx, what, func(context.Context) error {
			text = explain(t, "workload", "gang/ring")
			for _, part := range words {
				if !strings.Contains(text, part) {
					return fmt.Errorf("explain does not say %q", part)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
	}
	waitClusterPage(t, "a gang without its last pod", func(p *scrape.Page) error {
		return errors.Join(reason(p, "ring-0", "gang_quorum"), reason(p, "ring-1", "gang_quorum"),
			hasGauge(p, "dra_workload_min_pods", scrape.Labels{"namespace": "gang", "workload_kind": "PodGroup", "workload": "ring"}, 3))
	})
	explains("that a pod does not exist", "PodGroup gang/ring is pending", "2 pods: 2 pending; its gang needs 3", "pods that exist: 2")

	deployText(t, "gang", strings.TrimPrefix(gangPod("ring-2", "none"), "\n---\n"))
	waitClusterPage(t, "a gang of which one pod has no device", func(p *scrape.Page) error {
		return errors.Join(reason(p, "ring-0", "gang_quorum"), reason(p, "ring-1", "gang_quorum"), reason(p, "ring-2", "no_matching_device"))
	})
	explains("which pod has no device", "Pending: no_matching_device", "Pending: gang_quorum", "pod ring-2 is pending because of no_matching_device")
	text := explain(t, "pod", "gang/ring-0")
	for _, words := range []string{": gang_quorum", "pod ring-2 is pending because of no_matching_device", "dra-exporter explain pod gang/ring-2"} {
		if !strings.Contains(text, words) {
			t.Errorf("explain does not say %q:\n%s", words, text)
		}
	}

	now := int64(0)
	if err := shared.Client().CoreV1().Pods("gang").Delete(t.Context(), "ring-2", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	deployText(t, "gang", strings.TrimPrefix(gangPod("ring-3", "gpu"), "\n---\n"))
	waitClusterPage(t, "a gang that runs", func(p *scrape.Page) error {
		if rows := p.Rows("dra_claim_pending_reason_info", scrape.Labels{"namespace": "gang"}); len(rows) > 0 {
			return fmt.Errorf("still pending: %v", rows)
		}
		return hasGauge(p, "dra_workload_pods", scrape.Labels{"namespace": "gang", "workload": "ring", "state": "running"}, 3)
	})
	explains("that it runs", "PodGroup gang/ring has 3 pods: 3 running; its gang needs 3")
}
