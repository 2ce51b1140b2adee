package inventory

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// testCluster is a cluster of API objects that a test changes, and an inventory
// with the changes applied.
type testCluster struct {
	t      testing.TB
	rng    *rand.Rand
	inv    *Inventory
	nodes  map[string]*corev1.Node
	slices map[string]*resourcev1.ResourceSlice
	claims map[string]*resourcev1.ResourceClaim
	rules  map[string]*resourcev1.DeviceTaintRule
	class  map[string]*resourcev1.DeviceClass
	ids    int64
}

func newTestCluster(t testing.TB, seed uint64) *testCluster {
	return &testCluster{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), inv: New(),
		nodes: map[string]*corev1.Node{}, slices: map[string]*resourcev1.ResourceSlice{}, claims: map[string]*resourcev1.ResourceClaim{},
		rules: map[string]*resourcev1.DeviceTaintRule{}, class: map[string]*resourcev1.DeviceClass{},
	}
}

func (w *testCluster) node(name string, labels map[string]string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	w.nodes[name] = node
	w.inv.ApplyNode(name, node.DeepCopy())
}

// declare has nodes declare the feature that slices need which skip node
// operations, and the others not.
func (w *testCluster) declare(declares func(node string) bool) {
	for _, name := range sorted(w.nodes) {
		node := w.nodes[name].DeepCopy()
		node.Status.DeclaredFeatures = nil
		if declares(name) {
			node.Status.DeclaredFeatures = []string{"DRAOptionalNodeOperations"}
		}
		w.nodes[name] = node
		w.inv.ApplyNode(name, node.DeepCopy())
	}
}

func (w *testCluster) slice(s *resourcev1.ResourceSlice) {
	w.slices[s.Name] = s
	w.inv.ApplySlice(s.Name, s.DeepCopy())
}

func (w *testCluster) dropSlice(name string) {
	delete(w.slices, name)
	w.inv.ApplySlice(name, nil)
}

func (w *testCluster) claim(c *resourcev1.ResourceClaim) {
	w.claims[c.Name] = c
	w.inv.ApplyClaim(c.Namespace, c.Name, c.DeepCopy())
}

func (w *testCluster) dropClaim(name string) {
	delete(w.claims, name)
	w.inv.ApplyClaim("lab", name, nil)
}

func (w *testCluster) rule(r *resourcev1.DeviceTaintRule) {
	w.rules[r.Name] = r
	w.inv.ApplyRule(r.Name, r.DeepCopy())
}

func (w *testCluster) deviceClass(name string, expressions ...string) {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Selectors = selectors(expressions...)
	w.class[name] = c
	w.inv.ApplyClass(name, c.DeepCopy())
}

func selectors(expressions ...string) []resourcev1.DeviceSelector {
	var made []resourcev1.DeviceSelector
	for _, expression := range expressions {
		made = append(made, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	return made
}

// rebuilt returns another inventory with only the present objects applied.
func (w *testCluster) rebuilt() *Inventory {
	inv := New()
	for name, o := range w.claims {
		inv.ApplyClaim("lab", name, o.DeepCopy())
	}
	for name, o := range w.rules {
		inv.ApplyRule(name, o.DeepCopy())
	}
	for name, o := range w.slices {
		inv.ApplySlice(name, o.DeepCopy())
	}
	for name, o := range w.nodes {
		inv.ApplyNode(name, o.DeepCopy())
	}
	for name, o := range w.class {
		inv.ApplyClass(name, o.DeepCopy())
	}
	return inv
}

// patched are all slices with the taints of rules, written out from the API's
// documentation.
func (w *testCluster) patched() []*resourcev1.ResourceSlice {
	var all []*resourcev1.ResourceSlice
	is := func(want *string, have string) bool { return want == nil || *want == have }
	for _, published := range w.slices {
		s := published.DeepCopy()
		for _, r := range w.rules {
			selector := r.Spec.DeviceSelector
			for i := range s.Spec.Devices {
				if selector != nil && is(selector.Driver, s.Spec.Driver) && is(selector.Pool, s.Spec.Pool.Name) && is(selector.Device, s.Spec.Devices[i].Name) {
					s.Spec.Devices[i].Taints = append(s.Spec.Devices[i].Taints, r.Spec.Taint)
				}
			}
		}
		all = append(all, s)
	}
	return all
}

// allocated is the state as the scheduler gathers it from claims.
func (w *testCluster) allocated() structured.AllocatedState {
	state := structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](), AggregatedCapacity: structured.NewConsumedCapacityCollection()}
	for _, c := range w.claims {
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
			switch {
			case r.AdminAccess != nil && *r.AdminAccess:
			case r.ShareID == nil:
				state.AllocatedDevices.Insert(id)
			default:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
				if r.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
				}
			}
		}
	}
	return state
}

