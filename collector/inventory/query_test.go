package inventory

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// hold makes a claim that has devices of a pool of gpu.example.com. Those
// beginning with "/" are shares.
func (w *testCluster) hold(name, pool string, devices ...string) {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for i, device := range devices {
		r := resourcev1.DeviceRequestAllocationResult{Request: "main", Driver: "gpu.example.com", Pool: pool, Device: device}
		if device[0] == '/' {
			r.Device, r.ShareID = device[1:], new(types.UID(fmt.Sprintf("%s-%d", name, i)))
			r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("6")}
		}
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, r)
	}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod-of-" + name}, {Resource: "podgroups", Name: "group"}}
	w.claim(c)
}

// gpus publishes a pool of one slice on a node, and its counters.
func (w *testCluster) gpus(pool string, siblings int64, devices ...resourcev1.Device) {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: pool}}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: new("node-" + pool), Devices: devices,
		Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: siblings}}
	w.slice(s)
	counters := s.DeepCopy()
	counters.Name, counters.Spec.Devices = pool+"-counters", nil
	counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "gpu", Counters: counts("8", "8")}, {Name: "other", Counters: counts("8", "8")}}
	w.slice(counters)
}

func cut(name, set, amount string, groups ...string) resourcev1.Device {
	return resourcev1.Device{Name: name, ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: set, Counters: counts(amount, amount), CompatibilityGroups: groups}}}
}

func tainted(name, key string) resourcev1.Device {
	return resourcev1.Device{Name: name, Taints: []resourcev1.DeviceTaint{{Key: "fine", Effect: resourcev1.DeviceTaintEffectNone}, {Key: key, Effect: resourcev1.DeviceTaintEffectNoSchedule}}}
}

func sharable(name string) resourcev1.Device {
	return resourcev1.Device{Name: name, AllowMultipleAllocations: new(true),
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("10")}}}
}

func explained(t *testing.T) *testCluster {
	w := newTestCluster(t, 1)
	w.deviceClass("gpu", `device.driver == "gpu.example.com"`)
	w.gpus("a", 2, resourcev1.Device{Name: "plain"}, tainted("unhealthy", "xid"), tainted("ruled", "tolerated"), sharable("shared"), cut("half", "gpu", "4"))
	w.gpus("b", 2, cut("whole", "gpu", "8"), cut("part", "gpu", "2"), cut("elsewhere", "other", "2"), cut("grouped", "other", "2", "x"))
	w.gpus("c", 3, resourcev1.Device{Name: "lonely"})
	w.gpus("d", 2, cut("bad", "none", "1"))
	w.hold("trainer", "a", "plain")
	w.hold("notebook", "a", "/shared")
	w.hold("slicer", "b", "part", "elsewhere")
	r := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "drain"}}
	r.Spec = resourcev1.DeviceTaintRuleSpec{DeviceSelector: &resourcev1.DeviceTaintSelector{Pool: new("a"), Device: new("ruled")},
		Taint: resourcev1.DeviceTaint{Key: "rule", Value: "v", Effect: resourcev1.DeviceTaintEffectNoExecute}}
	w.rule(r)
	return w
}

func TestExplainsWhatEachStageRemoves(t *testing.T) {
	w := explained(t)
	request := Request{Class: "gpu", Selectors: selectors(`!device.driver.startsWith("x")`),
		Tolerations: []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists, Key: "tolerated"}}}
	if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
		t.Fatal(err)
	}
	id := func(pool, name string) dra.DeviceID {
		return dra.DeviceID{Driver: "gpu.example.com", Pool: pool, Name: name}
	}
	want := map[dra.Stage][]Cause{
		dra.StageUntainted: {
			{Count: 1, Examples: []dra.DeviceID{id("a", "unhealthy")}, Taint: dra.Taint{Key: "xid", Effect: "NoSchedule"}},
			{Count: 1, Examples: []dra.DeviceID{id("a", "ruled")}, Taint: dra.Taint{Key: "rule", Value: "v", Effect: "NoExecute"}, Rule: "drain"},
		},
		dra.StageFree: {
			{Count: 3, Examples: []dra.DeviceID{id("a", "plain"), id("b", "part")}, NotFree: NotFreeHeld},
			{Count: 1, Examples: []dra.DeviceID{id("a", "shared")}, NotFree: NotFreeCapacity},
			{Count: 1, Examples: []dra.DeviceID{id("b", "whole")}, NotFree: NotFreeCounters},
			{Count: 1, Examples: []dra.DeviceID{id("b", "grouped")}, NotFree: NotFreeGroups},
			{Count: 1, Examples: []dra.DeviceID{id("c", "lonely")}, NotFree: NotFreeIncomplete},
			{Count: 1, Examples: []dra.DeviceID{id("d", "bad")}, NotFree: NotFreeInvalid},
		},
	}
	if got := w.inv.Explain(request, ExplanationLimits{Taints: 9, Examples: 2}).Causes; !reflect.DeepEqual(got, want) {
		t.Errorf("causes are\n%+v, want\n%+v", got, want)
	}
	count := w.inv.Count(request)
	if want := [dra.Stages]int{11, 11, 11, 9, 1, 1}; count.Left != want || count.Incomplete != 1 || !reflect.DeepEqual(count.Free, nodeCounts(map[string]int{"node-a": 1})) {
		t.Errorf("the stages leave %v, want %v; %d in incomplete pools, on %v", count.Left, want, count.Incomplete, count.Free)
	}
	nothing := w.inv.Explain(Request{Class: "none"}, ExplanationLimits{Taints: 9, Examples: 2}).Causes
	if len(nothing[dra.StageClass]) != 1 || nothing[dra.StageClass][0].Count != 11 || len(nothing) != 1 {
		t.Errorf("a class that does not exist: %+v", nothing)
	}
}

