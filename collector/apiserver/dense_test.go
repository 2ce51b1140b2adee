package apiserver

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// densePod returns a pod of typical size: environment, volumes, annotations and
// managed fields of some kilobytes.
func densePod(i int) *corev1.Pod {
	pod := podWithClaim(fmt.Sprintf("worker-%d", i), fmt.Sprintf("pod-%d", i), fmt.Sprintf("claim-%d", i))
	pod.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 4096)}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat("f", 4096))}}
	for v := range 8 {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("volume-", v)})
	}
	for v := range 40 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", v), Value: strings.Repeat("v", 64)})
	}
	return pod
}

// BenchmarkDenseNode reads 110 large pods with a claim each and 56 devices, and
// makes facts of them; it reports the retained heap.
func BenchmarkDenseNode(b *testing.B) {
	pods := make([][]byte, 110)
	for i := range pods {
		data, err := densePod(i).Marshal()
		if err != nil {
			b.Fatal(err)
		}
		pods[i] = data
	}
	names := make([]string, 56)
	for i := range names {
		names[i] = fmt.Sprintf("gpu-%d-mig-1g10gb-19-%d", i/7, i%7)
	}
	published := publish("s", "node-a", "node-a", 1, 1, names...)
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var kept *NodeWatch
	var facts NodeFacts
	for b.Loop() {
		kept, facts = readNode(b, pods, published)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "heap-bytes")
	if len(facts.Pods) != 110 || len(facts.Claims) != 110 || len(facts.Published) != 56 {
		b.Fatalf("facts of %d pods, %d claims, %d devices", len(facts.Pods), len(facts.Claims), len(facts.Published))
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(pods)
}

func readNode(b *testing.B, pods [][]byte, published *resourcev1.ResourceSlice) (*NodeWatch, NodeFacts) {
	b.Helper()
	node, err := New(Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Node: "node-a", Clock: clock.System(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	var objects []any
	for _, data := range pods {
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(data); err != nil {
			b.Fatal(err)
		}
		objects = append(objects, node.pods.Admit(pod))
	}
	node.pods.Replace(objects)
	node.slices.Replace([]any{published})
	for i := range pods {
		ref := dra.ClaimRef{Namespace: "lab", Name: fmt.Sprintf("claim-%d", i)}
		object := claim(ref.Name, fmt.Sprintf("uid-%d", i), "node-a", published.Spec.Devices[i%56].Name, fmt.Sprintf("pod-%d", i))
		node.claims.apply(node.now(), ref, object, nil)
		node.applyClaimChanges()
	}
	node.outdate()
	return node, node.Latest()
}