func pick[T any](w *testCluster, of ...T) T { return of[w.rng.IntN(len(of))] }

// chance is true once in so many times.
func (w *testCluster) chance(in int) bool { return w.rng.IntN(in) == 0 }

// randomDevice makes a device with an attribute "id" that no other has.
func (w *testCluster) randomDevice(name string) resourcev1.Device {
	w.ids++
	d := resourcev1.Device{
		Name: name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"id":    {IntValue: new(w.ids)},
			"model": {StringValue: new(pick(w, "A", "B", "C"))},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(pick(w, "10Gi", "20Gi", "40Gi"))}},
	}
	if w.chance(6) {
		d.Capacity["cores"] = resourcev1.DeviceCapacity{Value: resource.MustParse("4"), RequestPolicy: w.fractionalPolicy()}
	}
	if w.chance(3) {
		d.Attributes["version"] = resourcev1.DeviceAttribute{VersionValue: new(pick(w, "1.0.0", "2.1.0"))}
	}
	if w.chance(3) {
		d.Attributes["other.example.com/healthy"] = resourcev1.DeviceAttribute{BoolValue: new(w.chance(2))}
	}
	if w.chance(4) {
		d.AllowMultipleAllocations = new(true)
	}
	if w.chance(4) {
		d.Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse("40Gi"), RequestPolicy: w.randomPolicy()}
	}
	for w.chance(5) {
		d.Taints = append(d.Taints, w.randomTaint())
	}
	return d
}

func (w *testCluster) randomPolicy() *resourcev1.CapacityRequestPolicy {
	if w.chance(2) {
		return &resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse("1Gi")), ValidValues: []resource.Quantity{
			resource.MustParse("1Gi"), resource.MustParse("8Gi"), resource.MustParse("32Gi")}}
	}
	policy := &resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse("2Gi")), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: new(resource.MustParse("2Gi"))}}
	if w.chance(2) {
		policy.ValidRange.Step = new(resource.MustParse(pick(w, "2Gi", "3Gi")))
	}
	if w.chance(2) {
		policy.ValidRange.Max = new(resource.MustParse("20Gi"))
	}
	return policy
}

func (w *testCluster) fractionalPolicy() *resourcev1.CapacityRequestPolicy {
	return &resourcev1.CapacityRequestPolicy{Default: new(resource.MustParse("250m")), ValidRange: &resourcev1.CapacityRequestPolicyRange{
		Min: new(resource.MustParse("250m")), Step: new(resource.MustParse(pick(w, "250m", "1"))), Max: new(resource.MustParse(pick(w, "2", "3500m")))}}
}

func (w *testCluster) randomTaint() resourcev1.DeviceTaint {
	return resourcev1.DeviceTaint{Key: pick(w, "unhealthy", "drain"), Value: pick(w, "", "yes"),
		Effect: pick(w, resourcev1.DeviceTaintEffectNone, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute)}
}

// place chooses where a slice's devices can be used.
func (w *testCluster) place(spec *resourcev1.ResourceSliceSpec, node string) {
	switch w.rng.IntN(6) {
	case 0:
		spec.AllNodes = new(true)
	case 1:
		spec.NodeSelector = zone(pick(w, "a", "b"))
	case 2:
		spec.PerDeviceNodeSelection = new(true)
		for i := range spec.Devices {
			switch w.rng.IntN(3) {
			case 0:
				spec.Devices[i].NodeName = new(node)
			case 1:
				spec.Devices[i].AllNodes = new(true)
			default:
				spec.Devices[i].NodeSelector = zone("a")
			}
		}
	default:
		spec.NodeName = new(node)
	}
}