func TestListsHoldersOfMostDevicesFirst(t *testing.T) {
	w := explained(t)
	if err := w.inv.EvaluateRequest(t.Context(), nil, Request{Class: "gpu"}); err != nil {
		t.Fatal(err)
	}
	explained := w.inv.Explain(Request{Class: "gpu"}, ExplanationLimits{Holders: 2})
	holders, all := explained.Holders, explained.HoldersInAll
	if all != 3 || len(holders) != 2 || holders[0].Claim.Name != "slicer" || len(holders[0].Devices) != 2 || holders[1].Claim.Name != "notebook" {
		t.Errorf("%d holders, first %+v", all, holders)
	}
	w.dropClaim("slicer")
	w.dropClaim("trainer")
	if explained = w.inv.Explain(Request{Class: "gpu"}, ExplanationLimits{Holders: 2}); explained.HoldersInAll != 1 || explained.Holders[0].Claim.Name != "notebook" {
		t.Errorf("%d holders, first %+v", all, holders)
	}
}

func TestChangedRequests(t *testing.T) {
	w := explained(t)
	other := w.slices["c"].DeepCopy()
	other.Name, other.Spec.Driver = "far", "net.example.com"
	w.slice(other)
	w.deviceClass("net", `device.driver == "net.example.com"`)
	gpu, net := Request{Class: "gpu"}, Request{Class: "net"}
	for _, step := range []struct {
		what     string
		do       func()
		gpu, net bool
	}{
		{"nothing", func() {}, false, false},
		{"a claim of its devices comes", func() { w.hold("more", "a", "half") }, true, false},
		{"its reservations change", func() {
			c := w.claims["more"].DeepCopy()
			c.Status.ReservedFor = nil
			w.claim(c)
		}, false, false},
		{"a claim that is not allocated comes", func() {
			w.claim(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "new"}})
		}, false, false},
		{"a claim goes", func() { w.dropClaim("more") }, true, false},
		{"a rule comes", func() {
			r := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "far"}}
			r.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{Driver: new("net.example.com")}
			w.rule(r)
		}, false, true},
		{"its status changes", func() {
			r := w.rules["far"].DeepCopy()
			r.Status.Conditions = []metav1.Condition{{Type: "EvictionInProgress"}}
			w.rule(r)
		}, false, false},
		{"a device's taints change", func() {
			s := w.slices["a"].DeepCopy()
			s.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "x", Effect: resourcev1.DeviceTaintEffectNoExecute}}
			w.slice(s)
		}, true, false},
		{"a slice is written again", func() {
			s := w.slices["a"].DeepCopy()
			s.ResourceVersion = "7"
			w.slice(s)
		}, false, false},
		{"an attribute changes", func() {
			s := w.slices["a"].DeepCopy()
			s.Spec.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"x": {BoolValue: new(true)}}
			w.slice(s)
		}, true, true},
		{"a node comes", func() { w.node("new", nil) }, true, true},
		{"its heartbeat", func() { w.node("new", nil) }, false, false},
		{"its labels change", func() { w.node("new", map[string]string{"zone": "a"}) }, true, true},
		{"a class changes", func() { w.deviceClass("net", `device.driver == "net.example.com"`, `true`) }, true, true},
		{"it is written again", func() { w.deviceClass("net", `device.driver == "net.example.com"`, `true`) }, false, false},
		{"a slice goes", func() { w.dropSlice("far") }, true, true},
	} {
		for _, request := range []Request{gpu, net} {
			if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
				t.Fatal(err)
			}
		}
		before := w.inv.Version()
		step.do()
		for _, request := range []Request{gpu, net} {
			if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := w.inv.ChangedFor(gpu, before), w.inv.ChangedFor(net, before); a != step.gpu || b != step.net {
			t.Errorf("%s changes gpu %v and net %v, want %v and %v", step.what, a, b, step.gpu, step.net)
		}
		if moved := w.inv.Version() != before; moved != (step.gpu || step.net) {
			t.Errorf("%s: the version moved: %v", step.what, moved)
		}
	}
}

