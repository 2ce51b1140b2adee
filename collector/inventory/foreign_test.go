package inventory

import (
	"reflect"
	"sync"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Informers write while the reducer and the diagnoser read.
func TestConcurrentUse(t *testing.T) {
	w := newTestCluster(t, 7)
	w.populate()
	var readers sync.WaitGroup
	stop := make(chan struct{})
	request := Request{Class: "gpu", Selectors: selectors(`device.attributes["gpu.example.com"].id % 2 == 0`)}
	for _, read := range []func(){
		func() { w.inv.Supply() },
		func() {
			_ = w.inv.EvaluateRequest(t.Context(), nil, request)
			w.inv.Count(request)
			w.inv.Explain(request, ExplanationLimits{Taints: 3, Examples: 3, Holders: 3})
		},
		func() {
			_, _, _ = w.inv.NodeSupply("n0")
			w.inv.ChangedFor(request, w.inv.Version())
			w.inv.Nodes()
			_, _ = w.inv.Classes().List()
			_ = w.inv.EvaluateClasses(t.Context(), nil)
		},
	} {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					read()
				}
			}
		})
	}
	for range 400 {
		w.change()
	}
	close(stop)
	readers.Wait()
	compareSupply(t, 7, supplyOf(w.inv), supplyOf(w.rebuilt()))
}

// What comes over the wire, whatever it is, neither stops the inventory nor
// makes an old state show through, and a slice is kept as it was.
func FuzzInventory(f *testing.F) {
	w := newTestCluster(f, 3)
	w.populate()
	w.allocate("c9")
	claim, err := w.claims["c9"].Marshal()
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range sorted(w.slices) {
		slice, err := w.slices[name].Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(slice, claim)
	}
	model := &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Selectors: selectors(`device.attributes["gpu.example.com"].model == "A"`)}}
	f.Fuzz(func(t *testing.T, rawSlice, rawClaim []byte) {
		var slice resourcev1.ResourceSlice
		var claim resourcev1.ResourceClaim
		inv := New()
		inv.ApplyClass("any", &resourcev1.DeviceClass{})
		if len(rawSlice)%16 == 0 { // compiling it takes longer than all the rest
			inv.ApplyClass("model", model)
		}
		if slice.Unmarshal(rawSlice) == nil {
			inv.ApplySlice("s", slice.DeepCopy())
			if kept, err := unpack(inv.slices.byName["s"].packed); err != nil || !equality.Semantic.DeepEqual(kept.Spec, slice.Spec) {
				t.Errorf("%v: kept\n%v\nof\n%v", err, kept, slice)
			}
		}
		if claim.Unmarshal(rawClaim) == nil {
			inv.ApplyClaim("lab", "c", claim.DeepCopy())
		}
		supply := supplyOf(inv)
		for _, p := range supply.Pools {
			if p.Slices > 0 && p.Devices[0]+p.Devices[1]+p.Devices[2] != len(slice.Spec.Devices) {
				t.Errorf("%d devices are published, %v counted", len(slice.Spec.Devices), p.Devices)
			}
		}
		request := Request{Class: "any", Capacity: &resourcev1.CapacityRequirements{}}
		if count := inv.Count(request); count.Left[4] > count.Left[3] {
			t.Errorf("a stage adds devices: %v", count.Left)
		}
		if _, _, err := inv.NodeSupply("n0"); err != nil {
			t.Error(err)
		}
		inv.Explain(request, ExplanationLimits{Taints: 3, Examples: 100})
		inv.ApplySlice("s", nil)
		inv.ApplyClaim("lab", "c", nil)
		if len(inv.pools.byID)+len(inv.nodes.selections.values)+len(inv.devices.consumptions.values)+len(inv.devices.capacities.values)+len(inv.slices.counterSets.values)+len(inv.nodes.broad) != 0 {
			t.Error("something is kept of what is gone")
		}
	})
}

func TestAttributeValues(t *testing.T) {
	for _, attribute := range []resourcev1.DeviceAttribute{
		{IntValue: new(int64(-7))}, {BoolValue: new(true)}, {BoolValue: new(false)}, {StringValue: new("")}, {StringValue: new("i7")}, {VersionValue: new("1.2.3-rc.1")},
		{IntValues: []int64{1, -1 << 63}}, {BoolValues: []bool{true, false}}, {StringValues: []string{"", "a", "b,c"}}, {VersionValues: []string{"1.0.0"}}, {StringValues: []string{}},
	} {
		text, known := attributeText(&attribute)
		if got := parseAttribute(text); !known || !reflect.DeepEqual(got, attribute) {
			t.Errorf("%v comes back as %v", attribute, got)
		}
	}
	if _, known := attributeText(&resourcev1.DeviceAttribute{}); known {
		t.Error("an attribute without a value has one")
	}
}
