package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const (
	agentNamespace = "dra-exporter"
	agentContainer = "dra-exporter"
	agentAccount   = "dra-exporter-node"
	agentSelector  = "app.kubernetes.io/name=dra-exporter,dra-exporter.github.io/role=node"

	// grace is short, so that a test can wait for its end.
	grace = 30 * time.Second
)

// The agent of all tests: the hardware that it reads, and the watcher of its
// page.
var (
	devices *hardware
	watcher *scrape.Watcher
)

// overlay contains all differences from the shipped manifests: the source of
// the image, this kubelet's folders, and the simulated devices. Its arguments
// are the base's path, the arguments and three folders.
const overlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%q]
images:
- {name: ghcr.io/dra-exporter/dra-exporter, newName: localhost/dra-exporter, newTag: e2e}
configMapGenerator:
- {name: simulated-devices, namespace: dra-exporter, files: [devices.yaml], options: {disableNameSuffixHash: true}}
patches:
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
            args: %s
            volumeMounts:
            - {name: simulated-devices, mountPath: /etc/dra-exporter, readOnly: true}
          volumes:
          - {name: pod-resources, hostPath: {path: %q}}
          - {name: cdi-run, hostPath: {path: %q}}
          - {name: cdi-etc, hostPath: {path: %q}}
          - {name: simulated-devices, configMap: {name: simulated-devices}}
`

// startAgent runs the agent from the shipped manifests, and waits for its
// first page.
func startAgent(ctx context.Context) (err error) {
	if devices, err = publishedHardware(ctx); err != nil {
		return err
	}
	err = shared.ImportImage(ctx, cluster.Image{
		Name:       "localhost/dra-exporter:e2e",
		Files:      map[string]string{"/dra-exporter": agentBinary()},
		Entrypoint: []string{"/dra-exporter"},
		User:       "nonroot",
	})
	if err != nil {
		return err
	}
	manifests, err := agentManifests(ctx)
	if err != nil {
		return err
	}
	if err := shared.Apply(ctx, manifests); err != nil {
		return fmt.Errorf("deploy the agent: %w", err)
	}
	rules := append(scrape.Rules(grace), scrape.DevicesStay(devices.uuids()...))
	watcher = scrape.Watch(ctx, 250*time.Millisecond, agentURL, rules...)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	_, err = watcher.Next(ctx)
	return err
}

// agentBinary is built by the Makefile, as the image's build does it.
func agentBinary() string {
	return filepath.Join(os.Getenv("DRA_E2E_BIN"), "agent", "dra-exporter")
}

// agentManifests renders the shipped base with the overlay.
func agentManifests(ctx context.Context) (string, error) {
	args := fmt.Sprintf(`[node, --device.source=simulated, --simulated.config=/etc/dra-exporter/devices.yaml, --ledger.grace=%s]`, grace)
	return kustomized(ctx, map[string]string{"devices.yaml": devices.yaml()}, func(deploy string) string {
		return fmt.Sprintf(overlay, deploy+"/base", args, filepath.Dir(shared.KubeletSocket()), shared.CDIDir(), filepath.Join(shared.Dir(), "no-such-folder"))
	})
}

// kustomized renders a kustomization with more files beside it. text receives
// the path from the kustomization to the shipped folder deploy.
func kustomized(ctx context.Context, files map[string]string, text func(deploy string) string) (string, error) {
	folder, err := os.MkdirTemp(shared.Dir(), "overlay-")
	if err != nil {
		return "", fmt.Errorf("render manifests: %w", err)
	}
	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("render manifests: %w", err)
	}
	deploy, err := filepath.Rel(folder, filepath.Join(working, "..", "..", "..", "deploy", "kustomize"))
	if err != nil {
		return "", fmt.Errorf("render manifests: %w", err)
	}
	all := map[string]string{"kustomization.yaml": text(deploy)}
	maps.Copy(all, files)
	for name, content := range all {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("render manifests: %w", err)
		}
	}
	return shared.Kubectl(ctx, "kustomize", folder)
}

// agentURL returns the current URL of the agent's metrics.
func agentURL(ctx context.Context) (string, error) {
	pod, err := agentPod(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("http://%s:9420/metrics", pod.Status.PodIP), nil
}

// agentPod is the agent's only pod, ready.
func agentPod(ctx context.Context) (*corev1.Pod, error) {
	pods, err := shared.Client().CoreV1().Pods(agentNamespace).List(ctx, metav1.ListOptions{LabelSelector: agentSelector})
	if err != nil {
		return nil, fmt.Errorf("find the agent: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, condition := range pod.Status.Conditions {
			if pod.DeletionTimestamp == nil && condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return pod, nil
			}
		}
	}
	return nil, errors.New("the agent's pod is not ready")
}

// describeAgent describes the agent's pod and its log, for the report of a
// failure.
func describeAgent(ctx context.Context) string {
	var description strings.Builder
	for _, args := range [][]string{
		{"describe", "pods", "--namespace", agentNamespace},
		{"logs", "--namespace", agentNamespace, "--selector", agentSelector, "--tail", "60"},
		{"logs", "--namespace", agentNamespace, "--selector", agentSelector, "--tail", "20", "--previous"},
	} {
		text, err := shared.Kubectl(ctx, args...)
		if err != nil {
			text = err.Error()
		}
		fmt.Fprintf(&description, "=== kubectl %s\n%s\n", args, text)
	}
	return description.String()
}

// page scrapes the agent's page now.
func page(t *testing.T) *scrape.Page {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p, err := watcher.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eventually waits for a page that check accepts, and returns it.
func eventually(t *testing.T, what string, check func(*scrape.Page) error) (found *scrape.Page) {
	t.Helper()
	return pageWithin(t, watcher, 2*time.Minute, what, check)
}

// pageWithin waits until check accepts a page of the watcher, and returns that
// page.
func pageWithin(t *testing.T, w *scrape.Watcher, patience time.Duration, what string, check func(*scrape.Page) error) (found *scrape.Page) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last error // of check: more helpful than the timeout
	err := cluster.Eventually(ctx, what, func(ctx context.Context) error {
		p, err := w.Next(ctx)
		if err != nil {
			return err
		}
		found, last = p, check(p)
		return last
	})
	if err != nil {
		t.Fatalf("%v; the last page: %v", err, last)
	}
	return found
}