func TestClassOfExtendedResource(t *testing.T) {
	inv := New()
	put := func(name, extended string, created int64) {
		c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(created, 0)}}
		c.Spec.ExtendedResourceName = &extended
		inv.ApplyClass(name, c)
	}
	put("b-old", "example.com/gpu", 10)
	put("d", "example.com/gpu", 20)
	put("c", "example.com/gpu", 20)
	put("e", "example.com/nic", 30)
	for resource, want := range map[string]string{"example.com/gpu": "c", "example.com/nic": "e", "example.com/none": "",
		"deviceclass.resource.kubernetes.io/b-old": "b-old", "deviceclass.resource.kubernetes.io/none": ""} {
		got, known := inv.ClassFor(resource)
		if known != (want != "") || known && got.Name != want {
			t.Errorf("%s means %v, want %q", resource, got, want)
		}
	}
	all, err := inv.Classes().List()
	if err != nil || len(all) != 4 || all[0].Name != "b-old" {
		t.Errorf("classes are %v, %v", all, err)
	}
	if _, err := inv.Classes().Get("none"); err == nil {
		t.Error("a class that does not exist is found")
	}
}

func TestNodesOfDevices(t *testing.T) {
	w := newTestCluster(t, 1)
	w.deviceClass("gpu")
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", PerDeviceNodeSelection: new(true), Pool: resourcev1.ResourcePool{Name: "far", ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "one", NodeName: new("n1")}, {Name: "all", AllNodes: new(true)}, {Name: "zone", NodeSelector: zone("a")}, {Name: "nowhere"}}}
	w.slice(s)
	spread := func() NodeCounts { return w.inv.Count(Request{Class: "gpu"}).Free }
	for _, step := range []struct {
		what string
		do   func()
		want NodeCounts
	}{
		{"nodes cannot be read", func() {}, nodeCounts(map[string]int{"n1": 2})},
		{"one node is known", func() { w.node("n2", nil) }, nodeCounts(map[string]int{"n2": 1})},
		{"the one that is named too", func() { w.node("n1", nil) }, nodeCounts(map[string]int{"n1": 2, "n2": 1})},
		{"a label selects one", func() { w.node("n2", map[string]string{"zone": "a"}) }, nodeCounts(map[string]int{"n1": 2, "n2": 2})},
		{"it goes", func() { w.inv.ApplyNode("n2", nil) }, nodeCounts(map[string]int{"n1": 2})},
	} {
		step.do()
		if got := spread(); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: free are %v, want %v", step.what, got, step.want)
		}
	}
	if best := (nodeCounts(map[string]int{"b": 2, "a": 2, "c": 5})).Best(2); !reflect.DeepEqual(best, []NodeCount{{"c", 5}, {"a", 2}}) {
		t.Errorf("the best are %v", best)
	}
	if _, known, err := w.inv.NodeSupply("n2"); known || err != nil {
		t.Errorf("a node that is gone is known: %v, %v", known, err)
	}
}

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
	causes := w.inv.Explain(request, ExplanationLimits{Taints: 2, Examples: 1}).Causes[dra.StageUntainted]
	var got []string
	for _, cause := range causes {
		got = append(got, fmt.Sprintf("%s %d of %d others", cause.Taint.Key, cause.Count, cause.Others))
	}
	if want := []string{"lost 17 of 0 others", "maintenance 3 of 0 others", " 3 of 3 others"}; !reflect.DeepEqual(got, want) {
		t.Errorf("causes are %q, want %q", got, want)
	}
	if all := w.inv.Explain(request, ExplanationLimits{Taints: 9, Examples: 1}).Causes[dra.StageUntainted]; len(all) != 5 {
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
	causes := w.inv.Explain(request, ExplanationLimits{Taints: 9, Examples: 0}).Causes[dra.StageFree]
	if want := []Cause{{Count: 10, NotFree: NotFreeHeld}, {Count: 3, NotFree: NotFreeIncomplete}}; !reflect.DeepEqual(causes, want) {
		t.Errorf("causes are %+v, want %+v", causes, want)
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
	want := nodeCounts(map[string]int{"node-a": 3, "node-b": 4, "node-c": 1, "node-d": 1})
	if got := w.inv.Explain(request, ExplanationLimits{}).Untainted; !reflect.DeepEqual(got, want) {
		t.Errorf("nodes could give %v, want %v", got, want)
	}
}

// Devices of a slice that skips node operations can be allocated only on nodes
// that declare that their kubelets do, as soon as they declare it.
func TestSkippedNodeOperations(t *testing.T) {
	w := newTestCluster(t, 1)
	w.deviceClass("any")
	w.node("a", nil)
	w.node("b", nil)
	publish := func(name string, place func(*resourcev1.ResourceSliceSpec)) {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Spec.Driver, s.Spec.Pool = "gpu.example.com", resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}
		s.Spec.Devices = []resourcev1.Device{{Name: "dev"}}
		s.Spec.SkipNodeOperations = []resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationAll}
		place(&s.Spec)
		w.slice(s)
	}
	publish("own", func(s *resourcev1.ResourceSliceSpec) { s.NodeName = new("a") })
	publish("network", func(s *resourcev1.ResourceSliceSpec) { s.AllNodes = new(true) })
	request := Request{Class: "any"}
	for _, test := range []struct {
		declared string // by these nodes
		free     int
		nodes    NodeCounts
	}{
		{"", 0, NodeCounts{}},
		{"b", 1, nodeCounts(map[string]int{"b": 1})},
		{"ab", 2, nodeCounts(map[string]int{"a": 2, "b": 1})},
		{"a", 2, nodeCounts(map[string]int{"a": 2})},
		{"", 0, NodeCounts{}},
	} {
		w.declare(func(node string) bool { return strings.Contains(test.declared, node) })
		count := w.inv.Count(request)
		if count.Left[dra.StageUntainted] != 2 || count.Left[dra.StageFree] != test.free || !slices.Equal(count.Free, test.nodes) {
			t.Errorf("declared by %q: left %v, free %v, want %d and %v", test.declared, count.Left, count.Free, test.free, test.nodes)
		}
	}
	causes := w.inv.Explain(request, ExplanationLimits{Examples: 1, Holders: 1}).Causes[dra.StageFree]
	if len(causes) != 1 || causes[0].NotFree != NotFreeUndeclared || causes[0].Count != 2 {
		t.Errorf("causes %+v", causes)
	}
	for _, name := range []string{"a", "b"} {
		w.inv.ApplyNode(name, nil)
	}
	if count := w.inv.Count(request); count.Left[dra.StageFree] != 2 {
		t.Errorf("without nodes %d are free: it is not known what they declare", count.Left[dra.StageFree])
	}
}

