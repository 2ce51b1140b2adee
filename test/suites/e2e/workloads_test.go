package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// workloadManifests are an indexed Job of two pods and a Deployment, whose pods
// Kubernetes' own controllers make, each with a claim.
const workloadManifests = `
apiVersion: v1
kind: Namespace
metadata: {name: workloads}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: workloads}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: workloads}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  template:
    metadata: {labels: {kueue.x-k8s.io/local-queue-name: research}}
    spec:
      terminationGracePeriodSeconds: 1
      restartPolicy: Never
      containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: workloads}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
`

// TestWorkloads: the pods that real controllers make have their workload, on the
// node's page with their ranks, and on the cluster's page with their number.
func TestWorkloads(t *testing.T) {
	covers(t)
	deployText(t, "workloads", workloadManifests)
	t.Cleanup(func() { // before the pods, which they would make again
		ctx, all := context.WithoutCancel(t.Context()), metav1.DeletePropagationBackground
		err := errors.Join(
			shared.Client().BatchV1().Jobs("workloads").Delete(ctx, "train", metav1.DeleteOptions{PropagationPolicy: &all}),
			shared.Client().AppsV1().Deployments("workloads").Delete(ctx, "serve", metav1.DeleteOptions{PropagationPolicy: &all}),
		)
		if err != nil {
			t.Error(err)
		}
	})
	pod := func(p *scrape.Page, labels scrape.Labels) error {
		labels["namespace"] = "workloads"
		return hasGauge(p, "dra_pod_workload_info", labels, 1)
	}
	eventually(t, "workloads of the pods", func(p *scrape.Page) error {
		return errors.Join(
			pod(p, scrape.Labels{"workload_kind": "Job", "workload": "train", "rank": "0", "queue": "research"}),
			pod(p, scrape.Labels{"workload_kind": "Job", "workload": "train", "rank": "1", "queue": "research"}),
			pod(p, scrape.Labels{"workload_kind": "Deployment", "workload": "serve", "rank": "", "queue": ""}),
		)
	})
	waitClusterPage(t, "the pods of workloads", func(p *scrape.Page) error {
		count := func(kind, name, state string, want float64) error {
			return hasGauge(p, "dra_workload_pods", scrape.Labels{"namespace": "workloads", "workload_kind": kind, "workload": name, "state": state}, want)
		}
		return errors.Join(
			hasGauge(p, "dra_workload_info", scrape.Labels{"namespace": "workloads", "workload_kind": "Job", "workload": "train", "queue": "research"}, 1),
			count("Job", "train", "running", 2), count("Deployment", "serve", "running", 1),
			hasStart(p, "Job", "research"),
		)
	})
}

// hasStart returns an error unless the start of a workload was measured.
func hasStart(p *scrape.Page, kind, queue string) error {
	const family = "dra_workload_start_duration_seconds"
	for _, m := range p.Families[family].GetMetric() {
		labels := map[string]string{}
		for _, pair := range m.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if labels["workload_kind"] == kind && labels["queue"] == queue && m.GetHistogram().GetSampleCount() > 0 {
			return nil
		}
	}
	return fmt.Errorf("no start of a %s of the queue %s in %s", kind, queue, family)
}
