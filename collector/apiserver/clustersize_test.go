package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	simulated "github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// discardKeeper is a Keeper that keeps nothing.
type discardKeeper struct{}

func (discardKeeper) ApplySlice(string, *resourcev1.ResourceSlice)                    {}
func (discardKeeper) ApplyClass(string, *resourcev1.DeviceClass)                      {}
func (discardKeeper) ApplyRule(string, *resourcev1.DeviceTaintRule)                   {}
func (discardKeeper) ApplyNode(string, *corev1.Node)                                  {}
func (discardKeeper) ApplyClaim(string, string, *resourcev1.ResourceClaim)            {}
func (discardKeeper) ApplyPodRequests(_, _ *dra.PodRequests)                          {}
func (discardKeeper) ApplyTemplate(string, string, *resourcev1.ResourceClaimTemplate) {}

// realClaim returns a claim as large as claims of templates are: annotated,
// owned, managed, allocated.
func realClaim(i int) *resourcev1.ResourceClaim {
	yes := true
	uid := func(kind int) string { return fmt.Sprintf("%08x-fef9-4d3d-a51c-%012x", i*7+kind, i) }
	pod := fmt.Sprintf("train-%d-x7k2p", i)
	made := claim(pod+"-gpu-qggr4", uid(1), fmt.Sprintf("node-%04d", i%2000), fmt.Sprintf("gpu-%d", i%8), uid(2))
	made.Namespace = fmt.Sprintf("team-%d", i%50)
	made.Annotations = map[string]string{resourcev1.PodResourceClaimAnnotation: "gpu"}
	made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID(uid(2)), Controller: &yes, BlockOwnerDeletion: &yes}}
	made.Finalizers = []string{resourcev1.Finalizer}
	made.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{}}}`)}}
	made.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 1}}}
	now := metav1.Unix(1_800_000_000, 0)
	made.Status.Allocation.AllocationTimestamp = &now
	made.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{fmt.Sprintf("node-%04d", i%2000)}}},
	}}}
	made.Status.ReservedFor[0].Name = pod
	return made
}

func realPod(i int) *corev1.Pod {
	pod := densePod(i)
	pod.Namespace, pod.Spec.NodeName = fmt.Sprintf("team-%d", i%50), fmt.Sprintf("node-%04d", i%2000)
	for n, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: "True", LastTransitionTime: second(n)})
	}
	return pod
}

// BenchmarkCluster reads a large cluster over HTTP, and reports the memory for
// each object and the duration, which includes the server's work.
func BenchmarkCluster(b *testing.B) {
	for _, size := range []struct{ claims, pods, plain int }{{1000, 200, 0}, {10_000, 2000, 0}, {100_000, 0, 0}, {0, 20_000, 0}, {100_000, 20_000, 0}, {0, 0, 100_000}} {
		b.Run(fmt.Sprintf("claims=%d/pods=%d/plain=%d", size.claims, size.pods, size.plain), func(b *testing.B) {
			server, err := simulated.Start(b.Context(), simulated.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer server.Stop()
			for i := range size.claims {
				if err := server.Put(realClaim(i)); err != nil {
					b.Fatal(err)
				}
			}
			for i := range size.pods {
				if err := server.Put(realPod(i)); err != nil {
					b.Fatal(err)
				}
			}
			for i := range size.plain { // without claims
				pod := realPod(i)
				pod.Spec.ResourceClaims, pod.Status.ResourceClaimStatuses = nil, nil
				if err := server.Put(pod); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				before := heap()
				kept, took := readCluster(b, server, size.claims+size.pods)
				b.ReportMetric(float64(kept-before)/float64(size.claims+size.pods+size.plain), "kept-B/object")
				b.ReportMetric(took.Seconds(), "sync-s")
			}
		})
	}
}

// BenchmarkReceiveClaim measures the processing of a claim from its bytes on,
// if it is new and if it has changed.
func BenchmarkReceiveClaim(b *testing.B) {
	const count = 1000
	cluster, err := NewClusterWatch(ClusterWatchOptions{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Keeper: discardKeeper{}, Log: slog.New(slog.DiscardHandler), Clock: clock.System()})
	if err != nil {
		b.Fatal(err)
	}
	claims := cluster.watchClaims()
	bytes := make([][]byte, count)
	for i := range bytes {
		if bytes[i], err = realClaim(i).Marshal(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		claim := &resourcev1.ResourceClaim{}
		if err := claim.Unmarshal(bytes[i%count]); err != nil {
			b.Fatal(err)
		}
		claim.ResourceVersion = strconv.Itoa(i)
		if i%2 == 0 {
			claim.Status.ReservedFor = nil
		}
		if _, err := claims.Receive(claim, false, true); err != nil {
			b.Fatal(err)
		}
		if i%count == 0 {
			cluster.Drain()
		}
	}
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// readCluster runs a ClusterWatch until all is known.
func readCluster(b *testing.B, server *simulated.Server, want int) (kept int64, took time.Duration) {
	b.Helper()
	cluster, err := NewClusterWatch(ClusterWatchOptions{Config: server.Config(), Keeper: discardKeeper{}, Log: slog.New(slog.DiscardHandler), Clock: clock.System()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	began := time.Now()
	go func() { cluster.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	reported := 0
	for cluster.Synced() != all() {
		reported += len(cluster.Drain())
		time.Sleep(20 * time.Millisecond)
		if time.Since(began) > 5*time.Minute {
			b.Fatalf("%d of %d after %v: %+v", reported, want, time.Since(began), cluster.Statuses())
		}
	}
	took = time.Since(began)
	if reported != want {
		b.Fatalf("reported %d, want %d", reported, want)
	}
	kept = heap()
	runtime.KeepAlive(cluster)
	return kept, took
}
