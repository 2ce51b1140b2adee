package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// accessPath is one access mode, as a kustomization.
type accessPath struct {
	namespace string   // of the agent
	base      string   // below deploy/kustomize
	component string   // of deploy/kustomize/components, or none
	patches   []string // in addition to those of every agent here
}

// accessOverlay contains all differences from the shipped manifests: the
// names, the source of the image, the kubelet's folders, and the path where
// the imitated library finds its hardware, as the real one finds the kernel
// module. Its arguments are the namespace twice, the base, the component,
// three folders and the hardware's folder.
const accessOverlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
nameSuffix: -%s
resources: [%q]
components: [%s]
images:
- {name: ghcr.io/dra-exporter/dra-exporter, newName: localhost/dra-exporter-access, newTag: e2e}
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
            env:
            - {name: DRA_STUB_HARDWARE, value: /hardware}
            - {name: DRA_EXPORTER_DEVICE_SLOW_INTERVAL, value: 2s}
            - {name: DRA_EXPORTER_LEDGER_GRACE, value: 30s}
            volumeMounts: [{name: hardware, mountPath: /hardware}]
          volumes:
          - {name: pod-resources, hostPath: {path: %q}}
          - {name: cdi-run, hostPath: {path: %q}}
          - {name: cdi-etc, hostPath: {path: %q}}
          - {name: hardware, hostPath: {path: %q}}
`

// accessAgent is an agent that was deployed with one access mode.
type accessAgent struct {
	hostAgent
	path accessPath
	pod  *corev1.Pod
}

func (n *accessNode) manifests(t *testing.T, path accessPath) string {
	t.Helper()
	manifests, err := kustomized(t.Context(), nil, func(deploy string) string {
		component := ""
		if path.component != "" {
			component = fmt.Sprintf("%q", filepath.Join(deploy, "components", path.component))
		}
		return fmt.Sprintf(accessOverlay, path.namespace, path.namespace, filepath.Join(deploy, path.base), component,
			filepath.Dir(shared.KubeletSocket()), shared.CDIDir(), filepath.Join(shared.Dir(), "no-such-folder"), n.Dir) +
			strings.Join(path.patches, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

// deploy runs the agent with an access mode until the test ends, and waits
// until it is ready.
func (n *accessNode) deploy(t *testing.T, path accessPath) *accessAgent {
	t.Helper()
	manifests := n.manifests(t, path)
	t.Cleanup(func() { undeployAccess(t, path.namespace, manifests) })
	if err := shared.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
	a := &accessAgent{path: path, pod: readyPod(t, path.namespace, agentSelector)}
	a.name = path.namespace
	a.url = fmt.Sprintf("http://%s:9420/", a.pod.Status.PodIP)
	return a
}

// undeployAccess deletes what deploy created, and waits until the pod and its
// claim are gone.
func undeployAccess(t *testing.T, namespace, manifests string) {
	ctx := context.WithoutCancel(t.Context())
	if t.Failed() {
		pods, _ := shared.Kubectl(ctx, "describe", "pods", "--namespace", namespace)
		log, _ := shared.Kubectl(ctx, "logs", "--namespace", namespace, "--selector", agentSelector, "--tail", "60")
		t.Logf("%s\n%s", pods, log)
	}
	if err := shared.Delete(ctx, manifests); err != nil {
		t.Error(err)
	}
	err := cluster.Eventually(ctx, "namespace "+namespace+" empty", func(ctx context.Context) error {
		return isEmpty(ctx, namespace)
	})
	if err != nil {
		t.Error(err)
	}
}
