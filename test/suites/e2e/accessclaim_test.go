package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
)

// tolerations replaces those of the agent's claim.
const tolerations = `
- target: {kind: ResourceClaimTemplate}
  patch: |
    - {op: replace, path: /spec/spec/devices/requests/0/exactly/tolerations, value: %s}
`

// evictionRule is a rule that taints every GPU except the worker's with
// NoExecute. Its arguments are the version of its API, the node and the
// device.
const evictionRule = `
apiVersion: resource.k8s.io/%s
kind: DeviceTaintRule
metadata: {name: access}
spec:
  deviceSelector: {driver: gpu.nvidia.com, pool: %s, device: %s}
  taint: {key: e2e.example.com/repair, value: "yes", effect: NoExecute}
`

// testAdminClaim: the agent has a claim by admin access on all GPUs, one of
// which the worker holds.
func (n *accessNode) testAdminClaim(t *testing.T) {
	covers(t)
	a := n.deploy(t, accessPath{namespace: "access-claim", base: "base", component: "admin-access"})
	n.checkAgent(t, a)
	a.checkDeviceNodes(t, 0, 1)
	t.Run("taint", func(t *testing.T) { n.testTolerated(t, a) })
	t.Run("evicted", n.testEvicted)
}

// waitComputeModeReset waits until NVIDIA's driver has reset the compute mode
// of every GPU. With its gate TimeSlicingSettings it does so whenever a claim
// ends, with or without admin access. docs/access.md warns of it.
func (n *accessNode) waitComputeModeReset(t *testing.T, before int) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "the GPUs' compute mode set", func(context.Context) error {
		calls := cluster.NVIDIALog(n.Dir, "nvidia-smi")[before:]
		for gpu := range accessGPUs {
			if call := "-i " + publishedUUID(t, gpu) + " -c DEFAULT"; !strings.Contains(calls, call) {
				return fmt.Errorf("the driver has not called nvidia-smi %s, but %q", call, calls)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// taintIdle adds a NoExecute taint to the GPU that the worker does not hold.
func (n *accessNode) taintIdle(t *testing.T) {
	t.Helper()
	idle := 1 - heldNVIDIADeviceOf(t, "access", []string{"worker/main"}).gpu
	text := fmt.Sprintf(evictionRule, shared.TaintRuleVersion(), shared.NodeName(), fmt.Sprintf("gpu-%d", idle))
	if err := shared.Apply(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Delete(context.WithoutCancel(t.Context()), text); err != nil {
			t.Error(err)
		}
	})
}

// testTolerated: the shipped claim tolerates taints, so that the agent
// continues to run beside unhealthy devices and to report them.
func (n *accessNode) testTolerated(t *testing.T, a *accessAgent) {
	if !shared.Has(releases.TolerationsOfClaims) {
		t.Run("not", func(t *testing.T) {
			n.taintIdle(t)
			n.waitEvicted(t, a)
		})
		a.waitReplacementPod(t)
		return
	}
	n.taintIdle(t)
	// Taints evict a pod within a second or two.
	deadline := time.NewTimer(8 * time.Second)
	defer deadline.Stop()
	select {
	case <-deadline.C:
	case <-t.Context().Done():
	}
	pod, err := shared.Client().CoreV1().Pods(a.path.namespace).Get(t.Context(), a.pod.Name, metav1.GetOptions{})
	if err != nil || pod.UID != a.pod.UID || pod.DeletionTimestamp != nil {
		t.Fatalf("the agent's pod is not what it was: %v", err)
	}
	n.checkAgent(t, a)
	calls := len(cluster.NVIDIALog(n.Dir, "nvidia-smi"))
	if calls > 0 {
		t.Error("the driver has called nvidia-smi for a claim that had not ended: docs/access.md says otherwise")
	}
	if err := shared.Client().CoreV1().Pods(a.path.namespace).Delete(t.Context(), a.pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.waitReplacementPod(t)
	n.checkAgent(t, a)
	n.waitComputeModeReset(t, calls)
}

// waitEvicted waits until the agent's pod is evicted.
func (n *accessNode) waitEvicted(t *testing.T, a *accessAgent) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "eviction of the agent", func(ctx context.Context) error {
		pod, err := shared.Client().CoreV1().Pods(a.path.namespace).Get(ctx, a.pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && (pod.UID != a.pod.UID || pod.DeletionTimestamp != nil) {
			return nil
		}
		return errors.Join(err, errors.New("it is not evicted"))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waitReplacementPod waits for the pod that replaces the agent's.
func (a *accessAgent) waitReplacementPod(t *testing.T) {
	t.Helper()
	var pod *corev1.Pod
	err := cluster.Eventually(t.Context(), "the agent's next pod", func(ctx context.Context) error {
		pods, err := shared.Client().CoreV1().Pods(a.path.namespace).List(ctx, metav1.ListOptions{LabelSelector: agentSelector})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if pod = &pods.Items[i]; pod.UID != a.pod.UID && isReady(pod) {
				return nil
			}
		}
		return errors.New("it is not ready")
	})
	if err != nil {
		t.Fatal(err)
	}
	a.pod, a.url = pod, fmt.Sprintf("http://%s:9420/", pod.Status.PodIP)
}

// testEvicted: without the shipped tolerations the same taint evicts the
// agent. Without any toleration the replacement is pending, because no claim
// may be allocated the device. With a toleration of another effect it is
// allocated the device and evicted again.
func (n *accessNode) testEvicted(t *testing.T) {
	n.evicted(t, "access-intolerant", "[]", func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	n.evicted(t, "access-half", "[{operator: Exists}]", func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
}

// evicted checks that an agent whose claim has these tolerations is evicted
// and replaced by a pod for which follows returns true.
func (n *accessNode) evicted(t *testing.T, namespace, value string, follows func(*corev1.Pod) bool) {
	t.Run(namespace, func(t *testing.T) {
		a := n.deploy(t, accessPath{namespace: namespace, base: "base", component: "admin-access", patches: []string{fmt.Sprintf(tolerations, value)}})
		n.taintIdle(t)
		err := cluster.Eventually(t.Context(), "the agent to be evicted", func(ctx context.Context) error {
			pods, err := shared.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: agentSelector})
			if err != nil {
				return err
			}
			for i := range pods.Items {
				if pod := &pods.Items[i]; pod.UID != a.pod.UID && follows(pod) {
					return nil
				}
			}
			return fmt.Errorf("there are %d pods, and none is one that follows", len(pods.Items))
		})
		if err != nil {
			t.Error(err)
		}
	})
}
