package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// pushNamespace has both shipped roles with the component otlp, in addition to
// those of all tests.
const pushNamespace = "otlp-agent"

// pushOverlay contains all differences from the shipped manifests with the
// component: the names, the source of the image, the kubelet's folders, the
// simulated devices, and the patch role.yaml for both roles. Its arguments are
// the base's path, the component's, the node's arguments and three folders.
const pushOverlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: ` + pushNamespace + `
nameSuffix: -otlp
resources: [%q]
components: [%q]
images:
- {name: ghcr.io/dra-exporter/dra-exporter, newName: localhost/dra-exporter, newTag: e2e}
configMapGenerator:
- {name: simulated-devices, namespace: dra-exporter, files: [devices.yaml]}
patches:
- {path: node.yaml, target: {labelSelector: app.kubernetes.io/component=node, kind: DaemonSet}}
- {path: cluster.yaml, target: {labelSelector: app.kubernetes.io/component=cluster, kind: Deployment}}
- patch: |
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: dra-exporter-node, namespace: dra-exporter}
    spec:
      template:
        spec:
          containers:
          - name: dra-exporter
            args: %s
            volumeMounts:
            - {name: simulated-devices, mountPath: /etc/dra-exporter, readOnly: true}
          volumes:
          - {name: pod-resources, hostPath: {path: %q}}
          - {name: cdi-run, hostPath: {path: %q}}
          - {name: cdi-etc, hostPath: {path: %q}}
          - {name: simulated-devices, configMap: {name: simulated-devices}}
`

// pushPatch sets a role's cluster name, by which the collector separates the
// senders, and maps the Service that the component names to an address,
// because the cluster has no DNS here. Its arguments are the address and the
// name.
const pushPatch = `apiVersion: apps/v1
kind: any
metadata: {name: any}
spec:
  template:
    spec:
      hostAliases: [{ip: %s, hostnames: [otel-collector.observability]}]
      containers:
      - name: dra-exporter
        imagePullPolicy: Never
        env:
        - {name: OTEL_METRIC_EXPORT_INTERVAL, value: "1300"}
        - {name: DRA_EXPORTER_OTLP_CLUSTER_NAME, value: %s}
`

// testPushComponent: both roles push to the collector that the component
// names, at its port, and identify themselves.
func testPushComponent(t *testing.T) {
	covers(t)
	at := func(port string) string { return net.JoinHostPort(shared.GatewayIP(), port) }
	c := startCollectorAt(t, "otelcol-component", at("4317"), at("4318"), at("13133"))
	args := fmt.Sprintf(`[node, --device.source=simulated, --simulated.config=/etc/dra-exporter/devices.yaml, --ledger.grace=%s]`, grace)
	manifests, err := kustomized(t.Context(), map[string]string{
		"devices.yaml": devices.yaml(),
		"node.yaml":    fmt.Sprintf(pushPatch, shared.GatewayIP(), "shipped-node"),
		"cluster.yaml": fmt.Sprintf(pushPatch, shared.GatewayIP(), "shipped-cluster"),
	}, func(deploy string) string {
		return fmt.Sprintf(pushOverlay, filepath.Join(deploy, "base"), filepath.Join(deploy, "components", "otlp"), args,
			filepath.Dir(shared.KubeletSocket()), shared.CDIDir(), filepath.Join(shared.Dir(), "no-such-folder"))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { undeployPush(t, manifests) })
	if err := shared.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
	node, cluster := readyPod(t, pushNamespace, agentSelector), readyPod(t, pushNamespace, clusterSelector)
	for _, s := range []*sender{
		{name: "shipped-node", node: shared.NodeName(), url: fmt.Sprintf("http://%s:9420/", node.Status.PodIP)},
		{name: "shipped-cluster", url: fmt.Sprintf("http://%s:9421/", cluster.Status.PodIP)},
	} {
		s.waitAgreement(t, c, "prometheus")
	}
}

// readyPod waits for the only pod with these labels.
func readyPod(t *testing.T, namespace, selector string) (pod *corev1.Pod) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "a pod of "+selector, func(ctx context.Context) error {
		pods, err := shared.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || !isReady(&pods.Items[0]) {
			return fmt.Errorf("there are %d pods, or it is not ready", len(pods.Items))
		}
		pod = &pods.Items[0]
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, describePushPods(t.Context()))
	}
	return pod
}

// describePushPods describes the pods of the component's test and their logs,
// for the report of a failure.
func describePushPods(ctx context.Context) string {
	pods, _ := shared.Kubectl(ctx, "describe", "pods", "--namespace", pushNamespace)
	logs, _ := shared.Kubectl(ctx, "logs", "--namespace", pushNamespace, "--selector", "app.kubernetes.io/name=dra-exporter", "--tail", "60", "--prefix")
	return pods + "\n" + logs
}

// undeployPush deletes both roles, and waits until their pods are gone.
func undeployPush(t *testing.T, manifests string) {
	ctx := context.WithoutCancel(t.Context())
	if t.Failed() {
		t.Log(describePushPods(ctx))
	}
	if err := shared.Delete(ctx, manifests); err != nil {
		t.Error(err)
	}
	err := cluster.Eventually(ctx, "both roles to be gone", func(ctx context.Context) error {
		pods, err := shared.Client().CoreV1().Pods(pushNamespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = errors.New("there are pods")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
