package apiserver

import (
	"fmt"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// manyPodsNode returns a node without sources, and its pods.
func manyPodsNode(t testing.TB) *NodeWatch {
	t.Helper()
	n, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Node: "node-a", Log: slog.New(slog.DiscardHandler), Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// numberedPod returns a pod with a claim; one in a hundred has not ended.
func numberedPod(i int) *corev1.Pod {
	claim := fmt.Sprintf("claim-%d", i)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: fmt.Sprintf("pod-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i))}}
	pod.Spec.NodeName = "node-a"
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}}
	pod.Status.Phase = corev1.PodSucceeded
	if i%100 == 0 {
		pod.Status.Phase = corev1.PodRunning
	}
	return pod
}

// The references of a pod are resolved once for each of its changes, however
// many pods exist, terminated or not, from lists and from events.
func TestWorkIsLinearInPods(t *testing.T) {
	const listed, watched = 5_000, 5_000
	n := manyPodsNode(t)
	var all []any
	for i := range listed {
		all = append(all, numberedPod(i))
	}
	n.pods.Replace(all)
	for i := range watched {
		if _, err := n.pods.Receive(numberedPod(listed+i), false, true); err != nil {
			t.Fatal(err)
		}
	}
	if n.index.resolved != listed+watched {
		t.Errorf("%d pods were resolved %d times", listed+watched, n.index.resolved)
	}
	facts := n.Latest()
	if want := (listed + watched) / 100; len(facts.Pods) != want || len(facts.Unread) != want {
		t.Errorf("%d pods and %d claims, want %d of each", len(facts.Pods), len(facts.Unread), want)
	}
	// What ends and goes costs as little, and leaves nothing behind.
	for i := range listed + watched {
		if _, err := n.pods.Receive(numberedPod(i), true, true); err != nil {
			t.Fatal(err)
		}
	}
	if n.index.resolved != 2*(listed+watched) {
		t.Errorf("after the end the pods were resolved %d times", n.index.resolved)
	}
	if i := n.index; len(i.references)+len(i.consumers)+len(i.changed)+len(i.withClaims)+len(n.claims.records)+len(n.claims.queue.items) != 0 {
		t.Errorf("something stays: %+v", i)
	}
}

// The same with pods from the kubelet.
func TestWorkIsLinearInFedPods(t *testing.T) {
	const many = 3_000
	n, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Node: "node-a", PodsFed: true, Log: slog.New(slog.DiscardHandler), Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	n.feed.Begin()
	for i := range many {
		n.feed.Pod(numberedPod(i))
	}
	n.feed.Synced()
	n.feed.Listed(nil)
	for i := range many {
		n.feed.Pod(numberedPod(i)) // as the next watch delivers them
	}
	n.feed.Listed(nil)
	if n.index.resolved > 2*many {
		t.Errorf("%d pods, fed twice, were resolved %d times", many, n.index.resolved)
	}
	for i := range many {
		n.feed.Ended(fmt.Sprintf("uid-%d", i))
	}
	if f, i := n.feed.pods, n.index; len(f.pods)+len(f.names)+len(f.groups)+len(n.feed.unlisted.pods)+len(i.references)+len(i.consumers)+len(n.claims.records) != 0 {
		t.Errorf("something stays: %+v", i)
	}
}

func BenchmarkPodsOfANode(b *testing.B) {
	for _, pods := range []int{1_000, 50_000} {
		var all []any
		for i := range pods {
			all = append(all, numberedPod(i))
		}
		b.Run(fmt.Sprintf("list/pods=%d", pods), func(b *testing.B) {
			for b.Loop() {
				manyPodsNode(b).pods.Replace(all)
			}
		})
		b.Run(fmt.Sprintf("event/pods=%d", pods), func(b *testing.B) {
			n := manyPodsNode(b)
			n.pods.Replace(all)
			i := 0
			for b.Loop() {
				i++
				pod := numberedPod(i % pods)
				pod.UID = types.UID(fmt.Sprintf("again-%d", i))
				if _, err := n.pods.Receive(pod, false, true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
