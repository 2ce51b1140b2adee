package apiserver

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestRefusesInvalidPodLabels(t *testing.T) {
	for key, want := range map[string]bool{"team": true, "example.com/cost-center": true, "*": false, "": false, "a b": false, "a/b/c": false} {
		_, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Node: "node-a", Clock: clock.System(), Log: slog.New(slog.DiscardHandler), PodLabels: []string{"fine", key}})
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), `"`+key+`"`) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// podWithPlugin returns a pod with devices of a device plugin, and no claims.
func podWithPlugin(name, uid string) *corev1.Pod {
	pod := podWithClaim(name, uid, "")
	pod.Spec.ResourceClaims, pod.Spec.Containers[0].Resources.Claims = nil, nil
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": {}}
	return pod
}

func TestReportsPodsWithDevicePlugins(t *testing.T) {
	ended := podWithPlugin("ended", "pod-4")
	ended.Status.Phase = corev1.PodSucceeded
	both := podWithClaim("both", "pod-3", "gpu")
	both.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": {}}
	labelled := podWithPlugin("a", "pod-1")
	labelled.Labels = map[string]string{"team": "vision", "other": "x"}
	c := startNodeTest(t, nil, podWithPlugin("b", "pod-2"), labelled, both, ended, claim("gpu", "claim-1", "node-a", "gpu-3", "pod-3"))
	known := func(want ...dra.Pod) func(NodeFacts) bool {
		return func(f NodeFacts) bool {
			return f.PodsFresh && f.SlicesFresh && len(f.Claims) == 1 && reflect.DeepEqual(f.PluginPods, want)
		}
	}
	pod := func(name, uid, team string) dra.Pod {
		return dra.Pod{Ref: dra.PodRef{Namespace: "lab", Name: name}, UID: uid, Node: "node-a", Labels: []string{team}}
	}
	before := c.until("pods that have not ended are known", known(pod("a", "pod-1", "vision"), pod("b", "pod-2", "")))
	if podNames(before) != "both" {
		t.Errorf("pods with claims: %s", podNames(before))
	}

	relabelled := labelled.DeepCopy()
	relabelled.Labels["team"] = "speech"
	c.put(relabelled)
	c.until("a label has changed", known(pod("a", "pod-1", "speech"), pod("b", "pod-2", "")))
	c.delete(podWithPlugin("b", "pod-2"))
	c.put(podWithPlugin("b", "pod-9"))
	c.until("one is made again under its name", known(pod("a", "pod-1", "speech"), pod("b", "pod-9", "")))
	over := relabelled.DeepCopy()
	over.Status.Phase = corev1.PodFailed
	c.put(over)
	after := c.until("one has ended", known(pod("b", "pod-9", "")))
	if &after.Pods[0] != &before.Pods[0] || &after.Claims[0] != &before.Claims[0] {
		t.Error("pods of device plugins cause the other lists to be recreated")
	}
	if again := c.node.Latest(); &again.PluginPods[0] != &after.PluginPods[0] {
		t.Error("the list is recreated though nothing has changed")
	}
}

// TestStaticPods: processes of static pods are in cgroups with the kubelet's
// UID, not with that of the mirror pod.
func TestStaticPods(t *testing.T) {
	const static = "cfe2a1b09d8c7e6f5a4b3c2d1e0f9a8b"
	mirror := podWithPlugin("monitor-node-a", "pod-1")
	mirror.Annotations = map[string]string{"kubernetes.io/config.mirror": static, "kubernetes.io/config.source": "file"}
	c := startNodeTest(t, nil, mirror)
	facts := c.until("the static pod is known", func(f NodeFacts) bool { return len(f.PluginPods) == 1 })
	if got := facts.PluginPods[0].UID; got != static {
		t.Errorf("its processes are looked for under %q, and are those of %q", got, static)
	}
	if light := decode.StripPod(mirror, decode.PodFields{}); len(light.Annotations) != 1 {
		t.Errorf("annotations are kept: %q", light.Annotations)
	}
}

// TestChangesWithoutNewListing: labels and ids of containers are new facts, but
// do not change what the kubelet lists.
func TestChangesWithoutNewListing(t *testing.T) {
	running := func(id string) *corev1.Pod {
		pod := podWithClaim("one", "pod-1", "gpu")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", ContainerID: id, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
		return pod
	}
	c := startNodeTest(t, nil, running("containerd://first"), claim("gpu", "claim-1", "node-a", "gpu-3", "pod-1"))
	c.until("all is known", hasClaim("claim-1"))
	if !c.podChanged() {
		t.Error("the first list is not reported")
	}
	c.put(running("containerd://second"))
	c.until("a container has another id", func(f NodeFacts) bool { return f.Pods[0].Containers[0].ID == "second" })
	labelled := running("containerd://second")
	labelled.Labels = map[string]string{"team": "vision"}
	c.put(labelled)
	facts := c.until("a label has come", func(f NodeFacts) bool { return f.Pods[0].Labels[0] == "vision" })
	if !c.noPodChange() {
		t.Error("a change of ids and labels makes the agent list the pods of the kubelet")
	}
	if facts.Pods[0].Containers[0].ID != "second" || len(facts.PluginPods) != 0 {
		t.Errorf("facts %+v", facts)
	}
	stopped := labelled.DeepCopy()
	stopped.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	c.put(stopped)
	if !c.podChanged() {
		t.Error("the end of a container is not reported")
	}
}

func quantities(asks map[string]string) corev1.ResourceList {
	list := make(corev1.ResourceList)
	for name, amount := range asks {
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

// second returns a time as the API server writes it.
func second(n int) metav1.Time { return metav1.Unix(1_800_000_000+int64(n), 0) }

func on(n int) time.Time { return second(n).UTC() }
