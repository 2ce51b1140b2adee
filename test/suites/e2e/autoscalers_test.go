package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// autoscaledObjects are a pod whose claim no node can serve.
const autoscaledObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: autoscaled}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: many, namespace: autoscaled}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.example.com, count: 30}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: autoscaled}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpus}]}}]
  resourceClaims: [{name: gpus, resourceClaimTemplateName: many}]
`

// TestAutoscalers: events about a pending pod, as autoscalers write them, are counted on
// the page of the cluster and shown by explain. No autoscaler runs here: the test writes
// the events.
func TestAutoscalers(t *testing.T) {
	covers(t)
	deployText(t, "autoscaled", autoscaledObjects)
	pod, err := shared.Client().CoreV1().Pods("autoscaled").Get(t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	report := func(name, reason, component, message string, at time.Time) {
		t.Helper()
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "autoscaled", Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "autoscaled", Name: "train", UID: pod.UID},
			Reason:         reason, Message: message, Type: corev1.EventTypeNormal, Source: corev1.EventSource{Component: component},
			FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), Count: 1,
		}
		if _, err := shared.Client().CoreV1().Events("autoscaled").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := shared.Client().CoreV1().Events("autoscaled").Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	counts := func(what, autoscaler, state string) {
		t.Helper()
		waitClusterPage(t, what, func(p *scrape.Page) error {
			return hasGauge(p, "dra_autoscaler_pending_pods", scrape.Labels{"autoscaler": autoscaler, "state": state}, 1)
		})
	}
	now := time.Now()
	report("declined", "NotTriggerScaleUp", "cluster-autoscaler", "pod didn't trigger scale-up: 1 max node group size reached", now.Add(-time.Minute))
	counts("what Cluster Autoscaler declines", "cluster_autoscaler", "declined")
	if text := explain(t, "pod", "autoscaled/train"); !strings.Contains(text, "Cluster Autoscaler adds no node for the pod") || !strings.Contains(text, "1 max node group size reached") {
		t.Errorf("explain does not say what the autoscaler has reported:\n%s", text)
	}
	report("nominated", "Nominated", "karpenter", "Pod should schedule on: nodeclaim/gpu-v278f", now)
	counts("a node of Karpenter", "karpenter", "scale_up")
	report("failed", "FailedScheduling", "karpenter", "Failed to schedule pod, no instance type", now.Add(time.Second))
	counts("what Karpenter declines", "karpenter", "declined")
}
