package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const (
	pluginResource = "e2e.test/gpu"
	pluginGPU      = "GPU-00000000-0000-0000-0000-000000000001" // gpu-1 of gpu.nvidia.com
)

// staticWeb is a static pod in the namespace of besideStatic.
const staticWeb = `
apiVersion: v1
kind: Pod
metadata: {name: static-web, namespace: beside-static}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never}]
`

// besideStatic are pods that hold devices: one alone (gpu-0), one on the
// device that a device plugin also gives to a second pod (gpu-1), and two that
// share a device by two claims (gpu-4).
const besideStatic = `
apiVersion: v1
kind: Namespace
metadata: {name: beside-static}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: alone, namespace: beside-static}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].uuid == 'GPU-00000000-0000-0000-0000-000000000000'"}}]}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: joint, namespace: beside-static}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].uuid == '` + pluginGPU + `'"}}]}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: slice-a, namespace: beside-static}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: shared.nvidia.com, capacity: {requests: {memory: 16Gi}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: slice-b, namespace: beside-static}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: shared.nvidia.com, capacity: {requests: {memory: 8Gi}}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: beside-static}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: alone}]
---
apiVersion: v1
kind: Pod
metadata: {name: joint, namespace: beside-static}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: joint}]
---
apiVersion: v1
kind: Pod
metadata: {name: slice-a, namespace: beside-static}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: slice-a}]
---
apiVersion: v1
kind: Pod
metadata: {name: slice-b, namespace: beside-static}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: slice-b}]
---
apiVersion: v1
kind: Pod
metadata: {name: plugged, namespace: beside-static}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {limits: {` + pluginResource + `: 1}}}]
`

// besideStaticPods returns the pods that hold devices.
func besideStaticPods() []string { return []string{"alone", "joint", "slice-a", "slice-b", "plugged"} }

// besideStaticHolds returns the attributions of the claims.
func besideStaticHolds() map[string]string {
	return map[string]string{"alone": "exclusive", "joint": "shared", "slice-a": "shared", "slice-b": "shared"}
}

// TestKubeletRestartStaticPods stops and starts the kubelet on a node with a
// static pod. The kubelet knows that pod before it has read any other from the
// API server, so that its first Lists contain the static pod only. Neither the
// deployed agent nor one that reads the kubelet only may end a hold because of
// them.
func TestKubeletRestartStaticPods(t *testing.T) {
	covers(t)
	startDevicePlugin(t, pluginResource, pluginGPU)
	deployText(t, "beside-static", besideStatic)
	addStaticPod(t, "static-web", staticWeb)
	for _, pod := range append(besideStaticPods(), "static-web-"+shared.NodeName()) {
		running(t, "beside-static", pod)
	}
	kubeletOnly := runKubeletAgent(t, devices)
	watchers := map[string]*scrape.Watcher{"deployed": watcher, kubeletOnly.name: watchHostAgent(t, kubeletOnly)}
	before, checks := map[string]*scrape.Page{}, map[string]*scrape.RuleCheck{}
	for name, w := range watchers {
		before[name] = pageWithin(t, w, time.Minute, name+": the holds", besideStaticHeld)
		checks[name] = w.CheckRule(holdsUnchanged("beside-static", before[name]))
	}
	whole := restartStaticPodsFirst(t, watchers)
	for name, w := range watchers {
		after := pageWithin(t, w, time.Minute, name+": the holds after a whole List", func(p *scrape.Page) error {
			return errors.Join(besideStaticHeld(p), listedAfter(p, whole))
		})
		heldThroughout(t, name, before[name], after)
		endRuleCheck(t, checks[name], 40)
	}
	waitDevicesPublished(t)
}

