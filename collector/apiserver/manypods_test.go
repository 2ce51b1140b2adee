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

// manyPodsNode is a node that nothing is read for, and its pods.
func manyPodsNode(t testing.TB) *Node {
	t.Helper()
	n, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Node: "node-a", Log: slog.New(slog.DiscardHandler), Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	n.podWatch.giveUp = func() {}
	return n
}

// numbered is a pod with a claim; one of a hundred has not ended.
func numbered(i int) *corev1.Pod {
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

// Each change of a pod is looked at once, however many pods there are, ended or
// not, and whether they come by a list or by events.
func TestWorkIsLinearInPods(t *testing.T) {
	const listed, told = 5_000, 5_000
	n := manyPodsNode(t)
	var all []any
	for i := range listed {
		all = append(all, numbered(i))
	}
	if err := n.pods.Replace(all, "1"); err != nil {
		t.Fatal(err)
	}
	for i := range told {
		if err := n.pods.Add(numbered(listed + i)); err != nil {
			t.Fatal(err)
		}
	}
	if n.demand.looks != listed+told {
		t.Errorf("%d pods were looked at %d times", listed+told, n.demand.looks)
	}
	facts := n.Latest()
	if want := (listed + told) / 100; len(facts.Pods) != want || len(facts.Unread) != want {
		t.Errorf("%d pods and %d claims, want %d of each", len(facts.Pods), len(facts.Unread), want)
	}
	// What ends and goes costs as little, and leaves nothing behind.
	for i := range listed + told {
		if err := n.pods.Delete(numbered(i)); err != nil {
			t.Fatal(err)
		}
	}
	if n.demand.looks != 2*(listed+told) {
		t.Errorf("after the end the pods were looked at %d times", n.demand.looks)
	}
	if d := &n.demand; len(d.pods)+len(d.users)+len(d.due)+len(n.book.known)+len(n.withClaims)+len(n.book.agenda.appointments) != 0 {
		t.Errorf("something stays: %+v", d)
	}
}

// The same where the kubelet tells the pods.
func TestWorkIsLinearInFedPods(t *testing.T) {
	const many = 3_000
	n, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Node: "node-a", PodsFed: true, Log: slog.New(slog.DiscardHandler), Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	n.fed.Begin()
	for i := range many {
		n.fed.Pod(numbered(i))
	}
	n.fed.Synced()
	n.fed.Listed(nil)
	for i := range many {
		n.fed.Pod(numbered(i)) // as the next watch tells
	}
	n.fed.Listed(nil)
	if n.demand.looks > 2*many {
		t.Errorf("%d pods, told twice, were looked at %d times", many, n.demand.looks)
	}
	for i := range many {
		n.fed.Ended(fmt.Sprintf("uid-%d", i))
	}
	if f, d := n.fed, &n.demand; len(f.pods)+len(f.names)+len(f.groups)+len(f.hidden.pods)+len(d.pods)+len(d.users)+len(n.book.known) != 0 {
		t.Errorf("something stays: %+v", d)
	}
}

func BenchmarkPodsOfANode(b *testing.B) {
	for _, pods := range []int{1_000, 50_000} {
		var all []any
		for i := range pods {
			all = append(all, numbered(i))
		}
		b.Run(fmt.Sprintf("list/pods=%d", pods), func(b *testing.B) {
			for b.Loop() {
				if err := manyPodsNode(b).pods.Replace(all, "1"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("event/pods=%d", pods), func(b *testing.B) {
			n := manyPodsNode(b)
			if err := n.pods.Replace(all, "1"); err != nil {
				b.Fatal(err)
			}
			i := 0
			for b.Loop() {
				i++
				pod := numbered(i % pods)
				pod.UID = types.UID(fmt.Sprintf("again-%d", i))
				if err := n.pods.Update(pod); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
