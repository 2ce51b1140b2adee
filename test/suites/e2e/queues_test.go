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
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// queueObjects are a queue with a quota of three of the four devices, and the templates
// of claims of one device and of two.
const queueObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: queues}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: queues}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: three, namespace: queues}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: 3}}]}}}
`

const kueueObjects = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: queues}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [example.com/gpus]
    flavors: [{name: default, resources: [{name: example.com/gpus, nominalQuota: 3}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: research, namespace: queues}
spec: {clusterQueue: queues}
`

// podSpec is that of pods with a claim from a template.
func podSpec(template string) string {
	return `{terminationGracePeriodSeconds: 1, restartPolicy: Never, containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}], resourceClaims: [{name: gpu, resourceClaimTemplateName: ` + template + `}]}`
}

// queuedWorkloads are a JobSet that the quota suffices for, a Job and a pod that have to
// wait for it, in the order in which they are created.
func queuedWorkloads() [3]string {
	return [3]string{`
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: ring, namespace: queues, labels: {kueue.x-k8s.io/queue-name: research}}
spec:
  suspend: true
  replicatedJobs:
  - name: workers
    replicas: 1
    template: {spec: {parallelism: 2, completions: 2, completionMode: Indexed, backoffLimit: 0, template: {spec: ` + podSpec("one") + `}}}
`, `
apiVersion: batch/v1
kind: Job
metadata: {name: big, namespace: queues, labels: {kueue.x-k8s.io/queue-name: research}}
spec: {suspend: true, parallelism: 2, completions: 2, completionMode: Indexed, template: {spec: ` + podSpec("one") + `}}
`, `
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: queues, labels: {kueue.x-k8s.io/queue-name: research}}
spec: ` + podSpec("three")}
}

// leaderWorkerSet has two pods, and no queue.
const leaderWorkerSet = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llm, namespace: queues}
spec:
  replicas: 1
  leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}], resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]}}}
