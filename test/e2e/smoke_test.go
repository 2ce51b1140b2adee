package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/e2e/cluster"
)

// TestClusterSmoke shows that the cluster is one on which the exporter can be
// tested: every kind of claim runs, every component can be killed and comes
// back, pods reach the API server and the host reaches pods.
func TestClusterSmoke(t *testing.T) {
	t.Run("claims", testClaims)
	t.Run("shares of one device", testShares)
	t.Run("admin access", testAdminAccess)
	t.Run("init container and completed pod", testInitAndCompletion)
	t.Run("pod network", testPodNetwork)
	t.Run("restarts", testRestarts)
	t.Run("driver restart", testDriverRestart)
}

// testClaims runs each kind of claim and compares what the kubelet lists with
// the variables that the drivers put into the containers.
func testClaims(t *testing.T) {
	for _, kind := range []struct {
		manifests string
		holders   []holder
	}{
		{"exclusive", []holder{
			{"train", "main", []string{"gpu.example.com/gpu-?"}, []string{"GPU_DEVICE_GPU_?_RESOURCE_CLAIM"}},
		}},
		{"two-requests", []holder{
			{"pair", "c-left", []string{"gpu.nvidia.com/gpu-?", "gpu.nvidia.com/gpu-?"}, []string{"SHAPES_GPU_?"}},
			{"pair", "c-right", []string{"gpu.nvidia.com/gpu-?", "gpu.nvidia.com/gpu-?"}, []string{"SHAPES_GPU_?"}},
			{"pair", "c-none", nil, nil},
		}},
		{"shared-claim", []holder{
			{"shared-0", "main", []string{"gpu.nvidia.com/gpu-?"}, []string{"SHAPES_GPU_?"}},
			{"shared-1", "main", []string{"gpu.nvidia.com/gpu-?"}, []string{"SHAPES_GPU_?"}},
		}},
		{"prioritized", []holder{
			{"infer", "main", []string{"gpu.nvidia.com/gpu-?"}, []string{"SHAPES_GPU_?"}},
		}},
		{"extended", []holder{
			{"explicit", "main", []string{"gpu.nvidia.com/gpu-?"}, []string{"SHAPES_GPU_?"}},
			{"explicit", "none", nil, nil},
			{"implicit", "main", []string{"gpu.nvidia.com/gpu-?"}, []string{"SHAPES_GPU_?"}},
		}},
		{"partitions", []holder{
			{"parts", "main", []string{"part.example.com/gpu-?-partition-?", "part.example.com/gpu-?-partition-?"},
				[]string{"GPU_DEVICE_GPU_?_PARTITION_?_RESOURCE_CLAIM", "GPU_DEVICE_GPU_?_PARTITION_?_RESOURCE_CLAIM"}},
			{"full", "main", []string{"part.example.com/gpu-?-full"}, []string{"GPU_DEVICE_GPU_?_FULL_RESOURCE_CLAIM"}},
		}},
		{"mig", []holder{
			{"whole", "main", []string{"gpu.nvidia.com/gpu-?"}, []string{"SHAPES_GPU_?"}},
			{"static", "main", []string{"gpu.nvidia.com/gpu-2-mig-1g10gb-19-?"}, []string{"SHAPES_GPU_2_MIG_1G10GB_19_?"}},
			{"on-demand", "main", []string{"gpu.nvidia.com/gpu-3-mig-1g10gb-19-?"}, []string{"SHAPES_GPU_3_MIG_1G10GB_19_?"}},
		}},
	} {
		t.Run(kind.manifests, func(t *testing.T) {
			deploy(t, kind.manifests)
			for _, holder := range kind.holders {
				holder.check(t, kind.manifests)
			}
		})
	}
}

// holder is a container, what the kubelet lists for it and what was injected.
type holder struct {
	pod, container   string
	devices, injects []string
}

func (h holder) check(t *testing.T, namespace string) {
	t.Helper()
	got := injected(t, namespace, h.pod, h.container)
	if !slices.EqualFunc(got, h.injects, matches) {
		t.Errorf("%s/%s has %s injected, want %s", h.pod, h.container, got, h.injects)
	}
	listed(t, namespace, h.pod, h.container, h.devices...)
}

