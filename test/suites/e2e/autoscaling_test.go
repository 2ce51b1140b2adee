package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	autoscalingapi "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// inference is the Deployment that the shipped autoscalers scale, each of
// whose pods has a GPU, a pod of the namespace that does not belong to it, and
// two pods that share a GPU, so that its use cannot be attributed.
const inference = `
apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: web}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: part, namespace: web}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: shared.nvidia.com, capacity: {requests: {memory: 8Gi}}}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: inference, namespace: web}
spec:
  selector: {matchLabels: {app: inference}}
  template:
    metadata: {labels: {app: inference}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
`

// otherPod is a manifest. Its arguments are the name and the template.
const otherPod = `---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: web}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: %s}]
`

// autoscalingEnv is what tests of autoscalers use: hardware whose utilization
// they set, and a Prometheus with the shipped rules that scrapes it.
type autoscalingEnv struct {
	gpus  *hardware
	agent *hostAgent
	*prometheus
}

// TestAutoscaling: prometheus-adapter with the shipped rules, also those of
// deploy/conformance, and the shipped HorizontalPodAutoscaler, with Kubernetes' own
// controller.
func TestAutoscaling(t *testing.T) {
	covers(t)
	s := autoscalingEnv{gpus: steadyHardware(0.05)}
	for _, gpu := range s.gpus.Devices {
		gpu.Quantities["temperature"] = map[string]any{"gpu": 50}
	}
	s.agent = runHostAgent(t, s.gpus, shared.KubeletSocket(), "--metrics.dcgm=split")
	deployInference(t)
	s.setUtilization(t, 0.9, "bystander")
	s.setUtilization(t, 0.8, "half-a")
	// Averages over two minutes must not have values from before.
	s.prometheus = startPrometheus(t, "prometheus-autoscaling", hostJob(s.agent, 2*time.Second))
	startAdapter(t, s.prometheus)

	first := s.waitReplicas(t, 1)
	s.testIdle(t, first[0])
	s.testKEDA(t)
	s.testConformance(t)
	s.setUtilization(t, 1, first[0])
	began := time.Now()
	both := s.waitReplicas(t, 2)
	t.Logf("scaled up %s after the GPU was busy", time.Since(began).Round(time.Second))
	s.setUtilization(t, 0.6, both...)
	s.testBusy(t, both)
	s.testSharedDevices(t)
	s.checkRulesHealthy(t)
}

// deployInference applies the pods and the shipped autoscaler. At the end the
// Deployment is deleted before its pods, or it would create new ones.
func deployInference(t *testing.T) {
	t.Helper()
	manifests := inference
	for name, template := range map[string]string{"bystander": "gpu", "half-a": "part", "half-b": "part"} {
		manifests += fmt.Sprintf(otherPod, name, template)
	}
	deployText(t, "web", manifests)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			description, _ := shared.Kubectl(ctx, "describe", "hpa,deployments", "--namespace", "web")
			t.Log(description)
		}
		if _, err := shared.Kubectl(ctx, "delete", "deployment", "inference", "--namespace", "web", "--cascade=foreground"); err != nil {
			t.Error(err)
		}
	})
	autoscaler, err := os.ReadFile("../../../deploy/autoscaling/hpa.yaml")
	if err != nil {
		t.Fatal(err)
	}
	applyFor(t, string(autoscaler))
	for _, name := range []string{"bystander", "half-a", "half-b"} {
		running(t, "web", name)
	}
}

// setUtilization sets the utilization of the pods' GPUs.
func (s *autoscalingEnv) setUtilization(t *testing.T, utilization float64, pods ...string) {
	t.Helper()
	for _, pod := range pods {
		allocatedTo(t, s.gpus, "web", pod).Quantities["utilization"] = utilization
	}
	s.agent.change(t, s.gpus)
}