// How far evictions by rules have come is part of the supply, and changes no
// diagnosis.
func TestEvictionsByRules(t *testing.T) {
	w := newTestCluster(t, 1)
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "drain"}}
	w.rule(rule)
	if got := w.inv.Supply().Evictions; len(got) != 0 {
		t.Errorf("nothing is reported, and there is %+v", got)
	}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
		version := w.inv.Version()
		rule = rule.DeepCopy()
		rule.Status.Conditions = []metav1.Condition{{Type: "EvictionInProgress", Status: status, Reason: "Why", Message: "2 pods"}}
		w.rule(rule)
		want := []dra.RuleEviction{{Rule: "drain", InProgress: status == metav1.ConditionTrue, Reason: "Why", Message: "2 pods"}}
		if got := w.inv.Supply().Evictions; !slices.Equal(got, want) || w.inv.Version() != version {
			t.Errorf("evictions %+v, want %+v; version %d, before %d", got, want, w.inv.Version(), version)
		}
	}
	w.inv.ApplyRule("drain", nil)
	if got := w.inv.Supply().Evictions; len(got) != 0 {
		t.Errorf("the rule is gone, and there is %+v", got)
	}
}

// A rule with an empty selector selects everything, one without a selector nothing.
func TestBroadRules(t *testing.T) {
	w := newTestCluster(t, 1)
	driver := "gpu.example.com"
	for name, selector := range map[string]*resourcev1.DeviceTaintSelector{"all": {}, "none": nil, "some": {Driver: &driver}} {
		w.rule(&resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: selector, Taint: resourcev1.DeviceTaint{Key: "drain", Effect: resourcev1.DeviceTaintEffectNoExecute},
		}})
	}
	want := []dra.BroadRule{{Rule: "all", Taint: dra.Taint{Key: "drain", Effect: "NoExecute"}}}
	if got := w.inv.Supply().BroadRules; !slices.Equal(got, want) {
		t.Errorf("broad rules %+v, want %+v", got, want)
	}
	w.inv.ApplyRule("all", nil)
	if got := w.inv.Supply().BroadRules; len(got) != 0 {
		t.Errorf("the rule is gone, and there is %+v", got)
	}
}

