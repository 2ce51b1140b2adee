package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// fitObjects are the namespace and the template of the pods.
const fitObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: fit}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: fit}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
`

// keeperPod is a pod without a controller and without devices.
const keeperPod = `
apiVersion: v1
kind: Pod
metadata: {name: keeper, namespace: fit}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never}]
`

// fitPod is one of the pods.
func fitPod(name, cpu string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: fit}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {requests: {cpu: %q}, claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
`, name, cpu)
}

// fitReport is what `dra-exporter fit -o json` says.
type fitReport struct {
	Fits      bool
	Pods      int
	Exact     bool
	Obstacles []struct {
		Kind string
		Pods int
	}
	Next *struct{ Reason string }
}

// fit runs the command for a manifest.
func fit(t *testing.T, manifest string) (report fitReport, status int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), agentBinary(), "fit", "--kubeconfig="+shared.Kubeconfig(), "--output=json", "--filename=-")
	command.Stdin = strings.NewReader(manifest)
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	if exited := (*exec.ExitError)(nil); errors.As(err, &exited) {
		status = exited.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("exit status %d, %v: %s%s", status, err, output, complaints.String())
	}
	return report, status
}

// cordon cordons the node, or ends that.
func cordon(ctx context.Context, t *testing.T, cordoned bool) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec": {"unschedulable": %v}}`, cordoned)
	if _, err := shared.Client().CoreV1().Nodes().Patch(ctx, shared.NodeName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

// TestFit: as many pods as predicted run on the real node, and the next one is pending
// for the reason that was predicted; the headroom says the same. What keeps pods from a
// node with devices is named.
func TestFit(t *testing.T) {
	covers(t)
	deployText(t, "fit", fitObjects)
	shape := scrape.Labels{"deviceclass": "gpu.example.com", "shape": "1"}
	var predicted fitReport
	waitClusterPage(t, "the headroom of the class", func(p *scrape.Page) error {
		predicted, _ = fit(t, fitPod("next", "1m"))
		return errors.Join(
			hasGauge(p, "dra_class_headroom_claims", shape, float64(predicted.Pods)), hasGauge(p, "dra_class_headroom_pods", shape, float64(predicted.Pods)))
	})
	if !predicted.Fits || predicted.Pods < 1 || predicted.Pods > 50 || !predicted.Exact || predicted.Next == nil || len(predicted.Obstacles) > 0 {
		t.Fatalf("predicted: %+v", predicted)
	}
	t.Logf("%d pods, then %s", predicted.Pods, predicted.Next.Reason)

	// No claim holds a device of the node, and a pod without a controller keeps it.
	idle := scrape.Labels{"node": shared.NodeName(), "reason": "no_controller"}
	if err := shared.Apply(t.Context(), keeperPod); err != nil {
		t.Fatal(err)
	}
	waitClusterPage(t, "what keeps the idle node", func(p *scrape.Page) error {
		if hasNoRow(p, "dra_idle_node_obstacles", idle) == nil {
			return errors.New("nothing keeps the node")
		}
		return nil
	})

	cordon(t.Context(), t, true)
	t.Cleanup(func() { cordon(context.WithoutCancel(t.Context()), t, false) })
	waitClusterPage(t, "devices on a cordoned node", func(p *scrape.Page) error {
		return errors.Join(hasGauge(p, "dra_class_headroom_claims", shape, float64(predicted.Pods)), hasGauge(p, "dra_class_headroom_pods", shape, 0),
			hasGauge(p, "dra_devices_stranded", scrape.Labels{"driver": "gpu.example.com", "node": shared.NodeName(), "reason": "node_cordoned"}, float64(predicted.Pods)))
	})
	kept := func(what, cpu, kind string) {
		t.Helper()
		report, status := fit(t, fitPod("next", cpu))
		if status != 3 || report.Fits || len(report.Obstacles) != 1 || report.Obstacles[0].Kind != kind {
			t.Errorf("%s: exit status %d: %+v", what, status, report)
		}
	}
	kept("a cordoned node", "1m", "cordoned")
	cordon(t.Context(), t, false)
	kept("too little CPU", "1000", "cpu")

	var pods strings.Builder
	for i := range predicted.Pods + 1 {
		pods.WriteString(fitPod(fmt.Sprintf("filler-%d", i), "1m"))
	}
	if err := shared.Apply(t.Context(), pods.String()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	left := ""
	err := cluster.Eventually(ctx, "as many pods as predicted", func(ctx context.Context) error {
		all, err := shared.Client().CoreV1().Pods("fit").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		all.Items = slices.DeleteFunc(all.Items, func(pod corev1.Pod) bool { return pod.Name == "keeper" })
		runs := 0
		for i := range all.Items {
			if all.Items[i].Status.Phase == corev1.PodRunning {
				runs++
			} else {
				left = all.Items[i].Name
			}
		}
		if runs != predicted.Pods || len(all.Items) != runs+1 {
			return fmt.Errorf("%d of %d pods run, %d were predicted", runs, len(all.Items), predicted.Pods)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	waitClusterPage(t, "the next pod pending for the predicted reason", func(p *scrape.Page) error {
		info := scrape.Labels{"deviceclass": "gpu.example.com", "shape": "1", "exact": "true", "limit": predicted.Next.Reason}
		return errors.Join(
			hasGauge(p, "dra_claim_pending_reason_info", scrape.Labels{"namespace": "fit", "pod": left, "reason": predicted.Next.Reason}, 1),
			hasGauge(p, "dra_class_headroom_claims", shape, 0), hasGauge(p, "dra_class_headroom_info", info, 1),
			hasNoRow(p, "dra_idle_node_obstacles", scrape.Labels{"node": shared.NodeName()}),
		)
	})
	if report, status := fit(t, fitPod("next", "1m")); status != 3 || report.Pods != 0 || report.Next == nil || report.Next.Reason != predicted.Next.Reason {
		t.Errorf("on the full node: exit status %d: %+v", status, report)
	}
}
