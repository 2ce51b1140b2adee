package diagnosis

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Each reason out of real objects. A scenario builds a cluster and returns the
// question; want is the reason of each reference.
func TestExplainReasons(t *testing.T) {
	yes := true
	for _, test := range []struct {
		name    string
		build   func(w *testCluster) dra.Question
		want    []dra.PendingReason
		message string // in that of the first reference
	}{
		{"a device is free", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNone}, ""},
		{"no class", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			s := spec(deviceRequest("main", 1))
			s.Devices.Requests[0].Exactly.DeviceClassName = "gpu.acme.com"
			w.claim("c", s)
			return question("c")
		}, []dra.PendingReason{dra.ReasonNoDeviceClass}, "request main: device class gpu.acme.com does not exist"},
		{"nothing of that class", func(w *testCluster) dra.Question {
			w.pool("other", "n1", devicesNamed(3)...)
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNoMatchingDevice}, "class gpu selects none of 3 devices"},
		{"the selectors match nothing", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(3, "model", "x")...)
			w.claim("c", spec(deviceRequest("main", 1, `device.attributes["d"].model == "y"`)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNoMatchingDevice}, "its selectors match none of 3 devices of class gpu"},
		{"a selector that does not compile", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(3)...)
			w.claim("c", spec(deviceRequest("main", 1, `device.atributes["d"].model == `)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNoMatchingDevice}, "does not compile"},
		{"a selector that fails for all", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(3)...)
			w.claim("c", spec(deviceRequest("main", 1, `device.attributes["d"].model == "x"`)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNoMatchingDevice}, "no such key: model"},
		{"a selector that fails on another node ends the scheduler's attempt", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1, "model", "x")...)
			w.pool("d", "n2", devicesNamed(1)...)
			w.claim("c", spec(deviceRequest("main", 1, `device.attributes["d"].model == "x"`)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNoMatchingDevice}, "the scheduler stops at node n2: claim c: selector #0 on device d/n2/dev-0"},
		{"a selector that costs too much", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1, "model", strings.Repeat("x", 60))...)
			w.claim("c", spec(deviceRequest("main", 1, costly())))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNoMatchingDevice}, "cost"},
		{"too few exist", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(8)...)
			w.claim("c", spec(deviceRequest("main", 9)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "only 8 of the 8 published match"},
		{"all are held", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			w.hold("holder", "n1")
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "0 can still be allocated"},
		{"all are tainted", func(w *testCluster) dra.Question {
			w.pool("d", "n1", tainted(device("a"), "unhealthy", resourcev1.DeviceTaintEffectNoSchedule))
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonTainted}, "1 of 1 device that matches has a taint which it does not tolerate"},
		{"tainted by a rule", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(2)...)
			driver := "d"
			w.rule("maintenance", "unhealthy", resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintSelector{Driver: &driver})
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonTainted}, "2 of 2 devices"},
		{"the taint is tolerated", func(w *testCluster) dra.Question {
			w.pool("d", "n1", tainted(device("a"), "unhealthy", resourcev1.DeviceTaintEffectNoSchedule))
			s := spec(deviceRequest("main", 1))
			s.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: "unhealthy", Operator: resourcev1.DeviceTolerationOpExists}}
			w.claim("c", s)
			return question("c")
		}, []dra.PendingReason{dra.ReasonNone}, ""},
		{"a taint without effect", func(w *testCluster) dra.Question {
			w.pool("d", "n1", tainted(device("a"), "look", resourcev1.DeviceTaintEffectNone))
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNone}, ""},
		{"an incomplete pool", func(w *testCluster) dra.Question {
			slice, node := newSlice("d", "n1", devicesNamed(2)...), "n1"
			slice.Spec.NodeName, slice.Spec.Pool.ResourceSliceCount = &node, 2
			w.slice(slice)
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonPoolIncomplete}, "2 more once all slices of their pools are published"},
		{"admin access to what is held in an incomplete pool", func(w *testCluster) dra.Question {
			slice := w.pool("d", "n1", devicesNamed(1)...)
			w.hold("holder", "n1")
			slice.Spec.Pool.ResourceSliceCount = 2
			w.inventory.ApplySlice(slice.Name, slice.DeepCopy())
			s := spec(deviceRequest("main", 1))
			s.Devices.Requests[0].Exactly.AdminAccess = &yes
			w.claim("c", s)
			return question("c")
		}, []dra.PendingReason{dra.ReasonPoolIncomplete}, "1 more once all slices of their pools are published"},
		{"all of a node with an incomplete pool", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(2)...)
			slice, node := newSlice("other", "n1", devicesNamed(2)...), "n1"
			slice.Spec.NodeName, slice.Spec.Pool.ResourceSliceCount = &node, 2
			w.slice(slice)
			w.claim("c", spec(deviceRequest("main", 0)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonPoolIncomplete}, "resource pool other/n1 is currently being updated"},
		{"scattered over nodes", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(2)...)
			w.pool("d", "n2", devicesNamed(1)...)
			w.claim("c", spec(deviceRequest("main", 3)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonFragmented}, "3 are free, but no node has more than 2"},
		{"each request on another node", func(w *testCluster) dra.Question {
			w.pool("d", "n1", device("a", "model", "x"))
			w.pool("d", "n2", device("b", "model", "y"))
			w.claim("c", spec(deviceRequest("x", 1, `device.attributes["d"].model == "x"`), deviceRequest("y", 1, `device.attributes["d"].model == "y"`)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonFragmented}, "no node has enough free devices for all requests"},
		{"two requests for the same device", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			w.claim("c", spec(deviceRequest("a", 1), deviceRequest("b", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "compete"},
		{"two claims for the same device", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			w.claim("c1", spec(deviceRequest("main", 1)))
			w.claim("c2", spec(deviceRequest("main", 1)))
			return question("c1", "c2")
		}, []dra.PendingReason{dra.ReasonInsufficient, dra.ReasonInsufficient}, "compete"},
		{"requests that fit only on two nodes", func(w *testCluster) dra.Question {
			w.pool("d", "n1", device("a", "model", "x"), device("b", "model", "y"))
			w.pool("d", "n2", device("a", "model", "x"), device("b", "model", "y"))
			w.claim("c1", spec(deviceRequest("x", 1, `device.attributes["d"].model == "x"`), deviceRequest("any", 1)))
			w.claim("c2", spec(deviceRequest("y", 1, `device.attributes["d"].model == "y"`)))
			return question("c1", "c2")
		}, []dra.PendingReason{dra.ReasonFragmented, dra.ReasonFragmented}, "none of the 2 nodes with enough free devices can serve all requests of the claims of the pod together at once"},
		{"a request for what another request may have", func(w *testCluster) dra.Question {
			w.pool("d", "n1", device("a", "model", "x"))
			w.claim("c", spec(deviceRequest("x", 1, `device.attributes["d"].model == "x"`), deviceRequest("any", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "compete for the same devices"},
		{"a request for what another request may have, beside what is held", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(2, "model", "x")...)
			w.hold("holder", "n1")
			w.claim("c", spec(deviceRequest("x", 1, `device.attributes["d"].model == "x"`), deviceRequest("any", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "compete for the same devices"},
		{"one of two claims has a selector that fails", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(2, "model", "x")...)
			w.pool("d", "n2", devicesNamed(2)...)
			w.claim("c1", spec(deviceRequest("main", 1)))
			w.claim("c2", spec(deviceRequest("main", 1, `device.attributes["d"].model == "x"`)))
			return question("c1", "c2")
		}, []dra.PendingReason{dra.ReasonNone, dra.ReasonNoMatchingDevice}, ""},
		{"pinned to a zone without devices", func(w *testCluster) dra.Question {
			w.zoned("a")
			w.pool("d", "n2", devicesNamed(1)...)
			w.hold("first", "n1", `device.attributes["d"].?kind.orValue("") == "fabric"`)
			w.claim("c", spec(deviceRequest("main", 1, `!has(device.attributes["d"].kind)`)))
			return question("first", "c")
		}, []dra.PendingReason{dra.ReasonNone, dra.ReasonFragmented}, ""},
		{"pinned to a zone with devices", func(w *testCluster) dra.Question {
			w.zoned("a")
			w.pool("d", "n1", devicesNamed(1)...)
			w.hold("first", "n1", `device.attributes["d"].?kind.orValue("") == "fabric"`)
			w.claim("c", spec(deviceRequest("main", 1, `!has(device.attributes["d"].kind)`)))
			return question("first", "c")
		}, []dra.PendingReason{dra.ReasonNone, dra.ReasonNone}, ""},
		{"no more than fifty nodes are tried", func(w *testCluster) dra.Question {
			for i := range 60 {
				name := fmt.Sprintf("more-%02d", i)
				w.node(name, nil)
				w.pool("d", name, device("a", "numa", 0), device("b", "numa", 1))
			}
			s := spec(deviceRequest("main", 2))
			s.Devices.Constraints = []resourcev1.DeviceConstraint{matchAttribute("d/numa")}
			w.claim("c", s)
			return question("c")
		}, []dra.PendingReason{dra.ReasonConstraints}, "none of the best 50 of 60 nodes can satisfy the constraints of the claim"},
		{"a node with a pool that contradicts itself, and another node", func(w *testCluster) dra.Question {
			w.partitioned("n1", 3)
			w.pool("other", "n1", device("twice"), device("twice"))
			w.pool("d", "n2", devicesNamed(2)...)
			w.claim("c", spec(deviceRequest("main", 2)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNone}, ""},
		{"a pool that contradicts itself", func(w *testCluster) dra.Question {
			w.pool("d", "n1", device("twice"), device("twice"))
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "of 2 devices that match and have no untolerated taint, 0 can still be allocated"},
		{"one claim of two has no device", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			w.claim("c1", spec(deviceRequest("main", 1)))
			w.claim("c2", spec(deviceRequest("main", 2)))
			return question("c1", "c2")
		}, []dra.PendingReason{dra.ReasonNone, dra.ReasonInsufficient}, "but not those of another claim of the pod"},
		{"constraints", func(w *testCluster) dra.Question {
			w.pool("d", "n1", device("a", "numa", 0), device("b", "numa", 1))
			s := spec(deviceRequest("main", 2))
			s.Devices.Constraints = []resourcev1.DeviceConstraint{matchAttribute("d/numa")}
			w.claim("c", s)
			return question("c")
		}, []dra.PendingReason{dra.ReasonConstraints}, "node n1, the only one with enough free devices, cannot satisfy the constraints of the claim; without the constraints it could"},
		{"constraints of all devices", func(w *testCluster) dra.Question {
			w.pool("d", "n1", device("a", "numa", 0), device("b", "numa", 1))
			s := spec(deviceRequest("main", 0))
			s.Devices.Constraints = []resourcev1.DeviceConstraint{matchAttribute("d/numa")}
			w.claim("c", s)
			return question("c")
		}, []dra.PendingReason{dra.ReasonConstraints}, "a claim constraint would not be satisfied"},
		{"constraints and not enough without them", func(w *testCluster) dra.Question {
			w.partitioned("n1", 2)
			s := spec(deviceRequest("main", 2))
			s.Devices.Constraints = []resourcev1.DeviceConstraint{matchAttribute("d/none")}
			w.claim("c", s)
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "compete for the same devices"},
		{"more than a claim can have", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(40)...)
			w.claim("c", spec(deviceRequest("a", 20), deviceRequest("b", 20)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonConstraints}, "it requests 40 devices, and a claim can have at most 32"},
		{"all devices of a node that has too many", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(40)...)
			w.claim("c", spec(deviceRequest("main", 0)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonConstraints}, "exceeds the claim limit"},
		{"all devices, and one is held", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(2)...)
			w.hold("holder", "n1")
			w.claim("c", spec(deviceRequest("main", 0)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "on every node one of them is allocated"},
		{"all devices, and one is tainted", func(w *testCluster) dra.Question {
			w.pool("d", "n1", device("a"), tainted(device("b"), "unhealthy", resourcev1.DeviceTaintEffectNoSchedule))
			w.claim("c", spec(deviceRequest("main", 0)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonTainted}, "on every node one of them has a taint"},
		{"partitions of one device", func(w *testCluster) dra.Question {
			w.partitioned("n1", 3)
			w.claim("c", spec(deviceRequest("main", 2)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "compete for the same devices"},
		{"a partition whose device is spent", func(w *testCluster) dra.Question {
			w.partitioned("n1", 3)
			w.hold("holder", "n1", `device.attributes["d"].index == 0`)
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "0 can still be allocated"},
		{"shared, and enough is left", func(w *testCluster) dra.Question {
			w.pool("d", "n1", shared("a", "80Gi"))
			w.shareOf("holder", "50Gi", "n1")
			w.claim("c", memoryOf("30Gi"))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNone}, ""},
		{"shared, and too little is left", func(w *testCluster) dra.Question {
			w.pool("d", "n1", shared("a", "80Gi"))
			w.shareOf("holder", "50Gi", "n1")
			w.claim("c", memoryOf("31Gi"))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "0 can still be allocated"},
		{"admin access to what is held", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			w.hold("holder", "n1")
			s := spec(deviceRequest("main", 1))
			s.Devices.Requests[0].Exactly.AdminAccess = &yes
			w.claim("c", s)
			return question("c")
		}, []dra.PendingReason{dra.ReasonNone}, ""},
		{"one alternative does", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			w.claim("c", spec(either("main", deviceRequest("many", 4), deviceRequest("one", 1))))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNone}, ""},
		{"the alternative that comes furthest", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(2)...)
			w.hold("holder", "n1")
			w.claim("c", spec(either("main", deviceRequest("many", 4), deviceRequest("two", 2))))
			return question("c")
		}, []dra.PendingReason{dra.ReasonInsufficient}, "request main/two asks for 2 devices"},
		{"a network-attached device", func(w *testCluster) dra.Question {
			slice := newSlice("d", "fabric", devicesNamed(1)...)
			slice.Spec.AllNodes = &yes
			w.slice(slice)
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("c")
		}, []dra.PendingReason{dra.ReasonNone}, ""},
		{"pinned to a node without devices", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			w.pool("d", "n2", devicesNamed(1)...)
			w.hold("first", "n1")
			w.claim("c", spec(deviceRequest("main", 1)))
			return question("first", "c")
		}, []dra.PendingReason{dra.ReasonNone, dra.ReasonFragmented}, ""},
		{"a claim that does not exist", func(w *testCluster) dra.Question {
			return question("c")
		}, []dra.PendingReason{dra.ReasonNone}, ""},
		{"a template", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			template := &resourcev1.ResourceClaimTemplate{}
			template.Spec.Spec = spec(deviceRequest("main", 2))
			w.inventory.ApplyTemplate(testNamespace, "two", template)
			q := question("c")
			q.Refs[0].Claim, q.Refs[0].Template = "", "two"
			return q
		}, []dra.PendingReason{dra.ReasonInsufficient}, "request main asks for 2 devices"},
		{"an extended resource", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			return w.extended("example.com/gpu", 2)
		}, []dra.PendingReason{dra.ReasonInsufficient}, "request example.com/gpu asks for 2 devices"},
		{"an extended resource by its implicit name", func(w *testCluster) dra.Question {
			w.pool("d", "n1", devicesNamed(1)...)
			return w.extended("deviceclass.resource.kubernetes.io/gpu", 1)
		}, []dra.PendingReason{dra.ReasonNone}, ""},
		{"an extended resource of no class", func(w *testCluster) dra.Question {
			return w.extended("example.com/fpga", 1)
		}, []dra.PendingReason{dra.ReasonNoDeviceClass}, "no device class provides the extended resource example.com/fpga"},
		{"the allocator panics", func(w *testCluster) dra.Question {
			odd, zero := shared("a", "80Gi"), resource.MustParse("0")
			memory := odd.Capacity["memory"]
			least := resource.MustParse("1Gi")
			memory.RequestPolicy = &resourcev1.CapacityRequestPolicy{ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: &least, Step: &zero}}
			odd.Capacity["memory"] = memory
			w.pool("d", "n1", odd, shared("b", "80Gi"))
			w.claim("c", memoryOf("3Gi"))
			return question("c")
		}, []dra.PendingReason{dra.ReasonUnknown}, "the allocator panics: runtime error: integer divide by zero"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newTestCluster(t)
			w.node("n1", map[string]string{"zone": "a"})
			w.node("n2", map[string]string{"zone": "b"})
			w.class("gpu", `device.driver == "d"`)
			diagnoses := w.diagnoser().Explain(t.Context(), test.build(w))
			if len(diagnoses) != len(test.want) {
				t.Fatalf("got %d diagnoses, want %d", len(diagnoses), len(test.want))
			}
			for i, v := range diagnoses {
				if v.Reason != test.want[i] {
					t.Errorf("reference %s: reason %q, want %q (%s)", v.PodClaim, v.Reason, test.want[i], v.Message)
				}
				checkStages(t, v)
			}
			if got := diagnoses[0].Message; !strings.Contains(got, test.message) || (test.message == "") != (got == "") {
				t.Errorf("message %q, want %q in it", got, test.message)
			}
		})
	}
}

// checkStages checks what is promised of the stages of every request.
func checkStages(t *testing.T, v dra.Diagnosis) {
	t.Helper()
	for _, f := range v.Requests {
		for stage := 1; stage < dra.Stages; stage++ {
			if f.Left[stage] > f.Left[stage-1] || f.Left[stage] < 0 {
				t.Errorf("request %s: the stages do not fall: %v", f.Request, f.Left)
			}
		}
	}
	if v.Reason != dra.ReasonNone && v.Message == "" {
		t.Errorf("reason %s without a message", v.Reason)
	}
}

// zoned publishes a device that all nodes of a zone can use.
func (w *testCluster) zoned(zone string) {
	slice := newSlice("d", "fabric", device("fabric", "kind", "fabric"))
	slice.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}
	w.slice(slice)
}

// partitioned publishes partitions of one device, each of which takes most of
// it, so that only one can be allocated.
func (w *testCluster) partitioned(node string, n int) {
	counters := newSlice("d", node)
	counters.Name += "-counters"
	counters.Spec.NodeName, counters.Spec.Pool.ResourceSliceCount = &node, 2
	counters.Spec.SharedCounters = []resourcev1.CounterSet{{
		Name: "set", Counters: map[string]resourcev1.Counter{"slots": {Value: resource.MustParse("7")}},
	}}
	w.slice(counters)
	var parts []resourcev1.Device
	for i := range n {
		part := device("part-"+string(rune('a'+i)), "index", i)
		part.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{
			CounterSet: "set", Counters: map[string]resourcev1.Counter{"slots": {Value: resource.MustParse("4")}},
		}}
		parts = append(parts, part)
	}
	slice := newSlice("d", node, parts...)
	slice.Spec.NodeName, slice.Spec.Pool.ResourceSliceCount = &node, 2
	w.slice(slice)
}

// memoryOf requests this much memory of a shared device.
func memoryOf(amount string) resourcev1.ResourceClaimSpec {
	s := spec(deviceRequest("main", 1))
	s.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{
		Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(amount)},
	}
	return s
}

func (w *testCluster) shareOf(name, amount, node string) {
	w.t.Helper()
	if !w.allocate(w.claim(name, memoryOf(amount)), node) {
		w.t.Fatalf("%s of a shared device cannot be allocated on %s", amount, node)
	}
}

// extended requests an extended resource; class gpu is example.com/gpu.
func (w *testCluster) extended(name string, amount int64) dra.Question {
	resourceName := "example.com/gpu"
	w.classes[0].Spec.ExtendedResourceName = &resourceName
	w.inventory.ApplyClass("gpu", w.classes[0].DeepCopy())
	q := dra.Question{Pod: dra.PodRef{Namespace: testNamespace, Name: "pod"}, PodUID: "pod-uid"}
	q.Refs = []dra.PendingRef{{PodClaim: name, Extended: amount}}
	return q
}

// costly is a selector whose evaluation costs more than is allowed.
func costly() string {
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 100), ",") + "]"
	return list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c > 0)))"
}