// waitReplicas waits until the Deployment has this many running pods and no
// others, and returns their names, the oldest first.
func (s *autoscalingEnv) waitReplicas(t *testing.T, want int) (names []string) {
	t.Helper()
	err := cluster.Eventually(t.Context(), fmt.Sprintf("%d replicas", want), func(ctx context.Context) error {
		pods, err := shared.Client().CoreV1().Pods("web").List(ctx, metav1.ListOptions{LabelSelector: "app=inference"})
		if err != nil {
			return err
		}
		slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		names = nil
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning {
				names = append(names, pod.Name)
			}
		}
		if len(names) != want || len(pods.Items) != want {
			return fmt.Errorf("%d of %d pods run", len(names), len(pods.Items))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// testIdle: the autoscaler reads the idle pod's utilization from the API and
// keeps one replica.
func (s *autoscalingEnv) testIdle(t *testing.T, pod string) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "the pods' metrics", func(ctx context.Context) error {
		values, err := podMetric(ctx, "web", "dra_pod_utilization_ratio")
		return errors.Join(err, valuesNear(values, map[string]float64{pod: 0.05, "bystander": 0.9}))
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, shared.Process(adapterProcess).LogTail(40))
	}
	s.waitAutoscaler(t, "to know that the pod idles", 1, 0.05)
	s.checkReplicasUnchanged(t, 1)
}

// testBusy: two pods, each with a GPU of its own, share the load of one, and
// the autoscaler keeps two replicas.
func (s *autoscalingEnv) testBusy(t *testing.T, pods []string) {
	t.Helper()
	if one, other := allocatedTo(t, s.gpus, "web", pods[0]), allocatedTo(t, s.gpus, "web", pods[1]); one == other {
		t.Errorf("both pods have %s", one.UUID)
	}
	err := cluster.Eventually(t.Context(), "both pods' metrics", func(ctx context.Context) error {
		values, err := podMetric(ctx, "web", "dra_pod_utilization_ratio")
		if err == nil && (values[pods[1]] < 0.3 || len(values) != 3) {
			err = fmt.Errorf("they are %v", values)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.checkReplicasUnchanged(t, 2)
}

// testSharedDevices: pods whose use cannot be attributed have no value, but an
// upper bound.
func (s *autoscalingEnv) testSharedDevices(t *testing.T) {
	t.Helper()
	values, err := podMetric(t.Context(), "web", "dra_pod_utilization_ratio")
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{"half-a", "half-b"} {
		if value, there := values[pod]; there {
			t.Errorf("%s has the value %v", pod, value)
		}
	}
	bounds, err := podMetric(t.Context(), "web", "dra_pod_utilization_upper_bound_ratio")
	if err != nil {
		t.Fatal(err)
	}
	if err := valuesNear(bounds, map[string]float64{"half-a": 0.8, "half-b": 0.8, "bystander": 0.9}); err != nil {
		t.Error(err)
	}
}

// checkReplicasUnchanged fails the test if the autoscaler, which syncs every
// two seconds, changes the number of replicas within ten.
func (s *autoscalingEnv) checkReplicasUnchanged(t *testing.T, replicas int32) {
	t.Helper()
	for range 10 {
		time.Sleep(time.Second)
		found, err := shared.Client().AppsV1().Deployments("web").Get(t.Context(), "inference", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if *found.Spec.Replicas != replicas {
			t.Fatalf("there are to be %d pods, not %d", *found.Spec.Replicas, replicas)
		}
	}
}

// waitAutoscaler waits until the autoscaler has the value and wants that many
// replicas for it.
func (s *autoscalingEnv) waitAutoscaler(t *testing.T, what string, replicas int32, value float64) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "the autoscaler "+what, func(ctx context.Context) error {
		found, err := shared.Client().AutoscalingV2().HorizontalPodAutoscalers("web").Get(ctx, "inference", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := found.Status
		if len(status.CurrentMetrics) != 1 || status.CurrentMetrics[0].Type != autoscalingapi.PodsMetricSourceType {
			return fmt.Errorf("it knows %v; %v", status.CurrentMetrics, status.Conditions)
		}
		current := status.CurrentMetrics[0].Pods.Current.AverageValue
		if !(math.Abs(current.AsApproximateFloat64()-value) <= 2e-3) || status.DesiredReplicas != replicas {
			return fmt.Errorf("it wants %d pods for %s", status.DesiredReplicas, current)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// valuesNear returns an error unless these pods have these values. The API has
// a resolution of thousandths.
func valuesNear(values, want map[string]float64) error {
	for pod, value := range want {
		if found, there := values[pod]; !there || !(math.Abs(found-value) <= 2e-3) {
			return fmt.Errorf("%s is not %v: %v", pod, value, values)
		}
	}
	return nil
}
