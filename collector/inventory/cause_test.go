package inventory

import (
	"fmt"
	"reflect"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Every cause is counted over all devices, not over a few examples, and a
// device with several taints counts for each.
func TestCountsCausesOverAllDevices(t *testing.T) {
	w := newTestCluster(t, 1)
	w.deviceClass("gpu", `device.driver == "gpu.example.com"`)
	var devices []resourcev1.Device
	for i := range 20 {
		d := tainted(fmt.Sprintf("d%02d", i), "lost")
		if i < 3 {
			d.Taints = append(d.Taints, resourcev1.DeviceTaint{Key: "maintenance", Effect: resourcev1.DeviceTaintEffectNoExecute})
		}
		if i >= 17 {
			d.Taints = []resourcev1.DeviceTaint{{Key: "old", Value: fmt.Sprint(i), Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		}
		devices = append(devices, d)
	}
	w.gpus("a", 2, devices...)
	request := Request{Class: "gpu"}
	if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
		t.Fatal(err)
	}
	told := w.inv.Explain(request, Limits{Taints: 2, Examples: 1}).Causes[dra.StageUntainted]
	var got []string
	for _, cause := range told {
		got = append(got, fmt.Sprintf("%s %d of %d others", cause.Taint.Key, cause.Count, cause.Others))
	}
	if want := []string{"lost 17 of 0 others", "maintenance 3 of 0 others", " 3 of 3 others"}; !reflect.DeepEqual(got, want) {
		t.Errorf("causes are %q, want %q", got, want)
	}
	if all := w.inv.Explain(request, Limits{Taints: 9, Examples: 1}).Causes[dra.StageUntainted]; len(all) != 5 {
		t.Errorf("within the limit: %+v", all)
	}
}

// What holds a device of an incomplete pool is in the way, not the pool.
func TestHeldDevicesOfIncompletePools(t *testing.T) {
	w := newTestCluster(t, 1)
	w.deviceClass("gpu", `device.driver == "gpu.example.com"`)
	var devices []resourcev1.Device
	var held []string
	for i := range 13 {
		name := fmt.Sprintf("d%02d", i)
		devices = append(devices, resourcev1.Device{Name: name})
		if i < 10 {
			held = append(held, name)
		}
	}
	w.gpus("c", 3, devices...)
	w.hold("trainer", "c", held...)
	request := Request{Class: "gpu"}
	if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
		t.Fatal(err)
	}
	told := w.inv.Explain(request, Limits{Taints: 9, Examples: 0}).Causes[dra.StageFree]
	if want := []Cause{{Count: 10, NotFree: NotFreeHeld}, {Count: 3, NotFree: NotFreeIncomplete}}; !reflect.DeepEqual(told, want) {
		t.Errorf("causes are %+v, want %+v", told, want)
	}
	if count := w.inv.Count(request); count.Incomplete != 3 {
		t.Errorf("%d would come with the pool, want 3", count.Incomplete)
	}
}

// How many devices one node could give counts what is held, not what is
// tainted.
func TestUntainted(t *testing.T) {
	w := explained(t)
	for _, pool := range []string{"b", "c", "d"} {
		w.node("node-"+pool, nil)
	}
	w.node("node-a", nil)
	request := Request{Class: "gpu"}
	if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
		t.Fatal(err)
	}
	want := NodeCounts{"node-a": 3, "node-b": 4, "node-c": 1, "node-d": 1}
	if got := w.inv.Explain(request, Limits{}).Untainted; !reflect.DeepEqual(got, want) {
		t.Errorf("nodes could give %v, want %v", got, want)
	}
}