func zone(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}}}
}

// publish makes a pool, in one or more slices, at times not all of them.
func (w *testCluster) publish(driver, name, node string, generation int64) {
	var made []*resourcev1.ResourceSlice
	counted, contradicts := w.chance(3), w.chance(12)
	prefix := "" // devices of several nodes have the same names if their drivers name them by index
	if w.chance(3) {
		prefix = node + "-"
	}
	for i := range 1 + w.rng.IntN(2) {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%s-%d-%d", driver, name, node, generation, i)}}
		for j := range 1 + w.rng.IntN(4) {
			d := w.randomDevice(fmt.Sprintf("%sdev-%d-%d", prefix, i, j))
			if counted && !w.chance(4) {
				d.ConsumesCounters = w.randomConsumption()
			}
			s.Spec.Devices = append(s.Spec.Devices, d)
		}
		if contradicts {
			s.Spec.Devices[0].Name = "twice"
			s.Spec.NodeName = new(node)
		} else {
			w.place(&s.Spec, node)
		}
		made = append(made, s)
	}
	if counted {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%s-%d-c", driver, name, node, generation)}}
		s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "set-0", Counters: counts("8", "70")}, {Name: "set-1", Counters: counts("8", "70")}}
		s.Spec.NodeName = new(node)
		made = append(made, s)
	}
	count := int64(len(made))
	if w.chance(10) {
		count++
	}
	for _, s := range made {
		if w.chance(5) {
			s.Spec.SkipNodeOperations = []resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationNodeUnprepareResources}
		}
		s.Spec.Driver = driver
		s.Spec.Pool = resourcev1.ResourcePool{Name: name, Generation: generation, ResourceSliceCount: count}
		w.slice(s)
	}
}

func counts(memory, units string) map[string]resourcev1.Counter {
	return map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(memory)}, "units": {Value: resource.MustParse(units)}}
}

func (w *testCluster) randomConsumption() []resourcev1.DeviceCounterConsumption {
	consumption := resourcev1.DeviceCounterConsumption{CounterSet: pick(w, "set-0", "set-1"), Counters: counts(pick(w, "1", "3", "8"), pick(w, "7", "30"))}
	if w.chance(40) {
		consumption.CounterSet = "set-none"
	}
	if w.chance(4) {
		consumption.CompatibilityGroups = []string{pick(w, "x", "y")}
	}
	return []resourcev1.DeviceCounterConsumption{consumption}
}

// allocate makes a claim that has some devices, also such as the scheduler
// would not have given it. It never has devices with and without groups that consume
// from one pool: which of them count then depends on the order of the slices.
func (w *testCluster) allocate(name string) {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
	c.Status.Allocation = &resourcev1.AllocationResult{NodeSelector: zone("a")}
	for _, sliceName := range sorted(w.slices) {
		s := w.slices[sliceName]
		for i := range s.Spec.Devices {
			if w.chance(12) {
				d := &s.Spec.Devices[i]
				if w.mixes(s, d, c) {
					continue
				}
				r := resourcev1.DeviceRequestAllocationResult{Request: "main", Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name, Device: d.Name}
				if w.chance(5) {
					r.AdminAccess = new(true)
				} else if d.AllowMultipleAllocations != nil {
					r.ShareID = new(types.UID(fmt.Sprintf("share-%d", w.rng.Uint64())))
					r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(pick(w, "1Gi", "9Gi", "30Gi"))}
				}
				c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, r)
			}
		}
	}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod-of-" + name}}
	w.claim(c)
}

// mixes reports whether a device with groups would be allocated beside one without.
func (w *testCluster) mixes(published *resourcev1.ResourceSlice, d *resourcev1.Device, with *resourcev1.ResourceClaim) bool {
	if len(d.ConsumesCounters) == 0 {
		return false
	}
	for _, c := range append(slices.Collect(maps.Values(w.claims)), with) {
		for _, r := range c.Status.Allocation.Devices.Results {
			for _, s := range w.slices {
				if s.Spec.Driver != published.Spec.Driver || s.Spec.Pool.Name != published.Spec.Pool.Name || s.Spec.Driver != r.Driver || s.Spec.Pool.Name != r.Pool {
					continue
				}
				for _, other := range s.Spec.Devices {
					if other.Name == r.Device && len(other.ConsumesCounters) > 0 &&
						(len(other.ConsumesCounters[0].CompatibilityGroups) == 0) != (len(d.ConsumesCounters[0].CompatibilityGroups) == 0) {
						return true
					}
				}
			}
		}
	}
	return false
}