`

// TestQueues: workloads of the real controllers of JobSet, LeaderWorkerSet and Kueue.
// What waits for quota is known before it has pods, with what Kueue reports, until it is
// admitted.
func TestQueues(t *testing.T) {
	covers(t)
	deployText(t, "queues", queueObjects)
	startControllers(t, "queues",
		controller{"jobset", jobSetConfiguration, []string{"mjobset.kb.io"}},
		controller{"lws", lwsConfiguration, []string{"mleaderworkerset.kb.io", "mpod.kb.io"}},
		controller{"kueue", kueueConfiguration, []string{"mclusterqueue.kb.io", "mresourceflavor.kb.io", "mworkload.kb.io", "mpod.kb.io"}})
	applyEventually(t, kueueObjects)
	workloads := queuedWorkloads()
	t.Cleanup(func() { deleteQueued(t, workloads) })

	queued := func(p *scrape.Page, kind, name string) error {
		labels := scrape.Labels{"namespace": "queues", "workload_kind": kind, "workload": name}
		row, err := p.One("dra_workload_queued_since_timestamp_seconds", labels)
		if err != nil {
			return err
		}
		if age := time.Since(time.Unix(int64(row.Value), 0)); age < -time.Second || age > 5*time.Minute {
			return fmt.Errorf("%s is queued since %v", name, age)
		}
		return nil
	}
	count := func(p *scrape.Page, kind, name, state string, want float64) error {
		return hasGauge(p, "dra_workload_pods", scrape.Labels{"namespace": "queues", "workload_kind": kind, "workload": name, "state": state}, want)
	}
	info := func(p *scrape.Page, kind, name, queue string) error {
		return hasGauge(p, "dra_workload_info", scrape.Labels{"namespace": "queues", "workload_kind": kind, "workload": name, "queue": queue}, 1)
	}
	admitted := func(p *scrape.Page, kind, name string) error {
		return errors.Join(info(p, kind, name, "research"), count(p, kind, name, "running", 2),
			hasNoRow(p, "dra_workload_queued_since_timestamp_seconds", scrape.Labels{"namespace": "queues", "workload_kind": kind, "workload": name}))
	}

	applyEventually(t, workloads[0])
	waitClusterPageWithin(t, 2*time.Minute, "an admitted JobSet", func(p *scrape.Page) error { return admitted(p, "JobSet", "ring") })
	eventually(t, "ranks of the JobSet", func(p *scrape.Page) error {
		rank := func(rank string) error {
			return hasGauge(p, "dra_pod_workload_info", scrape.Labels{"namespace": "queues", "workload_kind": "JobSet", "workload": "ring", "role": "workers", "replica": "0", "rank": rank, "queue": "research"}, 1)
		}
		return errors.Join(rank("0"), rank("1"))
	})

	applyEventually(t, workloads[1]+"\n---\n"+workloads[2])
	waitClusterPageWithin(t, 2*time.Minute, "a Job and a pod that wait for quota", func(p *scrape.Page) error {
		return errors.Join(
			queued(p, "Job", "big"), info(p, "Job", "big", "research"),
			hasGauge(p, "dra_workload_min_pods", scrape.Labels{"namespace": "queues", "workload_kind": "Job", "workload": "big"}, 2),
			hasNoRow(p, "dra_workload_pods", scrape.Labels{"namespace": "queues", "workload": "big"}),
			hasGauge(p, "dra_claim_pending_reason_info", scrape.Labels{"namespace": "queues", "pod": "alone", "reason": "queue_quota"}, 1),
		)
	})
	for subject, words := range map[string][]string{
		"workload queues/big":  {"Job queues/big has no pods; it has waited since", "in queue research of Kueue", "insufficient unused quota for example.com/gpus", "kubectl describe workloads.kueue.x-k8s.io -n queues job-big-"},
		"pod queues/alone":     {"Pod queues/alone is gated since", "queue research has not admitted it", ": queue_quota", "insufficient unused quota for example.com/gpus"},
		"workload queues/ring": {"JobSet queues/ring has 2 pods: 2 running"},
	} {
		text := explain(t, strings.Fields(subject)...)
		for _, part := range words {
			if !strings.Contains(text, part) {
				t.Errorf("explain %s does not say %q:\n%s", subject, part, text)
			}
		}
	}

	applyEventually(t, leaderWorkerSet)
	waitClusterPageWithin(t, 2*time.Minute, "a LeaderWorkerSet", func(p *scrape.Page) error {
		return errors.Join(count(p, "LeaderWorkerSet", "llm", "running", 2),
			hasGauge(p, "dra_workload_min_pods", scrape.Labels{"namespace": "queues", "workload_kind": "LeaderWorkerSet", "workload": "llm"}, 2))
	})
	eventually(t, "ranks of the LeaderWorkerSet", func(p *scrape.Page) error {
		rank := func(role, rank string) error {
			return hasGauge(p, "dra_pod_workload_info", scrape.Labels{"namespace": "queues", "workload_kind": "LeaderWorkerSet", "workload": "llm", "role": role, "rank": rank}, 1)
		}
		return errors.Join(rank("leader", "0"), rank("worker", "1"))
	})

	// The pod may have been created in the same second as the Job: which of them Kueue
	// admits first is then open, and the quota suffices for one.
	if err := shared.Delete(t.Context(), workloads[2]); err != nil {
		t.Fatal(err)
	}
	waitClusterPageWithin(t, 2*time.Minute, "a queue without the pod", func(p *scrape.Page) error {
		return hasNoRow(p, "dra_claim_pending_reason_info", scrape.Labels{"namespace": "queues", "pod": "alone"})
	})
	if err := shared.Delete(t.Context(), workloads[0]); err != nil {
		t.Fatal(err)
	}
	waitClusterPageWithin(t, 2*time.Minute, "the Job that has its quota", func(p *scrape.Page) error {
		return errors.Join(admitted(p, "Job", "big"), hasNoRow(p, "dra_workload_info", scrape.Labels{"namespace": "queues", "workload": "ring"}))
	})
}

// deleteQueued deletes what the test has created, before the controllers end: they
// remove the finalizers. Then deployText deletes the pods.
func deleteQueued(t *testing.T, workloads [3]string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	all := metav1.DeletePropagationBackground
	err := errors.Join(
		shared.Delete(ctx, workloads[0]), shared.Delete(ctx, workloads[2]), shared.Delete(ctx, leaderWorkerSet),
		shared.Client().BatchV1().Jobs("queues").DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &all}, metav1.ListOptions{}),
		cluster.Eventually(ctx, "no Workload of Kueue", func(ctx context.Context) error {
			out, err := shared.Kubectl(ctx, "get", "workloads.kueue.x-k8s.io,jobsets.jobset.x-k8s.io,leaderworkersets.leaderworkerset.x-k8s.io,pods", "-n", "queues", "-o", "name")
			if err == nil && strings.TrimSpace(out) != "" {
				err = fmt.Errorf("there are still %s", strings.Fields(out))
			}
			return err
		}),
		shared.Delete(ctx, kueueObjects),
		cluster.Eventually(ctx, "no queue of Kueue", func(ctx context.Context) error {
			out, err := shared.Kubectl(ctx, "get", "clusterqueues.kueue.x-k8s.io,localqueues.kueue.x-k8s.io,resourceflavors.kueue.x-k8s.io", "-A", "-o", "name")
			if err == nil && strings.TrimSpace(out) != "" {
				err = fmt.Errorf("there are still %s", strings.Fields(out))
			}
			return err
		}),
	)
	if err != nil {
		t.Error(err)
	}
}
