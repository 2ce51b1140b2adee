package headroom

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// testCluster is a cluster of objects as the API server has them, in an inventory and
// for upstream's allocator itself.
type testCluster struct {
	t         testing.TB
	random    *rand.Rand
	inventory *inventory.Inventory
	compiled  *cel.Cache

	nodes     []*corev1.Node
	classes   []*resourcev1.DeviceClass
	slices    []*resourcev1.ResourceSlice
	rules     []*resourcev1.DeviceTaintRule
	allocated []resourcev1.AllocationResult
	made      int
}

func newTestCluster(t testing.TB, seed uint64) *testCluster {
	t.Helper()
	return &testCluster{
		t: t, random: rand.New(rand.NewPCG(seed, 24)), inventory: inventory.New(),
		compiled: cel.NewCache(100, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}),
	}
}

func (c *testCluster) chance(percent int) bool { return c.random.IntN(100) < percent }

func (c *testCluster) node(name string, labels map[string]string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	c.nodes = append(c.nodes, node)
	c.inventory.ApplyNode(name, node.DeepCopy())
}

func (c *testCluster) class(name, expression string) {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	c.classes = append(c.classes, class)
	c.inventory.ApplyClass(name, class.DeepCopy())
}

func (c *testCluster) slice(slice *resourcev1.ResourceSlice) {
	c.slices = append(c.slices, slice)
	c.inventory.ApplySlice(slice.Name, slice.DeepCopy())
}

func newSlice(driver, pool, suffix string, count int64, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: driver + "-" + pool + suffix},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: count}, Devices: devices,
		},
	}
}

// device makes a device with attributes in pairs of name and value.
func device(name string, attributes ...string) resourcev1.Device {
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
	for i := 0; i < len(attributes); i += 2 {
		d.Attributes[resourcev1.QualifiedName(attributes[i])] = resourcev1.DeviceAttribute{StringValue: &attributes[i+1]}
	}
	return d
}

const root = "example.com/root"

// gpus publishes whole GPUs of a node, on two roots.
func (c *testCluster) gpus(node string, count int) {
	var devices []resourcev1.Device
	for i := range count {
		d := device(fmt.Sprintf("gpu-%d", i), "kind", "gpu", "model", []string{"big", "small"}[i%2], root, fmt.Sprintf("root-%d", i*2/max(count, 1)))
		if c.chance(8) {
			d.Taints = []resourcev1.DeviceTaint{{Key: "example.com/unhealthy", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		}
		devices = append(devices, d)
	}
	slices := int64(1)
	if c.chance(6) {
		slices = 2 // the other one is missing
	}
	slice := newSlice("gpu.example.com", node, "", slices, devices...)
	slice.Spec.NodeName = &node
	c.slice(slice)
}

// nics publishes adapters of a node, some of them on the roots of its GPUs.
func (c *testCluster) nics(node string, count int) {
	var devices []resourcev1.Device
	for i := range count {
		devices = append(devices, device(fmt.Sprintf("nic-%d", i), "kind", "nic", root, fmt.Sprintf("root-%d", i%2)))
	}
	slice := newSlice("nic.example.com", node, "", 1, devices...)
	slice.Spec.NodeName = &node
	c.slice(slice)
}

// partitions publishes GPUs that can be allocated whole, as halves or as quarters.
func (c *testCluster) partitions(node string, count int) {
	counters := newSlice("part.example.com", node, "-a", 2)
	counters.Spec.NodeName = &node
	var devices []resourcev1.Device
	for i := range count {
		set := fmt.Sprintf("set-%d", i)
		counters.Spec.SharedCounters = append(counters.Spec.SharedCounters, resourcev1.CounterSet{
			Name: set, Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("8Gi")}, "engines": {Value: resource.MustParse("4")}},
		})
		for size, parts := range map[string]int{"whole": 1, "half": 2, "quarter": 4} {
			for j := range parts {
				d := device(fmt.Sprintf("part-%d-%s-%d", i, size, j), "kind", "part", "size", size)
				memory, engines := resource.MustParse(fmt.Sprintf("%dGi", 8/parts)), resource.MustParse(fmt.Sprint(4/parts))
				d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{
					CounterSet: set, Counters: map[string]resourcev1.Counter{"memory": {Value: memory}, "engines": {Value: engines}},
				}}
				devices = append(devices, d)
			}
		}
	}
	slices.SortFunc(devices, func(a, b resourcev1.Device) int { return len(a.Name) - len(b.Name) + 10*compare(a.Name, b.Name) })
	slice := newSlice("part.example.com", node, "-b", 2, devices...)
	slice.Spec.NodeName = &node
	c.slice(counters)
	c.slice(slice)
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// shares publishes devices that several claims may use.
func (c *testCluster) shares(node string, count int) {
	var devices []resourcev1.Device
	for i := range count {
		d, yes := device(fmt.Sprintf("share-%d", i), "kind", "share"), true
		d.AllowMultipleAllocations = &yes
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("20Gi")}}
		devices = append(devices, d)
	}
	slice := newSlice("share.example.com", node, "", 1, devices...)
	slice.Spec.NodeName = &node
	c.slice(slice)
}