// taint makes a rule.
func (w *testCluster) taint(name string) {
	r := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Spec.Taint = w.randomTaint()
	if !w.chance(6) {
		r.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{}
		if w.chance(2) {
			r.Spec.DeviceSelector.Driver = new(pick(w, "gpu.example.com", "net.example.com"))
		}
		if w.chance(2) {
			r.Spec.DeviceSelector.Pool = new(pick(w, "p0", "p1"))
		}
		if w.chance(2) {
			r.Spec.DeviceSelector.Device = new(pick(w, "dev-0-0", "dev-1-0"))
		}
	}
	w.rule(r)
}

// populate adds objects of all kinds.
func (w *testCluster) populate() {
	w.node("n0", map[string]string{"zone": "a"})
	w.node("n1", map[string]string{"zone": "b"})
	w.node("n2", nil)
	w.declare(func(string) bool { return w.chance(2) })
	w.deviceClass("any")
	w.deviceClass("gpu", `device.driver == "gpu.example.com"`)
	w.deviceClass("model-a", `device.driver == "gpu.example.com"`, `device.attributes["gpu.example.com"].model == "A"`)
	for i := range 4 {
		w.publish(pick(w, "gpu.example.com", "net.example.com"), fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", i%3), 1)
	}
	if w.chance(2) { // pools of one name on several nodes, also on one that is gone
		for _, node := range []string{"n0", "n1", "n2", "n3"} {
			for w.chance(2) {
				w.publish(pick(w, "gpu.example.com", "net.example.com"), pick(w, "p0", "p1"), node, 1+w.rng.Int64N(2))
			}
		}
	}
	for i := range w.rng.IntN(4) {
		w.allocate(fmt.Sprintf("c%d", i))
	}
	for i := range w.rng.IntN(3) {
		w.taint(fmt.Sprintf("r%d", i))
	}
}

// change changes something.
func (w *testCluster) change() {
	switch w.rng.IntN(9) {
	case 0:
		w.publish(pick(w, "gpu.example.com", "net.example.com"), pick(w, "p0", "p1", "p2", "p3"), pick(w, "n0", "n1", "n2", "n3"), 1+w.rng.Int64N(4))
	case 1:
		if names := sorted(w.slices); len(names) > 0 {
			w.dropSlice(pick(w, names...))
		}
	case 2, 3:
		w.allocate(pick(w, "c0", "c1", "c2", "c3"))
	case 4:
		w.dropClaim(pick(w, "c0", "c1", "c2", "c3"))
	case 5:
		w.taint(pick(w, "r0", "r1"))
	case 6:
		name := pick(w, "r0", "r1")
		delete(w.rules, name)
		w.inv.ApplyRule(name, nil)
	case 7:
		name := pick(w, "n0", "n1", "n2")
		w.node(name, map[string]string{"zone": pick(w, "a", "b")})
		w.nodes[name].Spec.Unschedulable = w.chance(3)
		w.nodes[name].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: pick(w, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionUnknown)}}
		w.declare(func(string) bool { return w.chance(2) })
	case 8:
		if names := sorted(w.slices); len(names) > 0 { // only taints change, as when a driver marks a device as unhealthy
			s := w.slices[pick(w, names...)].DeepCopy()
			for i := range s.Spec.Devices {
				s.Spec.Devices[i].Taints = nil
				if w.chance(2) {
					s.Spec.Devices[i].Taints = []resourcev1.DeviceTaint{w.randomTaint()}
				}
			}
			w.slice(s)
		}
	}
}

func sorted[V any](of map[string]V) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// supplyOf returns the supply with the selectors of all classes evaluated.
func supplyOf(inv *Inventory) *dra.Supply {
	if err := inv.EvaluateClasses(context.Background(), nil); err != nil {
		panic(err)
	}
	return inv.Supply()
}
