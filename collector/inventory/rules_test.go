package inventory

import (
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// identified gives devices the attribute by which the oracle requests them.
func (w *testCluster) identified(devices ...resourcev1.Device) []resourcev1.Device {
	for i := range devices {
		w.ids++
		devices[i].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"id": {IntValue: new(w.ids)}}
	}
	return devices
}

func limited(name string, multi bool, value string, policy *resourcev1.CapacityRequestPolicy) resourcev1.Device {
	return resourcev1.Device{Name: name, AllowMultipleAllocations: &multi,
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(value), RequestPolicy: policy}}}
}

func stepped(least, step string) *resourcev1.CapacityRequestPolicy {
	return &resourcev1.CapacityRequestPolicy{ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: new(resource.MustParse(least)), Step: new(resource.MustParse(step))}}
}

// What random clusters meet too seldom, each with how many devices are free;
// the allocator has to agree.
func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		devices []resourcev1.Device
		held    []string
		amount  string // requested of the memory
		want    int
	}{
		"a set is spent once":                            {[]resourcev1.Device{cut("a", "gpu", "5"), cut("b", "gpu", "5"), cut("c", "gpu", "3")}, []string{"a"}, "", 1},
		"one that is overdrawn stops all that need any":  {[]resourcev1.Device{cut("a", "gpu", "5"), cut("b", "gpu", "5"), cut("c", "other", "3"), {Name: "d"}}, []string{"a", "b"}, "", 1},
		"with groups, without":                           {[]resourcev1.Device{cut("a", "gpu", "1", "x"), cut("b", "gpu", "1"), cut("c", "gpu", "1", "y")}, []string{"a"}, "", 0},
		"without groups, with":                           {[]resourcev1.Device{cut("a", "gpu", "1"), cut("b", "gpu", "1"), cut("c", "gpu", "1", "y")}, []string{"a"}, "", 1},
		"of several groups, what is in all":              {[]resourcev1.Device{cut("a", "gpu", "1", "x", "y"), cut("b", "gpu", "1", "y", "z"), cut("c", "gpu", "1", "x"), cut("d", "gpu", "1", "y")}, []string{"a", "b"}, "", 1},
		"groups of another set":                          {[]resourcev1.Device{cut("a", "gpu", "1", "x"), cut("b", "other", "1", "y")}, []string{"a"}, "", 1},
		"the whole is no multiple of the step":           {[]resourcev1.Device{limited("a", true, "40", stepped("2", "3")), limited("b", true, "41", stepped("2", "3"))}, nil, "", 1},
		"nor for a device of one claim":                  {[]resourcev1.Device{limited("a", false, "40", stepped("2", "3"))}, nil, "", 0},
		"rounded up it is too much":                      {[]resourcev1.Device{limited("a", true, "10", stepped("2", "6")), limited("b", true, "14", stepped("2", "6"))}, nil, "9", 1},
		"in fractions":                                   {[]resourcev1.Device{limited("a", true, "1", stepped("100m", "300m")), limited("b", true, "1", stepped("100m", "500m"))}, nil, "650m", 1},
		"a share without an amount is held all the same": {[]resourcev1.Device{{Name: "a", AllowMultipleAllocations: new(true)}}, []string{"/a"}, "", 1},
		"shares add up":                                  {[]resourcev1.Device{limited("a", true, "15", nil), limited("b", true, "10", nil)}, []string{"/a", "/b"}, "5", 1},
		"a share that is held alone":                     {[]resourcev1.Device{limited("a", true, "15", nil)}, []string{"a"}, "5", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestCluster(t, 1)
			w.node("node-a", nil)
			w.deviceClass("any")
			w.gpus("a", 2, w.identified(c.devices...)...)
			w.hold("holder", "a", c.held...)
			exactly := resourcev1.ExactDeviceRequest{DeviceClassName: "any"}
			if c.amount != "" {
				exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(c.amount)}}
			}
			free, _ := w.counted(w.oracle(), exactly)
			if got := w.inv.Count(Exactly(&exactly)).Left[dra.StageFree]; got != c.want || free != c.want {
				t.Errorf("%d devices are free, the allocator takes %d, want %d", got, free, c.want)
			}
		})
	}
}