// network publishes devices that several nodes can use.
func (c *testCluster) network(pool string, count int) {
	var devices []resourcev1.Device
	for i := range count {
		devices = append(devices, device(fmt.Sprintf("net-%d", i), "kind", "net"))
	}
	slice, yes := newSlice("net.example.com", pool, "", 1, devices...), true
	if c.chance(50) {
		slice.Spec.AllNodes = &yes
	} else {
		slice.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
		}}}
	}
	c.slice(slice)
}

// sharedName is that of pools of several nodes.
const sharedName = "rail"

// rails publishes a pool of the same name on each node. On some of them it is not
// complete, or has another generation, and devices may have the names of those of others.
func (c *testCluster) rails(nodes int) {
	for i := range nodes {
		node := fmt.Sprintf("node-%03d", i)
		prefix := []string{"", "", node + "-"}[c.random.IntN(3)]
		var devices []resourcev1.Device
		for j := range 1 + c.random.IntN(3) {
			devices = append(devices, device(fmt.Sprintf("%snet-%d", prefix, j), "kind", "net"))
		}
		slice := newSlice("net.example.com", sharedName, "-"+node, int64(1+c.random.IntN(10)/8), devices...)
		slice.Spec.NodeName, slice.Spec.Pool.Generation = &node, int64(1+c.random.IntN(2))
		c.slice(slice)
	}
}

func (c *testCluster) rule(name string, selector resourcev1.DeviceTaintSelector) {
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}}
	rule.Spec = resourcev1.DeviceTaintRuleSpec{DeviceSelector: &selector, Taint: resourcev1.DeviceTaint{Key: "example.com/drain", Effect: resourcev1.DeviceTaintEffectNoExecute}}
	c.rules = append(c.rules, rule)
	c.inventory.ApplyRule(name, rule.DeepCopy())
}

// randomCluster has so many nodes with pools of all kinds, classes, templates, and
// claims that hold devices.
func randomCluster(t testing.TB, seed uint64, nodes int) *testCluster {
	t.Helper()
	c := newTestCluster(t, seed)
	for _, kind := range []string{"gpu", "nic", "part", "share", "net"} {
		c.class(kind, fmt.Sprintf(`device.driver == "%[1]s.example.com" && device.attributes["%[1]s.example.com"].kind == "%[1]s"`, kind))
	}
	sizes := []int{1, 2, 4, 8}
	for i := range nodes {
		name := fmt.Sprintf("node-%03d", i)
		c.node(name, map[string]string{"zone": []string{"a", "b"}[c.random.IntN(2)]})
		if c.chance(80) {
			c.gpus(name, sizes[c.random.IntN(4)])
		}
		if c.chance(50) {
			c.nics(name, 1+c.random.IntN(3))
		}
		if c.chance(40) {
			c.partitions(name, 1+c.random.IntN(2))
		}
		if c.chance(30) {
			c.shares(name, 1+c.random.IntN(2))
		}
	}
	if c.chance(50) {
		c.network("fabric", 1+c.random.IntN(6))
	}
	if c.chance(40) {
		driver, pool, name := "gpu.example.com", fmt.Sprintf("node-%03d", c.random.IntN(nodes)), "gpu-0"
		c.rule("drain", resourcev1.DeviceTaintSelector{Driver: &driver, Pool: &pool, Device: &name})
	}
	for range nodes {
		spec := c.randomSpec()
		c.hold(spec, c.nodes[c.random.IntN(nodes)])
	}
	for i := range 6 {
		c.template(fmt.Sprintf("template-%d", i), c.randomSpec())
	}
	return c
}

