package allocator

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// Pools of one name on several nodes stay apart where the nodes are merged. What is
// allocated is so on all of them, because claims do not name the node.
func TestMergedPoolsOfOneName(t *testing.T) {
	inv := inventory.New()
	inv.ApplyClass("net", &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "net"}})
	nodes := []string{"node-a", "node-b"}
	for _, node := range nodes {
		inv.ApplyNode(node, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node}}
		slice.Spec = resourcev1.ResourceSliceSpec{
			Driver: "net.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "rail", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "net-0"}, {Name: "net-1"}},
		}
		inv.ApplySlice(slice.Name, slice)
	}
	pause := func(ctx context.Context) error { return ctx.Err() }
	fits := func(count int64) bool {
		t.Helper()
		s := NewNodeCache(inv, NewCache(), time.Minute)
		merged, err := s.Merged(t.Context(), pause, nodes)
		if err != nil {
			t.Fatal(err)
		}
		claim := &resourcev1.ResourceClaim{}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "net", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
		}}}
		allocated, slow, err := s.Search(t.Context(), merged, []*resourcev1.ResourceClaim{claim})
		if err != nil || slow {
			t.Fatalf("%d devices: slow %t, %v", count, slow, err)
		}
		return allocated
	}
	if !fits(4) || fits(5) {
		t.Errorf("4 devices fit: %t, 5 devices: %t", fits(4), fits(5))
	}
	held := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "held"}}
	held.Status.Allocation = &resourcev1.AllocationResult{}
	held.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "net.example.com", Pool: "rail", Device: "net-0"}}
	inv.ApplyClaim("lab", "held", held)
	if !fits(2) || fits(3) {
		t.Errorf("with one held, 2 devices fit: %t, 3 devices: %t", fits(2), fits(3))
	}
}
