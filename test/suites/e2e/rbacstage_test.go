package e2e

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
)

// podGroupManifest is a pod whose claim belongs to its PodGroup, and is
// pending.
const podGroupManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: crew}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: many, namespace: crew}
spec: {spec: {devices: {requests: [{name: main, exactly: {deviceClassName: plain.pending, count: 3}}]}}}
---
apiVersion: ` + cluster.PodGroupVersion + `
kind: PodGroup
metadata: {name: crew, namespace: crew}
spec: {schedulingPolicy: {basic: {}}, resourceClaims: [{name: device, resourceClaimTemplateName: many}]}
---
apiVersion: v1
kind: Pod
metadata: {name: member, namespace: crew}
spec:
  terminationGracePeriodSeconds: 1
  schedulingGroup: {podGroupName: crew}
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimTemplateName: many}]
`

// createObjects creates an object of each kind that is read, before the agents
// start.
func createObjects(t *testing.T) {
	t.Helper()
	twoNodes(t)
	setBehaviour(t, "{unhealthy: [only-0]}")
	for _, namespace := range []string{"exclusive", "mig", "pending", "pending-quota", "boards"} {
		deploy(t, namespace)
	}
	t.Cleanup(func() { removeFinalizers(t, "boards", "stuck") })
	if err := shared.Client().ResourceV1().ResourceClaims("boards").Delete(t.Context(), "stuck", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	deployText(t, "turns", heldPods)
	running(t, "turns", "first")
	applyRule(t, "NoSchedule")
	if shared.Has(releases.PodGroups) {
		deployText(t, "crew", podGroupManifest)
	}
	deployText(t, "turns", secondPod)
	running(t, "exclusive", "train")
	for _, pod := range []string{"whole", "static", "on-demand"} {
		running(t, "mig", pod)
	}
}

// causeEvents causes what only a watch reports: a pod starts, and another one
// fails to.
func causeEvents(t *testing.T) {
	t.Helper()
	deploy(t, "shared-claim")
	running(t, "shared-claim", "shared-0")
	running(t, "shared-claim", "shared-1")
	setBehaviour(t, "{prepareError: no such cable, unhealthy: [only-0]}")
	deployText(t, "prepared", preparedPod)
	boundPod(t, "prepared", "train")
}

// expectedRow is a family, and a part of the labels of a row.
type expectedRow struct{ family, words string }

// expectedRows returns the rows that the page of a role with all permissions
// must have of the created objects and events.
func expectedRows(role string) []expectedRow {
	if role == "node" {
		return []expectedRow{
			{"dra_claim_held", `namespace="mig"`},
			{"dra_claim_consumer_info", `pod="shared-1"`},
			{"dra_claim_info", `namespace="prepared"`},
			{"dra_device_published_info", `device="gpu-0"`},
			{"dra_claim_utilization_ratio", `namespace="exclusive"`},
			{"dra_namespace_busy_seconds_total", `namespace="shared-claim"`},
		}
	}
	rows := slices.Concat([]expectedRow{
		{"dra_allocation_duration_seconds", fmt.Sprintf("phase=%q", preparationPhase())},
		{"dra_claim_ready_duration_seconds", `gpu.nvidia.com`},
		{"dra_claim_phase_since_timestamp_seconds", `pod="train"`},
		{"dra_allocation_failures_total", `reason="preparation_failed"`},
		{"dra_allocation_failures_total", `reason="claim_creation_failed"`},
	}, []expectedRow{
		{"dra_claim_pending_candidates", `pod="fragmented"`},
		{"dra_claim_pending_since_timestamp_seconds", `deviceclass="plain.pending",namespace="pending-quota"`},
		{"dra_claim_terminating_since_timestamp_seconds", `resourceclaim="stuck"`},
		{"dra_device_taints", `e2e.example.com/worn`},
	})
	if shared.Has(releases.DeviceHealth) {
		rows = append(rows, expectedRow{"dra_device_health_disagreement", `only-0`})
	}
	if shared.Has(releases.EvictionProgress) {
		rows = append(rows, expectedRow{"dra_taint_rule_eviction_in_progress", `rule="e2e"`})
	}
	return rows
}