// A pool is overdrawn only if a share is among the devices that consume too much.
func TestOverdrawnCounters(t *testing.T) {
	shared := func(name, amount string) resourcev1.Device {
		device := cut(name, "gpu", amount)
		device.AllowMultipleAllocations = new(true)
		return device
	}
	for name, c := range map[string]struct {
		devices             []resourcev1.Device
		held                []string
		counters, overdrawn bool
	}{
		"no counters":        {[]resourcev1.Device{{Name: "a"}}, []string{"a"}, false, false},
		"nothing held":       {[]resourcev1.Device{shared("a", "5"), cut("b", "gpu", "5")}, nil, true, false},
		"within":             {[]resourcev1.Device{shared("a", "5"), cut("b", "gpu", "3")}, []string{"/a", "b"}, true, false},
		"shares count once":  {[]resourcev1.Device{shared("a", "5")}, []string{"/a", "/a"}, true, false},
		"a share and more":   {[]resourcev1.Device{shared("a", "5"), cut("b", "gpu", "5")}, []string{"/a", "b"}, true, true},
		"whole devices only": {[]resourcev1.Device{cut("a", "gpu", "5"), cut("b", "gpu", "5")}, []string{"a", "b"}, true, false},
	} {
		w := newTestCluster(t, 1)
		w.gpus("a", 2, c.devices...)
		w.hold("holder", "a", c.held...)
		if pool := w.inv.Supply().Pools[0]; pool.Counters != c.counters || pool.Overdrawn != c.overdrawn {
			t.Errorf("%s: counters %v, overdrawn %v", name, pool.Counters, pool.Overdrawn)
		}
	}
}

// Partitions are grouped as the controller of ResourcePoolStatusRequests does:
// what consumes no counters, or has no type, is none.
func TestPartitionTypes(t *testing.T) {
	typed := func(d resourcev1.Device, name resourcev1.QualifiedName, value string) resourcev1.Device {
		d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{name: {StringValue: &value}}
		return d
	}
	publish := func(attribute string, devices ...resourcev1.Device) *testCluster {
		w := newTestCluster(t, 1)
		w.gpus("a", 2, devices...)
		s := w.slices["a"].DeepCopy()
		s.Spec.PartitionTypeAttribute = new(resourcev1.FullyQualifiedName(attribute))
		w.slice(s)
		return w
	}
	number := cut("number", "gpu", "1")
	number.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"profile": {IntValue: new(int64(1))}}
	w := publish("gpu.example.com/profile",
		typed(cut("one", "gpu", "1"), "profile", "1g"), typed(cut("two", "gpu", "1"), "gpu.example.com/profile", "1g"),
		typed(cut("all", "gpu", "8"), "profile", "7g"), typed(resourcev1.Device{Name: "nic"}, "profile", "1g"), cut("untyped", "gpu", "1"), number)
	w.hold("trainer", "a", "one")
	want := []dra.PartitionSupply{{Type: "1g", Devices: [dra.DeviceStates]int{1, 1, 0}}, {Type: "7g", Devices: [dra.DeviceStates]int{0, 0, 1}}}
	if got := w.inv.Supply().Pools[0].Partitions; !slices.Equal(got, want) {
		t.Errorf("partitions %+v, want %+v", got, want)
	}
	if got := publish("other.example.com/profile", typed(cut("one", "gpu", "1"), "profile", "1g")).inv.Supply().Pools[0].Partitions; got != nil {
		t.Errorf("the attribute of another domain, and there is %+v", got)
	}
	var many []resourcev1.Device
	for i := range dra.PartitionTypes + 1 {
		many = append(many, typed(cut(fmt.Sprint("dev-", i), "gpu", "1"), "profile", fmt.Sprint("type-", i)))
	}
	if got := publish("gpu.example.com/profile", many[1:]...).inv.Supply().Pools[0].Partitions; len(got) != dra.PartitionTypes {
		t.Errorf("%d types", len(got))
	}
	if got := publish("gpu.example.com/profile", many...).inv.Supply().Pools[0].Partitions; got != nil {
		t.Errorf("too many types, and there are %d", len(got))
	}
}
