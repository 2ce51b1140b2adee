package apiserver

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestReportsObjectsAndChanges(t *testing.T) {
	template := &resourcev1.ResourceClaimTemplate{}
	template.Namespace, template.Name = "lab", "t"
	plain := podWithClaim("plain", "pod-9", "x")
	plain.Spec.ResourceClaims = nil
	f := startClusterTest(t, nil, podWithClaim("train", "pod-1", "gpu"), plain, claim("gpu", "claim-1", "node-a", "gpu-3", "pod-1"),
		publish("s", "node-a", "node-a", 1, 1, "gpu-3"), deviceClass("c", ""), template, node("node-a", "v1.37.1"),
		event("e", decode.ReasonPreparation, "train"), event("other", "Started", "train"))
	f.untilSynced()
	if want, got := "claim lab/gpu, class c, node node-a, slice s, template lab/t", f.keeper.content(); got != want {
		t.Errorf("the keeper has %s, want %s", got, want)
	}
	for _, change := range f.changes {
		if change.Live || change.Gone {
			t.Errorf("an object of a list was reported as %+v", change)
		}
	}
	want := map[string]string{"claim lab/gpu": "claim-1", "pod lab/train": "pod-1", "node node-a": "", "warning lab/e": ""}
	if !maps.Equal(f.state, want) {
		t.Errorf("reported %v, want %v", f.state, want)
	}
	for _, status := range f.cluster.Statuses() {
		if !status.Up || status.Reason != source.ReasonNone {
			t.Errorf("source %+v", status)
		}
	}
	before := len(f.changes)
	f.put(claim("gpu", "claim-1", "node-a", "gpu-3"), event("f", decode.ReasonCreation, "train"))
	f.until("both are reported", func() bool { return len(f.changes) >= before+2 })
	f.delete(claim("gpu", "", "", ""), podWithClaim("train", "", ""))
	f.put(node("node-a", "v1.37.1"), node("node-b", "v1.35.4"))
	f.until("all are reported", func() bool { return len(f.changes) >= before+5 })
	got := f.since(before)
	slices.Sort(got)
	if want := []string{"claim lab/gpu live", "claim lab/gpu live gone", "node node-b live", "pod lab/train live gone", "warning lab/f live"}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
	if n := f.keeper.times("node node-a"); n != 1 {
		t.Errorf("the keeper was given a node that is the same %d times", n)
	}
}

func TestReadsOneNamespace(t *testing.T) {
	far := claim("far", "claim-2", "", "")
	far.Namespace = "other"
	f := startClusterTest(t, nil, claim("gpu", "claim-1", "", ""), far, publish("s", "node-a", "node-a", 1, 1, "gpu-3"))
	f.untilSynced()
	if len(f.state) != 2 {
		t.Errorf("without a namespace: %v", f.state)
	}
	f.stop()
	f.state, f.changes = make(map[string]string), nil
	f.start(f.server.Config(), "other")
	f.untilSynced()
	if want := map[string]string{"claim other/far": "claim-2"}; !maps.Equal(f.state, want) {
		t.Errorf("reported %v", f.state)
	}
}

