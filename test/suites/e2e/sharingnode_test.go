package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// sharingNode is a node with scripted GPUs that pods share, and two agents
// that read them through the vendor's library: a process on the host, and a
// DaemonSet from the manifests for NVIDIA's GPUs, in a namespace of its own.
// Every page of both must follow the rules of all pages.
type sharingNode struct {
	*stubs.Node
	library        string // libnvidia-ml.so.1
	host, deployed *hostAgent
	gi, ci         int               // of the MIG device
	watched        []*scrape.Watcher // of the agents' pages, in the order of the agents
}

const (
	sharingNamespace = "sharing-agent" // of the DaemonSet
	sharingImage     = "localhost/dra-exporter-cgo:e2e"
	sharingGPUs      = 4
)

func sharingUUID(gpu int) string { return fmt.Sprintf("GPU-5aa00000-0000-0000-0000-%012d", gpu) }

// startSharing runs the driver that publishes the scripted GPUs, and both
// agents, until the test ends. The DaemonSet is the default one.
func startSharing(t *testing.T) *sharingNode {
	t.Helper()
	n := startSharingHost(t)
	n.deploy(t)
	return n
}

// startSharingHost is startSharing with the agent on the host alone.
func startSharingHost(t *testing.T) *sharingNode {
	t.Helper()
	n := &sharingNode{Node: stubs.NewNode(t, sharingGPUs), library: stubs.Build(t).NVML}
	for gpu := range sharingGPUs {
		n.Set(gpu, "uuid", sharingUUID(gpu))
		n.Set(gpu, "utilization.gpu", "95")
		n.Set(gpu, "memory.used", fmt.Sprint(40<<30))
	}
	n.gi, n.ci = n.CreateMIG(3, "1g.10gb", 0)
	startOther(t, "sharing.test")
	n.host = (&nvidiaNode{Node: n.Node}).agent(t, "nvml", "--nvml.library="+n.library)
	n.watchPages(t, n.host.metrics)
	return n
}

// watchPages checks each page of an agent against the rules until the test
// ends.
func (n *sharingNode) watchPages(t *testing.T, target func(context.Context) (string, error)) {
	w := scrape.Watch(t.Context(), 250*time.Millisecond, target, scrape.Rules(grace)...)
	n.watched = append(n.watched, w)
	t.Cleanup(func() {
		if err := w.Broken(); err != nil || w.Pages() == 0 {
			t.Errorf("%d pages broke their rules: %v", w.Pages(), err)
		}
	})
}

// agents returns both agents.
func (n *sharingNode) agents() []*hostAgent { return []*hostAgent{n.host, n.deployed} }

// sharingOverlay contains all differences from the shipped manifests: the
// names, so that it can run beside the agent of all tests, the source of the
// image, the kubelet's folders, and the scripted GPUs. Its arguments are the
// base's path, the components, three folders and the GPUs'.
const sharingOverlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: ` + sharingNamespace + `
nameSuffix: -sharing
resources: [%q]
components: [%s]
images:
- {name: ghcr.io/dra-exporter/dra-exporter, newName: localhost/dra-exporter-cgo, newTag: e2e}
patches:
- target: {labelSelector: app.kubernetes.io/component=cluster}
  patch: "{$patch: delete, apiVersion: v1, kind: Any, metadata: {name: any}}"
- patch: |
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: dra-exporter-node, namespace: dra-exporter}
    spec:
      template:
        spec:
          containers:
          - name: dra-exporter
            imagePullPolicy: Never
            args: [node, --device.source=nvml, --nvml.library=/libnvidia-ml.so.1, --device.slow-interval=2s, --ledger.grace=30s, --metrics.include=dra_device_partition_info]
            env: [{name: DRA_STUB_HARDWARE, value: /hardware}]
            volumeMounts: [{name: hardware, mountPath: /hardware}]
          volumes:
          - {name: pod-resources, hostPath: {path: %q}}
          - {name: cdi-run, hostPath: {path: %q}}
          - {name: cdi-etc, hostPath: {path: %q}}
          - {name: hardware, hostPath: {path: %q}}