func testShares(t *testing.T) {
	deploy(t, "consumable")
	for _, pod := range []string{"pod-a", "pod-b"} {
		running(t, "consumable", pod)
		listed(t, "consumable", pod, "main", "share.example.com/gpu-0")
	}
	claims, err := shared.Client().ResourceV1().ResourceClaims("consumable").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shares := map[string]bool{}
	for _, claim := range claims.Items {
		result := claim.Status.Allocation.Devices.Results[0]
		shares[string(*result.ShareID)] = true
		asked := claim.Spec.Devices.Requests[0].Exactly.Capacity.Requests["memory"]
		if consumed := result.ConsumedCapacity["memory"]; consumed.Cmp(asked) != 0 {
			t.Errorf("%s consumes %s of memory, want %s", claim.Name, &consumed, &asked)
		}
	}
	if len(shares) != 2 {
		t.Errorf("two claims have the shares %v", shares)
	}
}

func testAdminAccess(t *testing.T) {
	deploy(t, "admin")
	for _, pod := range []string{"monitor", "worker"} {
		running(t, "admin", pod)
	}
	listed(t, "admin", "worker", "main", "gpu.example.com/gpu-?")
	listed(t, "admin", "monitor", "main", "gpu.example.com/gpu-0", "gpu.example.com/gpu-1", "gpu.example.com/gpu-2", "gpu.example.com/gpu-3")
}

func testInitAndCompletion(t *testing.T) {
	deploy(t, "init")
	running(t, "init", "warm")
	listed(t, "init", "warm", "main", "gpu.example.com/gpu-?")
	if _, err := shared.WaitPod(t.Context(), "init", "completes", corev1.PodSucceeded); err != nil {
		t.Error(err)
	}
	listed(t, "init", "completes", "main")
}

const networkPods = `
apiVersion: v1
kind: Namespace
metadata: {name: network}
---
apiVersion: v1
kind: Pod
metadata: {name: caller, namespace: network}
spec:
  restartPolicy: OnFailure
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, args: [apiserver]}]
---
apiVersion: v1
kind: Pod
metadata: {name: server, namespace: network}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, args: [serve, ":8080"]}]
`

func testPodNetwork(t *testing.T) {
	deployText(t, "network", networkPods)
	if _, err := shared.WaitPod(t.Context(), "network", "caller", corev1.PodSucceeded); err != nil {
		t.Error(err)
	}
	server := running(t, "network", "server")
	err := cluster.Eventually(t.Context(), "an answer from a pod", func(context.Context) error {
		response, err := http.Get("http://" + server.Status.PodIP + ":8080")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && !strings.Contains(string(body), "HOSTNAME=server") {
			return fmt.Errorf("the pod answers %q", body)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := shared.Kubectl(t.Context(), "logs", "--namespace=network", "server"); err != nil {
		t.Error(err)
	}
}

// testRestarts ends one component after the other under a pod that goes on
// running, and shows that each is whole again by running another.
func testRestarts(t *testing.T) {
	deploy(t, "exclusive")
	running(t, "exclusive", "train")
	for _, component := range []struct {
		name string
		end  func(*cluster.Process) error
	}{
		{"kubelet", (*cluster.Process).Kill},
		{"apiserver", (*cluster.Process).Stop},
		{"scheduler", (*cluster.Process).Kill},
		{"controller-manager", (*cluster.Process).Kill},
		{"containerd", (*cluster.Process).Kill},
		{"etcd", (*cluster.Process).Stop},
	} {
		t.Run(component.name, func(t *testing.T) {
			restart(t, shared.Process(component.name), component.end)
			listed(t, "exclusive", "train", "main", "gpu.example.com/gpu-?")
			deploy(t, "shared-claim")
			running(t, "shared-claim", "shared-0")
			running(t, "shared-claim", "shared-1")
		})
	}
}

func restart(t *testing.T, p *cluster.Process, end func(*cluster.Process) error) {
	t.Helper()
	if err := end(p); err != nil {
		t.Fatal(err)
	}
	if p.PID() != 0 {
		t.Fatal("it still runs")
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func testDriverRestart(t *testing.T) {
	deploy(t, "shared-claim")
	running(t, "shared-claim", "shared-0")
	restart(t, shared.Process("driver-gpu.nvidia.com"), (*cluster.Process).Kill)
	listed(t, "shared-claim", "shared-0", "main", "gpu.nvidia.com/gpu-?")
	deploy(t, "mig")
	running(t, "mig", "on-demand")
	listed(t, "mig", "on-demand", "main", "gpu.nvidia.com/gpu-3-mig-1g10gb-19-?")
}
