package apiserver

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// pendingPod returns a pod that references this many claims and is not bound.
func pendingPod(namespace, name string, claims int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
	for i := range claims {
		claim := fmt.Sprintf("%s-%d", name, i)
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: strconv.Itoa(i), ResourceClaimName: &claim})
	}
	return pod
}

// unconnected is a ClusterWatch that sends nothing.
func unconnected(t *testing.T) *ClusterWatch {
	t.Helper()
	cluster, err := NewClusterWatch(ClusterWatchOptions{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Keeper: discardKeeper{}, Log: slog.New(slog.DiscardHandler), Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// reportedReferences returns the references of the changes, by pod name,
// without those of deleted pods.
func reportedReferences(changes []Change) (all map[string]int, sum int) {
	all = make(map[string]int)
	for _, change := range changes {
		if change.Gone {
			delete(all, change.Pod.Ref.String())
		} else {
			all[change.Pod.Ref.String()] = len(change.Pod.Claims)
		}
	}
	for _, count := range all {
		sum += count
	}
	return all, sum
}

// TestPendingReferencesOfANamespace: pending references are reported up to a
// limit. Each namespace has its own limit, and bound pods do not count.
func TestPendingReferencesOfANamespace(t *testing.T) {
	c := unconnected(t)
	update := func(pod *corev1.Pod) {
		if _, err := c.pods.store.Receive(pod, false, true); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		update(pendingPod("hostile", strconv.Itoa(i), 1000))
	}
	all, sum := reportedReferences(c.Drain())
	if sum != namespaceReferences || all["hostile/0"] != 64 || all["hostile/299"] != 0 {
		t.Fatalf("%d references are reported; %v", sum, all)
	}
	up := source.Status{Name: "pods", Up: true}
	wantDropped := 300*64 - namespaceReferences
	if status := c.pods.limit.status(up); status.Reason != source.ReasonResourceExhausted || !strings.HasPrefix(status.Message, fmt.Sprintf("%d references", wantDropped)) {
		t.Errorf("status %+v", status)
	}
	update(pendingPod("other", "one", 3))
	if all, _ := reportedReferences(c.Drain()); all["other/one"] != 3 {
		t.Errorf("another namespace: %v", all)
	}
	bound := pendingPod("hostile", "299", 5)
	bound.Spec.NodeName = "node-a"
	update(bound)
	if all, _ := reportedReferences(c.Drain()); all["hostile/299"] != 5 {
		t.Errorf("a pod that is bound: %v", all)
	}
	if _, err := c.pods.store.Receive(pendingPod("hostile", "0", 1000), true, true); err != nil {
		t.Fatal(err)
	}
	c.Drain()
	update(pendingPod("hostile", "298", 2))
	if all, _ := reportedReferences(c.Drain()); all["hostile/298"] != 2 {
		t.Errorf("after a pod has gone: %v", all)
	}
	for i := range 300 {
		if _, err := c.pods.store.Receive(pendingPod("hostile", strconv.Itoa(i), 1), true, true); err != nil {
			t.Fatal(err)
		}
	}
	if c.pods.limit.total != 3 || len(c.pods.limit.namespaces) != 1 || c.pods.limit.dropped.Load() != 0 || c.pods.limit.status(up) != up {
		t.Errorf("%+v stays", c.pods.limit)
	}
}

// TestPendingReferenceCounts: the counts equal those of the kept pods.
func TestPendingReferenceCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 17))
	c := unconnected(t)
	for step := range 4000 {
		pod := pendingPod(fmt.Sprintf("n%d", random.IntN(2)), strconv.Itoa(random.IntN(400)), random.IntN(80))
		if random.IntN(10) == 0 {
			pod.Spec.NodeName = "node-a"
		}
		var err error
		if random.IntN(4) == 0 {
			_, err = c.pods.store.Receive(pod, true, true)
		} else {
			_, err = c.pods.store.Receive(pod, false, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		if step%100 == 0 {
			checkPending(t, c)
			c.Drain()
		}
	}
}

func checkPending(t *testing.T, c *ClusterWatch) {
	t.Helper()
	reported, dropped := 0, 0
	for item := range c.pods.store.Values() {
		reported += item.references.reported
		dropped += item.references.dropped
		if item.reported != nil && item.reported.Node == "" && len(item.reported.Claims)+len(item.reported.Extended) != item.references.reported {
			t.Fatalf("%d references of %s are counted as %+v", len(item.reported.Claims), item.reported.Ref, item.references)
		}
	}
	sum := 0
	for _, count := range c.pods.limit.namespaces {
		sum += count
		if count > namespaceReferences {
			t.Fatalf("%d are reported of one namespace", count)
		}
	}
	if reported != c.pods.limit.total || sum != reported || dropped != int(c.pods.limit.dropped.Load()) {
		t.Fatalf("counted %d, %d and %d, kept %d, dropped %d", c.pods.limit.total, sum, c.pods.limit.dropped.Load(), reported, dropped)
	}
}