// A value may have any number, also the one used for no value.
func TestAnyNumberIsAValue(t *testing.T) {
	w := newTestCluster(t, 1)
	w.inv.texts.acquire("bfalse") // number 0, as after a sweep
	w.deviceClass("published", `has(device.attributes["gpu.example.com"].unhealthy)`)
	fleet(w, 1, 2, func(pool, index int) resourcev1.Device {
		d := plain(pool, index)
		if index == 0 {
			d.Attributes["unhealthy"] = resourcev1.DeviceAttribute{BoolValue: new(false)}
		}
		return d
	})
	if got := supplyOf(w.inv).Classes[0].Devices[dra.DeviceFree]; got != 1 {
		t.Errorf("%d devices are selected, want 1", got)
	}
}

// Results of devices that are gone say nothing of those that came after them.
func TestOldResultsDoNotApplyToNewDevices(t *testing.T) {
	w := newTestCluster(t, 1)
	w.deviceClass("new", `device.attributes["gpu.example.com"].uuid.startsWith("GPU-0")`)
	fleet(w, 3, 2, plain)
	if err := w.inv.EvaluateClasses(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		w.dropSlice(fmt.Sprintf("slice-%d", i))
	}
	fleet(w, 3, 2, func(_, index int) resourcev1.Device { return plain(7, index) })
	if got := w.inv.Count(Request{Class: "new"}); got.Left[dra.StageClass] != 0 || got.Complete {
		t.Errorf("%d devices are selected, complete: %v", got.Left[dra.StageClass], got.Complete)
	}
}

// A claim may be allocated again between two events.
func TestReallocatedClaim(t *testing.T) {
	w := newTestCluster(t, 1)
	w.node("node-a", nil)
	w.gpus("a", 2, sharable("one"), sharable("two"))
	for _, change := range []func(*resourcev1.DeviceRequestAllocationResult){
		func(r *resourcev1.DeviceRequestAllocationResult) { r.ShareID = new(types.UID("another")) },
		func(r *resourcev1.DeviceRequestAllocationResult) { r.Device = "two" },
		func(r *resourcev1.DeviceRequestAllocationResult) {
			r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("1")}
		},
		func(r *resourcev1.DeviceRequestAllocationResult) { r.ShareID = nil },
		func(r *resourcev1.DeviceRequestAllocationResult) { r.AdminAccess = new(true) },
	} {
		w.hold("claim", "a", "/one")
		c := w.claims["claim"].DeepCopy()
		change(&c.Status.Allocation.Devices.Results[0])
		w.claim(c)
		got, _, err := w.inv.NodeSupply("node-a")
		want := w.allocated()
		if err != nil || !got.Allocated.AllocatedDevices.Equal(want.AllocatedDevices) || !got.Allocated.AllocatedSharedDeviceIDs.Equal(want.AllocatedSharedDeviceIDs) ||
			len(got.Allocated.AggregatedCapacity) != len(want.AggregatedCapacity) {
			t.Errorf("allocated is %v (%v), want %v", got.Allocated, err, want)
		}
		if a, b := supplyOf(w.inv).Pools[0], supplyOf(w.rebuilt()).Pools[0]; fmt.Sprint(*a) != fmt.Sprint(*b) {
			t.Errorf("the supply is %v, from scratch %v", *a, *b)
		}
	}
	w.claim(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "claim"}})
	if _, allocated := w.inv.Allocation("lab", "claim"); allocated || supplyOf(w.inv).Pools[0].Devices[dra.DeviceAllocated] != 0 {
		t.Error("a claim that was deallocated holds on")
	}
}