`

// deploy starts the default DaemonSet.
func (n *sharingNode) deploy(t *testing.T) {
	t.Helper()
	program := filepath.Join(os.Getenv("DRA_E2E_BIN"), "agent-cgo", "dra-exporter")
	files := linked(t, program, n.library)
	files["/dra-exporter"], files["/libnvidia-ml.so.1"] = program, n.library
	image := cluster.Image{Name: sharingImage, Files: files, Entrypoint: []string{"/dra-exporter"}, User: "nonroot"}
	if err := shared.ImportImage(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	manifests := n.manifests(t, "")
	t.Cleanup(func() { n.undeploy(t, manifests) })
	if err := shared.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
	n.deployed = &hostAgent{name: "deployed"}
	n.waitPod(t, false)
	n.watchPages(t, func(ctx context.Context) (string, error) {
		pod, err := n.agentPod(ctx)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("http://%s:9420/metrics", pod.Status.PodIP), nil
	})
}

// manifests renders the DaemonSet with a component, or without one.
func (n *sharingNode) manifests(t *testing.T, component string) string {
	t.Helper()
	manifests, err := kustomized(t.Context(), nil, func(deploy string) string {
		if component != "" {
			component = fmt.Sprintf("%q", filepath.Join(deploy, "components", component))
		}
		return fmt.Sprintf(sharingOverlay, filepath.Join(deploy, "base"), component,
			filepath.Dir(shared.KubeletSocket()), shared.CDIDir(), filepath.Join(shared.Dir(), "no-such-folder"), n.Dir)
	})
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

// enableProcessAttribution adds the component to the DaemonSet, and waits for
// the new agent.
func (n *sharingNode) enableProcessAttribution(t *testing.T) {
	t.Helper()
	if err := shared.Apply(t.Context(), n.manifests(t, "process-attribution")); err != nil {
		t.Fatal(err)
	}
	n.waitPod(t, true)
}

// waitPod waits for the DaemonSet's pod, with or without the host's pids, and
// returns it.
func (n *sharingNode) waitPod(t *testing.T, hostPID bool) (pod *corev1.Pod) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "the DaemonSet's pod", func(ctx context.Context) (err error) {
		if pod, err = n.agentPod(ctx); err == nil && pod.Spec.HostPID != hostPID {
			err = errors.New("it is the pod of before")
		}
		return err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, n.describePod(t.Context()))
	}
	n.deployed.url = fmt.Sprintf("http://%s:9420/", pod.Status.PodIP)
	return pod
}

func (n *sharingNode) agentPod(ctx context.Context) (*corev1.Pod, error) {
	pods, err := shared.Client().CoreV1().Pods(sharingNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && isReady(pod) {
			return pod, nil
		}
	}
	return nil, errors.New("the DaemonSet has no pod that is ready")
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// describePod describes the DaemonSet's pod and its log, for the report of a
// failure.
func (n *sharingNode) describePod(ctx context.Context) string {
	pods, _ := shared.Kubectl(ctx, "describe", "pods", "--namespace", sharingNamespace)
	log, _ := shared.Kubectl(ctx, "logs", "--namespace", sharingNamespace, "--selector", agentSelector, "--tail", "60")
	return pods + "\n" + log
}

// undeploy deletes the DaemonSet, and waits until its pod is gone.
func (n *sharingNode) undeploy(t *testing.T, manifests string) {
	ctx := context.WithoutCancel(t.Context())
	if t.Failed() {
		t.Log(n.describePod(ctx))
	}
	if err := shared.Delete(ctx, manifests); err != nil {
		t.Error(err)
	}
	err := cluster.Eventually(ctx, "the DaemonSet to be gone", func(ctx context.Context) error {
		pods, err := shared.Client().CoreV1().Pods(sharingNamespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("there are %d pods", len(pods.Items))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// linked returns the libraries that programs were linked with, and the linker,
// by the paths at which they are expected.
func linked(t *testing.T, programs ...string) map[string]string {
	t.Helper()
	path := regexp.MustCompile(`(/\S+) \(0x`)
	files := map[string]string{}
	for _, program := range programs {
		list, err := exec.Command("ldd", program).Output()
		if err != nil {
			t.Fatalf("list the libraries of %s: %v", program, err)
		}
		for _, found := range path.FindAllStringSubmatch(string(list), -1) {
			files[found[1]] = found[1]
		}
	}
	return files
}