func TestRequiredClusterOptions(t *testing.T) {
	for name, spoil := range map[string]func(*ClusterWatchOptions){
		"configuration": func(o *ClusterWatchOptions) { o.Config = nil },
		"keeper":        func(o *ClusterWatchOptions) { o.Keeper = nil },
		"logger":        func(o *ClusterWatchOptions) { o.Log = nil },
		"clock":         func(o *ClusterWatchOptions) { o.Clock = nil },
	} {
		options := ClusterWatchOptions{Config: &rest.Config{}, Keeper: newRecordingKeeper(), Log: slog.New(slog.DiscardHandler), Clock: clock.System()}
		if _, err := NewClusterWatch(options); err != nil {
			t.Fatal(err)
		}
		spoil(&options)
		if _, err := NewClusterWatch(options); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// podWithExtendedResources returns a pod that requests extended resources and
// uses no claim.
func podWithExtendedResources(name, uid string, asks map[string]string) *corev1.Pod {
	pod := podWithClaim(name, uid, "x")
	pod.Spec.ResourceClaims, pod.Spec.Containers[0].Resources.Claims = nil, nil
	pod.Spec.Containers[0].Resources.Requests = quantities(asks)
	return pod
}

func TestReportsPodsWithExtendedResources(t *testing.T) {
	f := startClusterTest(t, nil,
		podWithExtendedResources("explicit", "pod-1", map[string]string{"example.com/gpu": "2", "example.com/nic": "1", "cpu": "1"}),
		podWithExtendedResources("implicit", "pod-2", map[string]string{"deviceclass.resource.kubernetes.io/c": "1"}),
		podWithExtendedResources("plugin", "pod-3", map[string]string{"example.com/nic": "1"}))
	f.untilSynced()
	if want := map[string]string{"pod lab/implicit": "pod-2"}; !maps.Equal(f.state, want) {
		t.Errorf("without a class, reported %v", f.state)
	}
	f.put(deviceClass("gpu", "example.com/gpu"))
	f.until("the pod of the class is reported", func() bool { return f.state["pod lab/explicit"] != "" })
	last := f.changes[len(f.changes)-1]
	if want := map[string]int64{"example.com/gpu": 2}; last.Live || last.Pod == nil || !maps.Equal(last.Pod.Extended, want) {
		t.Errorf("reported %+v of %+v", last, last.Pod)
	}
	f.put(deviceClass("nic", "example.com/nic"))
	f.until("the other is reported as well", func() bool { return f.state["pod lab/plugin"] != "" })
	f.put(deviceClass("gpu", "example.com/other"))
	f.until("the resource stands for nothing any more", func() bool {
		last := f.changes[len(f.changes)-1]
		return last.Pod != nil && fmt.Sprint(last.Pod.Extended) == "map[example.com/nic:1]" && last.Pod.Ref.Name == "explicit"
	})
	f.delete(deviceClass("nic", ""))
	f.until("no pod requests devices", func() bool { return len(f.state) == 1 })
}

// A pod that is first reported because a change makes it use devices is not a
// new pod.
func TestPodThatGainsDevicesIsNotNew(t *testing.T) {
	uid := func(uid string) *corev1.Pod {
		return podWithExtendedResources("late", uid, map[string]string{"example.com/gpu": "1"})
	}
	f := startClusterTest(t, nil, uid("pod-1"))
	f.untilSynced()
	named := uid("pod-1")
	named.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "made"}
	before := len(f.changes)
	f.put(named)
	f.until("it is reported", func() bool { return len(f.changes) > before })
	ended := named.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	f.put(ended)
	f.until("the next change is reported", func() bool { return len(f.changes) > before+1 })
	f.put(uid("pod-2"))
	f.until("it is gone", func() bool { return len(f.changes) > before+2 })
	again := uid("pod-3")
	again.Status = named.Status
	f.put(again)
	f.until("one recreated under its name is reported", func() bool { return len(f.changes) > before+3 })
	want := []string{"pod lab/late", "pod lab/late live", "pod lab/late live gone", "pod lab/late live"}
	if got := f.since(before); !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
}

func TestRestartedContainerKeepsStart(t *testing.T) {
	started := func(n int) *corev1.Pod {
		pod := podWithClaim("train", "pod-1", "gpu")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(n)}}}}
		return pod
	}
	f := startClusterTest(t, nil, started(5))
	f.untilSynced()
	before := len(f.changes)
	f.put(started(90))
	f.put(started(95), claim("gpu", "claim-1", "", ""))
	f.until("the claim is reported", func() bool { return f.state["claim lab/gpu"] != "" })
	again := started(200)
	again.UID = "pod-2"
	f.put(again)
	f.until("another pod is reported", func() bool { return f.state["pod lab/train"] == "pod-2" })
	got := f.since(before)
	slices.Sort(got)
	if want := []string{"claim lab/gpu live", "pod lab/train live", "pod lab/train live gone"}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
	if last := f.changes[len(f.changes)-1].Pod; last == nil || !last.Started.Equal(on(200)) {
		t.Errorf("another pod of the name started with the one before: %+v", last)
	}
}
