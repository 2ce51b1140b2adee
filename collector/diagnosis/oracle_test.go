package diagnosis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// In random clusters a diagnosis has no reason against a pod's claims
// exactly where upstream's allocator, given the API objects, succeeds on some
// node and gives up on none. The reasons are held against the objects too: what
// a reason names is taken away, and must then not be the reason any more.
func TestOracle(t *testing.T) {
	clusters := 400
	if testing.Short() {
		clusters = 60
	}
	found := make(map[dra.PendingReason]int)
	for seed := range clusters {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		w := randomCluster(t, random)
		d := w.diagnoser()
		for range 6 {
			q, claims := w.randomQuestion(random)
			diagnoses := d.Explain(t.Context(), q)
			allocatable, fatal := w.allocateAnywhere(claims)
			nothing := true
			for _, v := range diagnoses {
				checkStages(t, v)
				nothing = nothing && v.Reason == dra.ReasonNone
				found[v.Reason]++
			}
			if want := allocatable && fatal == nil; nothing != want {
				for i, v := range diagnoses {
					t.Logf("%s: %q %s\n%+v\n%s", v.PodClaim, v.Reason, v.Message, v.Requests, claims[i].Spec.String())
				}
				t.Fatalf("seed %d: no reason: %v; the allocator: allocatable %v, %v", seed, nothing, allocatable, fatal)
			}
			w.checkReason(diagnoses, claims)
			w.forget(claims)
		}
	}
	for _, reason := range []dra.PendingReason{
		dra.ReasonNone, dra.ReasonNoMatchingDevice, dra.ReasonInsufficient, dra.ReasonTainted,
		dra.ReasonPoolIncomplete, dra.ReasonFragmented, dra.ReasonConstraints,
	} {
		if found[reason] < clusters/40 {
			t.Errorf("reason %q was found %d times in %d clusters: the generator does not exercise it", reason, found[reason], clusters)
		}
	}
	t.Log(found)
}

// allocateAnywhere has upstream's allocator search all nodes.
func (w *testCluster) allocateAnywhere(claims []*resourcev1.ResourceClaim) (allocatable bool, fatal error) {
	allocator := w.allocator()
	for _, node := range w.nodes {
		results, err := allocator.Allocate(context.Background(), node, claims)
		if err != nil {
			fatal = fmt.Errorf("on node %s: %w", node.Name, err)
		}
		allocatable = allocatable || results != nil
	}
	return allocatable, fatal
}

// checkReason takes away what a reason names.
func (w *testCluster) checkReason(diagnoses []dra.Diagnosis, claims []*resourcev1.ResourceClaim) {
	w.t.Helper()
	if len(claims) != 1 {
		return
	}
	v, changed := diagnoses[0], claims[0].DeepCopy()
	switch v.Reason {
	case dra.ReasonConstraints:
		changed.Spec.Devices.Constraints = nil
		if ok, _ := w.allocateAnywhere([]*resourcev1.ResourceClaim{changed}); !ok {
			w.t.Errorf("%s, but without constraints it cannot be allocated either", v.Message)
		}
	case dra.ReasonTainted:
		tolerateAll(&changed.Spec)
		if again := w.diagnoser().Explain(context.Background(), w.ask(changed)); again[0].Reason == dra.ReasonTainted {
			w.t.Errorf("%s, but it is so with all taints tolerated: %s", v.Message, again[0].Message)
		}
	}
}

func tolerateAll(s *resourcev1.ResourceClaimSpec) {
	all := []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	for i := range s.Devices.Requests {
		if exactly := s.Devices.Requests[i].Exactly; exactly != nil {
			exactly.Tolerations = all
		}
		for j := range s.Devices.Requests[i].FirstAvailable {
			s.Devices.Requests[i].FirstAvailable[j].Tolerations = all
		}
	}
}

// ask adds the claim to the inventory and returns a question about it.
func (w *testCluster) ask(claim *resourcev1.ResourceClaim) dra.Question {
	w.inventory.ApplyClaim(testNamespace, claim.Name, claim.DeepCopy())
	return question(claim.Name)
}

func (w *testCluster) forget(claims []*resourcev1.ResourceClaim) {
	for _, claim := range claims {
		w.inventory.ApplyClaim(testNamespace, claim.Name, nil)
	}
	w.claims = w.claims[:len(w.claims)-len(claims)]
}

// randomCluster has a few nodes with pools of all kinds, and claims that hold
// some of their devices.
func randomCluster(t *testing.T, random *rand.Rand) *testCluster {
	w := newTestCluster(t)
	for i := range 2 + random.IntN(3) {
		w.node(fmt.Sprintf("n%d", i), map[string]string{"zone": []string{"a", "b"}[random.IntN(2)]})
	}
	w.class("gpu", `device.driver == "d"`)
	w.class("any")
	for _, node := range w.nodes {
		if random.IntN(5) > 0 {
			w.randomPool(random, "d", node.Name, &node.Name)
		}
		if random.IntN(4) == 0 {
			w.randomPool(random, "e", node.Name, &node.Name)
		}
	}
	if random.IntN(3) == 0 {
		w.randomPool(random, "d", "fabric", nil)
	}
	if random.IntN(3) == 0 {
		driver, device := "d", fmt.Sprintf("d%d", random.IntN(4))
		w.rule("rule", "rule", resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintSelector{Driver: &driver, Device: &device})
	}
	for i := range random.IntN(6) {
		claim := w.claim(fmt.Sprintf("held-%d", i), w.randomSpec(random))
		w.allocate(claim, w.nodes[random.IntN(len(w.nodes))].Name)
	}
	return w
}