// randomSpec is what a claim may request.
func (c *testCluster) randomSpec() resourcev1.ResourceClaimSpec {
	count := []int64{1, 2, 3, 4, 8}[c.random.IntN(5)]
	spec := resourcev1.ResourceClaimSpec{}
	add := func(name, class string, count int64) *resourcev1.ExactDeviceRequest {
		exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
		spec.Devices.Requests = append(spec.Devices.Requests, resourcev1.DeviceRequest{Name: name, Exactly: exactly})
		return exactly
	}
	selector := func(expression string) []resourcev1.DeviceSelector {
		return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	}
	switch c.random.IntN(11) {
	case 0, 1:
		add("gpus", "gpu", count)
	case 2:
		add("gpus", "gpu", min(count, 2)).Selectors = selector(`device.attributes["gpu.example.com"].model == "big"`)
	case 3:
		add("gpus", "gpu", count).Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	case 4: // a GPU and an adapter that are near each other
		add("gpu", "gpu", 1)
		add("nic", "nic", 1)
		attribute := resourcev1.FullyQualifiedName(root)
		spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &attribute}}
	case 5:
		size := []string{"whole", "half", "quarter"}[c.random.IntN(3)]
		add("part", "part", min(count, 3)).Selectors = selector(fmt.Sprintf(`device.attributes["part.example.com"].size == %q`, size))
	case 6:
		add("parts", "part", min(count, 3))
	case 7:
		add("share", "share", 1).Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
			"memory": resource.MustParse(fmt.Sprintf("%dGi", []int{5, 7, 20}[c.random.IntN(3)])),
		}}
	case 8:
		add("net", "net", 1)
		add("gpu", "gpu", 1)
	case 9: // all GPUs of a node
		add("gpus", "gpu", 0).AllocationMode = resourcev1.DeviceAllocationModeAll
	default:
		spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "any", FirstAvailable: []resourcev1.DeviceSubRequest{
			{Name: "gpus", DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 4},
			{Name: "parts", DeviceClassName: "part", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}
	}
	return spec
}

func (c *testCluster) template(name string, spec resourcev1.ResourceClaimSpec) {
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	template.Spec.Spec = spec
	c.inventory.ApplyTemplate("team", name, template)
}

// hold has a claim hold devices of a node, if it can.
func (c *testCluster) hold(spec resourcev1.ResourceClaimSpec, node *corev1.Node) {
	if result := c.allocate(spec, node); result != nil {
		c.record(spec, *result)
	}
}

// record adds an allocated claim.
func (c *testCluster) record(spec resourcev1.ResourceClaimSpec, result resourcev1.AllocationResult) {
	c.made++
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("claim-%d", c.made)}, Spec: spec}
	claim.Status.Allocation = &result
	c.allocated = append(c.allocated, result)
	c.inventory.ApplyClaim("team", claim.Name, claim)
}

// allocate has upstream's allocator, given the objects, allocate on a node.
func (c *testCluster) allocate(spec resourcev1.ResourceClaimSpec, node *corev1.Node) *resourcev1.AllocationResult {
	c.t.Helper()
	if results := c.allocateTogether(node, spec); results != nil {
		return &results[0]
	}
	return nil
}

// allocateTogether is allocate for all claims of a pod.
func (c *testCluster) allocateTogether(node *corev1.Node, specs ...resourcev1.ResourceClaimSpec) []resourcev1.AllocationResult {
	c.t.Helper()
	state := structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	for _, allocation := range c.allocated {
		for _, r := range allocation.Devices.Results {
			id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
			if r.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
			state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		}
	}
	features := structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, ListTypeAttributes: true,
		PartitionableDevices: true, PrioritizedList: true,
	}
	allocator, err := structured.NewAllocator(context.Background(), features, state, lister{c}, c.published(node), c.compiled)
	if err != nil {
		c.t.Fatal(err)
	}
	var claims []*resourcev1.ResourceClaim
	for _, spec := range specs {
		claims = append(claims, &resourcev1.ResourceClaim{Spec: spec})
	}
	results, err := allocator.Allocate(context.Background(), node, claims)
	if err != nil {
		return nil
	}
	return results
}

// published are the slices that may concern a node, with the taints of rules.
func (c *testCluster) published(node *corev1.Node) []*resourcev1.ResourceSlice {
	var all []*resourcev1.ResourceSlice
	for _, slice := range c.slices {
		if slice.Spec.NodeName != nil && *slice.Spec.NodeName != node.Name && slice.Spec.Pool.Name != sharedName {
			continue
		}
		slice = slice.DeepCopy()
		for _, rule := range c.rules {
			if selector := rule.Spec.DeviceSelector; *selector.Driver == slice.Spec.Driver && *selector.Pool == slice.Spec.Pool.Name {
				for i := range slice.Spec.Devices {
					if device := &slice.Spec.Devices[i]; device.Name == *selector.Device {
						device.Taints = append(device.Taints, rule.Spec.Taint)
					}
				}
			}
		}
		all = append(all, slice)
	}
	return all
}

type lister struct{ *testCluster }

func (l lister) List() ([]*resourcev1.DeviceClass, error) { return l.classes, nil }

func (l lister) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, class := range l.classes {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourcev1.Resource("deviceclasses"), name)
}