// addStaticPod runs a static pod until the test ends.
func addStaticPod(t *testing.T, name, manifest string) {
	t.Helper()
	remove, err := shared.AddStaticPod(name, manifest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
}

// runKubeletAgent starts an agent that reads the kubelet and never the API
// server.
func runKubeletAgent(t *testing.T, devices *hardware) *hostAgent {
	t.Helper()
	a := &hostAgent{name: "kubelet-only", config: filepath.Join(t.TempDir(), "devices.yaml")}
	a.change(t, devices)
	a.launch(t, exec.Command(agentBinary(),
		"node", "--kubernetes.disable", "--kubelet.pod-resources-socket="+shared.KubeletSocket(),
		"--device.source=simulated", "--simulated.config="+a.config, "--ledger.grace="+grace.String(),
	))
	return a
}

// watchHostAgent checks each page of an agent on the host against the rules of
// all pages until the test ends.
func watchHostAgent(t *testing.T, a *hostAgent) *scrape.Watcher {
	t.Helper()
	w := scrape.Watch(t.Context(), 250*time.Millisecond, a.metrics, scrape.Rules(grace)...)
	t.Cleanup(func() {
		if err := w.Broken(); err != nil || w.Pages() == 0 {
			t.Errorf("%d pages of the agent %s broke their rules: %v", w.Pages(), a.name, err)
		}
	})
	return w
}

// besideStaticHeld returns an error unless each claim holds its device, with
// its attribution, and the pod with the device plugin is listed.
func besideStaticHeld(p *scrape.Page) error {
	var errs []error
	for claim, attribution := range besideStaticHolds() {
		labels := scrape.Labels{"namespace": "beside-static", "resourceclaim": claim}
		errs = append(errs, claimHas(p, "dra_claim_held", labels, 1))
		row, err := p.One("dra_claim_utilization_ratio", labels)
		if err == nil && row.Labels["attribution"] != attribution {
			err = fmt.Errorf("dra_claim_utilization_ratio%s is not %s", row.Labels, attribution)
		}
		errs = append(errs, err)
	}
	plugged := scrape.Labels{"namespace": "beside-static", "pod": "plugged", "uuid": pluginGPU}
	return errors.Join(append(errs, claimHas(p, "dra_device_plugin_consumer_info", plugged, 1))...)
}

// holdsUnchanged returns a rule that the first page's series of the claims of
// a namespace, and of its pods with device plugins, are on each later page. No
// total is lower than before, and there is no other series, as a changed
// attribution would create.
func holdsUnchanged(namespace string, first *scrape.Page) scrape.Rule {
	in := scrape.Labels{"namespace": namespace}
	before := first
	return func(p *scrape.Page) (broken []error) {
		for _, name := range []string{
			"dra_claim_held", "dra_claim_held_seconds_total", "dra_claim_utilization_ratio", "dra_claim_busy_seconds_total",
			"dra_device_plugin_consumer_info",
		} {
			for _, row := range first.Rows(name, in) {
				if p.Count(name, row.Labels) != 1 {
					broken = append(broken, fmt.Errorf("%s%s is gone", name, row.Labels))
				}
			}
			for _, row := range p.Rows(name, in) {
				old, err := before.One(name, row.Labels)
				switch {
				case first.Count(name, row.Labels) != 1:
					broken = append(broken, fmt.Errorf("%s%s is new", name, row.Labels))
				case err == nil && name == "dra_claim_held_seconds_total" && row.Value < old.Value:
					broken = append(broken, fmt.Errorf("%s%s fell from %v to %v", name, row.Labels, old.Value, row.Value))
				}
			}
		}
		before = p
		return broken
	}
}

// restartStaticPodsFirst stops the kubelet and starts it again while the API
// server does not answer, until each agent has read the kubelet's list with
// the static pod only. It returns the time at which the kubelet first listed
// all pods again.
func restartStaticPodsFirst(t *testing.T, watchers map[string]*scrape.Watcher) (whole time.Time) {
	t.Helper()
	kubelet := shared.Process("kubelet")
	if err := kubelet.Stop(); err != nil {
		t.Fatal(err)
	}
	podresources := func(want float64) {
		for name, w := range watchers {
			pageWithin(t, w, time.Minute, fmt.Sprintf("%s: podresources %v", name, want), func(p *scrape.Page) error {
				return hasGauge(p, "dra_exporter_source_up", scrape.Labels{"source": "podresources"}, want)
			})
		}
	}
	podresources(0)
	resume := suspend(t, shared.Process("apiserver"))
	start(t, kubelet)
	podresources(1)
	// The kubelet answers before it has read the file of the static pod, too.
	err := cluster.Eventually(t.Context(), "the kubelet to list the static pod alone", func(context.Context) error {
		if listed := listedPods(t); !slices.Equal(listed, []string{"static-web-" + shared.NodeName()}) {
			return fmt.Errorf("it lists %q", listed)
		}
		return nil
	})
	resume()
	if err != nil {
		t.Fatal(err)
	}
	err = cluster.Eventually(t.Context(), "the kubelet to list all pods", func(context.Context) error {
		listed := listedPods(t)
		for _, pod := range besideStaticPods() {
			if !slices.Contains(listed, pod) {
				return fmt.Errorf("it lists %q", listed)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return time.Now()
}

// suspend stops a process with SIGSTOP until resume is called, so that its
// clients wait for an answer.
func suspend(t *testing.T, p *cluster.Process) (resume func()) {
	t.Helper()
	pid := p.PID()
	resume = func() { syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return resume
}

// listedPods returns the names of the pods that the kubelet lists, of all
// namespaces.
func listedPods(t *testing.T) (names []string) {
	t.Helper()
	pods, err := shared.PodResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		names = append(names, pod.GetName())
	}
	return names
}

// listedAfter returns an error unless an agent has read the kubelet after a
// time.
func listedAfter(p *scrape.Page, at time.Time) error {
	row, err := p.One("dra_exporter_source_last_success_timestamp_seconds", scrape.Labels{"source": "podresources"})
	if last := time.UnixMilli(int64(row.Value * 1000)); err == nil && !last.After(at) {
		err = fmt.Errorf("the last List was at %s", last.Format(time.TimeOnly))
	}
	return err
}

// heldThroughout fails the test unless the claims were held for the time
// between two pages, with a tolerance of a few seconds.
func heldThroughout(t *testing.T, agent string, before, after *scrape.Page) {
	t.Helper()
	passed := after.At.Sub(before.At).Seconds()
	for claim := range besideStaticHolds() {
		held := increase(before, after, "dra_claim_held_seconds_total", scrape.Labels{"namespace": "beside-static", "resourceclaim": claim})
		t.Logf("by the agent %s %s was held for %.1f of %.1f s", agent, claim, held, passed)
		if !(held > passed-5 && held < passed+5) {
			t.Errorf("by the agent %s %s was held for %v of %v s", agent, claim, held, passed)
		}
	}
}

// allocatable returns an error unless the node has this many of a resource for
// pods.
func allocatable(ctx context.Context, resource string, want int64) error {
	node, err := shared.Client().CoreV1().Nodes().Get(ctx, shared.NodeName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	has := node.Status.Allocatable[corev1.ResourceName(resource)]
	if has.Value() != want {
		return fmt.Errorf("it has %s of it", has.String())
	}
	return nil
}