func (w *testCluster) randomPool(random *rand.Rand, driver, name string, node *string) {
	devices := make([]resourcev1.Device, 0, 5)
	partitioned := random.IntN(4) == 0
	for i := range 1 + random.IntN(5) {
		devices = append(devices, randomDevice(random, i, partitioned))
	}
	slice := newSlice(driver, name, devices...)
	all := []*resourcev1.ResourceSlice{slice}
	if partitioned {
		counters := newSlice(driver, name)
		counters.Name += "-counters"
		counters.Spec.SharedCounters = []resourcev1.CounterSet{{
			Name: "set", Counters: map[string]resourcev1.Counter{"slots": {Value: resource.MustParse(fmt.Sprint(2 + random.IntN(4)))}},
		}}
		all = append(all, counters)
	}
	incomplete, where := random.IntN(10) == 0, random.IntN(3)
	if random.IntN(6) == 0 {
		// It reaches the nodes that the newer ones reach: on others upstream's
		// allocator would still take it for the whole pool.
		older := newSlice(driver, name, device("old", "model", "x"))
		older.Name, older.Spec.Pool.Generation = older.Name+"-old", 0
		older.Spec.NodeName = node
		if node == nil {
			reachable(where, older)
		}
		w.slice(older)
	}
	for _, s := range all {
		s.Spec.Pool.ResourceSliceCount = int64(len(all))
		if incomplete {
			s.Spec.Pool.ResourceSliceCount++
		}
		s.Spec.NodeName = node
		if node == nil {
			reachable(where, s)
		}
		w.slice(s)
	}
}

// reachable makes a slice network-attached: from all nodes, from a zone, or
// each device from another node.
func reachable(where int, slice *resourcev1.ResourceSlice) {
	yes := true
	zone := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
	}}}}
	switch {
	case where == 0:
		slice.Spec.AllNodes = &yes
	case where == 1 || len(slice.Spec.Devices) == 0:
		slice.Spec.NodeSelector = zone
	default:
		slice.Spec.PerDeviceNodeSelection = &yes
		for i := range slice.Spec.Devices {
			name := fmt.Sprintf("n%d", i%3)
			slice.Spec.Devices[i].NodeName = &name
		}
	}
}

func randomDevice(random *rand.Rand, i int, partitioned bool) resourcev1.Device {
	name := fmt.Sprintf("d%d", i)
	attributes := []any{"numa", random.IntN(2), "index", i}
	if random.IntN(20) > 0 {
		attributes = append(attributes, "model", []string{"x", "y"}[random.IntN(2)])
	}
	d := device(name, attributes...)
	switch {
	case partitioned:
		d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{
			CounterSet: "set", Counters: map[string]resourcev1.Counter{"slots": {Value: resource.MustParse(fmt.Sprint(1 + random.IntN(3)))}},
		}}
	case random.IntN(4) == 0:
		d = shared(name, fmt.Sprintf("%dGi", 20+20*random.IntN(3)), attributes...)
	}
	if random.IntN(6) == 0 {
		effects := []resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone}
		d = tainted(d, "unhealthy", effects[random.IntN(3)])
	}
	return d
}

// randomQuestion returns a question about one to three claims that are not
// allocated.
func (w *testCluster) randomQuestion(random *rand.Rand) (dra.Question, []*resourcev1.ResourceClaim) {
	var names []string
	var claims []*resourcev1.ResourceClaim
	for i := range 1 + max(0, random.IntN(5)-2) {
		claim := w.claim(fmt.Sprintf("wanted-%d", i), w.randomSpec(random))
		names, claims = append(names, claim.Name), append(claims, claim)
	}
	return question(names...), claims
}

func (w *testCluster) randomSpec(random *rand.Rand) resourcev1.ResourceClaimSpec {
	var s resourcev1.ResourceClaimSpec
	for i := range 1 + max(0, random.IntN(4)-2) {
		name := fmt.Sprintf("r%d", i)
		if random.IntN(5) == 0 {
			s.Devices.Requests = append(s.Devices.Requests, either(name, randomRequest(random, "a", true), randomRequest(random, "b", true)))
			continue
		}
		s.Devices.Requests = append(s.Devices.Requests, randomRequest(random, name, false))
	}
	if random.IntN(3) == 0 {
		s.Devices.Constraints = append(s.Devices.Constraints, matchAttribute([]string{"d/numa", "d/model"}[random.IntN(2)]))
	}
	if random.IntN(6) == 0 {
		attribute := resourcev1.FullyQualifiedName("d/index")
		s.Devices.Constraints = append(s.Devices.Constraints, resourcev1.DeviceConstraint{DistinctAttribute: &attribute})
	}
	return s
}

func randomRequest(random *rand.Rand, name string, alternative bool) resourcev1.DeviceRequest {
	counts := []int64{1, 1, 1, 2, 2, 3, 5, 0}
	r := deviceRequest(name, counts[random.IntN(len(counts))])
	if random.IntN(6) == 0 {
		r.Exactly.DeviceClassName = "any"
	}
	switch random.IntN(6) {
	case 0:
		r.Exactly.Selectors = selectors(`device.attributes["d"].?model.orValue("") == "x"`)
	case 1:
		r.Exactly.Selectors = selectors(`device.driver == "d" && device.attributes["d"].numa == 1`)
	case 2:
		if random.IntN(3) == 0 {
			r.Exactly.Selectors = selectors(`device.attributes["d"].model == "y"`) // fails where there is none
		}
	}
	if random.IntN(5) == 0 {
		r.Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: "unhealthy", Operator: resourcev1.DeviceTolerationOpExists}}
	}
	if random.IntN(5) == 0 {
		r.Exactly.Capacity = &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(fmt.Sprintf("%dGi", 10+10*random.IntN(5)))},
		}
	}
	if !alternative && random.IntN(8) == 0 {
		yes := true
		r.Exactly.AdminAccess = &yes
	}
	return r
}
