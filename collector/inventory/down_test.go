package inventory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// TestDownDevices: of four devices of a class, one allocated, each reason by itself, and
// which of several applies.
func TestDownDevices(t *testing.T) {
	w := newTestCluster(t, 1)
	w.node("n0", nil)
	w.deviceClass("any")
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	slice.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: new("n0"), Pool: resourcev1.ResourcePool{Name: "p", Generation: 1, ResourceSliceCount: 1}}
	for _, name := range []string{"a", "b", "c", "d"} {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: name})
	}
	w.slice(slice)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c"}}
	claim.Status.Allocation = &resourcev1.AllocationResult{}
	claim.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{Request: "main", Driver: "gpu.example.com", Pool: "p", Device: "a"}}
	w.claim(claim)
	taint := func(devices ...int) func() {
		return func() {
			slice = slice.DeepCopy()
			for _, i := range devices {
				slice.Spec.Devices[i].Taints = []resourcev1.DeviceTaint{{Key: "unhealthy", Effect: resourcev1.DeviceTaintEffectNoExecute}}
			}
			w.slice(slice)
		}
	}
	rule := func(effect resourcev1.DeviceTaintEffect) func() {
		return func() {
			r := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
			r.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{Pool: new("p")}
			r.Spec.Taint = resourcev1.DeviceTaint{Key: "drain", Effect: effect}
			w.rule(r)
		}
	}
	node := func(cordoned bool, ready corev1.ConditionStatus) func() {
		return func() {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}
			n.Spec.Unschedulable = cordoned
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
			w.nodes["n0"] = n
			w.inv.ApplyNode("n0", n.DeepCopy())
		}
	}
	slices := func(count int64) func() {
		return func() {
			slice = slice.DeepCopy()
			slice.Spec.Pool.ResourceSliceCount = count
			w.slice(slice)
		}
	}
	for _, step := range []struct {
		name   string
		change func()
		want   map[dra.DownReason]int
	}{
		{"nothing", func() {}, nil},
		{"a taint on an allocated device and a free one", taint(0, 1), map[dra.DownReason]int{dra.DownDriverTaint: 2}},
		{"a rule without effect", rule(resourcev1.DeviceTaintEffectNone), map[dra.DownReason]int{dra.DownDriverTaint: 2}},
		{"a rule", rule(resourcev1.DeviceTaintEffectNoSchedule), map[dra.DownReason]int{dra.DownDriverTaint: 2, dra.DownRuleTaint: 2}},
		{"an incomplete pool", slices(2), map[dra.DownReason]int{dra.DownPoolIncomplete: 4}},
		{"a node that is not ready", node(true, corev1.ConditionUnknown), map[dra.DownReason]int{dra.DownNodeNotReady: 4}},
		{"ready and cordoned", node(true, corev1.ConditionTrue), map[dra.DownReason]int{dra.DownPoolIncomplete: 4}},
		{"complete", slices(1), map[dra.DownReason]int{dra.DownDriverTaint: 2, dra.DownRuleTaint: 2}},
		{"without the rule", func() { delete(w.rules, "r"); w.inv.ApplyRule("r", nil) }, map[dra.DownReason]int{dra.DownDriverTaint: 2, dra.DownNodeCordoned: 2}},
		{"uncordoned", node(false, corev1.ConditionTrue), map[dra.DownReason]int{dra.DownDriverTaint: 2}},
		{"a removed node", func() { delete(w.nodes, "n0"); w.inv.ApplyNode("n0", nil) }, map[dra.DownReason]int{dra.DownDriverTaint: 2}},
	} {
		step.change()
		want := [dra.DownReasons]int{}
		for reason, devices := range step.want {
			want[reason] = devices
		}
		for _, inv := range []*Inventory{w.inv, w.rebuilt()} {
			if got := supplyOf(inv).Classes[0]; got.Down != want || !got.Counted {
				t.Errorf("%s: down %v, want %v", step.name, got.Down, want)
			}
		}
	}
}
