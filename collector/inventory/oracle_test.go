package inventory

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func allFeatures() structured.Features {
	return structured.Features{AdminAccess: true, CompatibilityGroups: true, ConsumableCapacity: true, DerivedAttributes: true,
		DeviceBindingAndStatus: true, DeviceTaints: true, FractionalCapacityRange: true, ListTypeAttributes: true,
		OptionalNodeOperations: true, PartitionableDevices: true, PrioritizedList: true}
}

// oracle is upstream's allocator over everything there is. Each node has its own: an
// allocator keeps the counters of a pool for all nodes. Which slice it asks how many the
// pool has depends on their order, which the informer does not define: there is one for
// each of two orders, and only what both give is certain.
type oracle struct {
	t         testing.TB
	allocator func(reverse bool) structured.Allocator
	byNode    map[string][2]structured.Allocator
	nodes     map[string]*corev1.Node
}

func (w *testCluster) oracle() *oracle { return newOracle(w, w.patched(), w.allocated()) }

func newOracle(w *testCluster, all []*resourcev1.ResourceSlice, allocated structured.AllocatedState) *oracle {
	cache := dracel.NewCache(100, dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	made := func(reverse bool) structured.Allocator {
		ordered := slices.SortedFunc(slices.Values(all), func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
		if reverse {
			slices.Reverse(ordered)
		}
		allocator, err := structured.NewAllocator(w.t.Context(), allFeatures(), allocated, w.inv.Classes(), ordered, cache)
		if err != nil {
			w.t.Fatal(err)
		}
		return allocator
	}
	return &oracle{t: w.t, allocator: made, byNode: map[string][2]structured.Allocator{}, nodes: w.nodes}
}

// takes reports whether the allocator gives the request exactly that device on the
// node.
func (o *oracle) takes(request resourcev1.ExactDeviceRequest, node, driver string, id int64) bool {
	request.Selectors = append(request.Selectors[:len(request.Selectors):len(request.Selectors)],
		selectors(fmt.Sprintf(`device.driver == %q && device.attributes[%q].id == %d`, driver, driver, id))...)
	request.AllocationMode, request.Count = resourcev1.DeviceAllocationModeExactCount, 1
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "requesting"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "main", Exactly: &request}}
	if _, ok := o.byNode[node]; !ok {
		o.byNode[node] = [2]structured.Allocator{o.allocator(false), o.allocator(true)}
	}
	for _, allocator := range o.byNode[node] {
		got, err := allocator.Allocate(o.t.Context(), o.nodes[node], []*resourcev1.ResourceClaim{claim})
		if err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode) {
			o.t.Fatalf("allocate %d on %s: %v", id, node, err)
		}
		if len(got) != 1 {
			return false
		}
	}
	return true
}

// oracleRequests differ in all that is checked for each device alone.
func oracleRequests() map[string]resourcev1.ExactDeviceRequest {
	exists := []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists, Key: "unhealthy"}}
	amountOf := func(capacity resourcev1.QualifiedName, amount string) *resourcev1.CapacityRequirements {
		return &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{capacity: resource.MustParse(amount)}}
	}
	memory := func(amount string) *resourcev1.CapacityRequirements { return amountOf("memory", amount) }
	return map[string]resourcev1.ExactDeviceRequest{
		"anything":         {DeviceClassName: "any"},
		"one model":        {DeviceClassName: "model-a"},
		"selectors":        {DeviceClassName: "gpu", Selectors: selectors(`device.capacity["gpu.example.com"].memory.compareTo(quantity("15Gi")) > 0`)},
		"tolerates":        {DeviceClassName: "any", Tolerations: exists},
		"a value":          {DeviceClassName: "any", Tolerations: []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpEqual, Key: "drain", Value: "yes"}}},
		"an amount":        {DeviceClassName: "any", Capacity: memory("9Gi")},
		"a bigger one":     {DeviceClassName: "any", Capacity: memory("21Gi")},
		"a small one":      {DeviceClassName: "any", Capacity: memory("500M")},
		"a fraction":       {DeviceClassName: "any", Capacity: amountOf("cores", "1100m")},
		"another capacity": {DeviceClassName: "any", Capacity: amountOf("threads", "1")},
		"admin access":     {DeviceClassName: "any", AdminAccess: new(true), Tolerations: []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}},
	}
}

// nodeCounts sorts counts by node.
func nodeCounts(byNode map[string]int) NodeCounts {
	counts := NodeCounts{}
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		counts = append(counts, NodeCount{node, byNode[node]})
	}
	return counts
}

// counted is what the oracle finds free for a request: in all, and by node.
func (w *testCluster) counted(o *oracle, request resourcev1.ExactDeviceRequest) (free int, spread NodeCounts) {
	byNode := map[string]int{}
	for _, s := range w.slices {
		for i := range s.Spec.Devices {
			somewhere := false
			for node := range w.nodes {
				if o.takes(request, node, s.Spec.Driver, *s.Spec.Devices[i].Attributes["id"].IntValue) {
					byNode[node]++
					somewhere = true
				}
			}
			if somewhere {
				free++
			}
		}
	}
	return free, nodeCounts(byNode)
}

// A device is free exactly if upstream's allocator gives it to a claim that
// selects it alone, on some node.
func TestAgreesWithTheAllocator(t *testing.T) {
	some := map[string]int{}
	for seed := range uint64(24) {
		w := newTestCluster(t, seed)
		w.populate()
		for range w.rng.IntN(10) {
			w.change()
		}
		o := w.oracle()
		for name, exactly := range oracleRequests() {
			request := Exactly(&exactly)
			if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
				t.Fatal(err)
			}
			count := w.inv.Count(request)
			free, spread := w.counted(o, exactly)
			if unreachable := w.unreachable(request); count.Left[dra.StageFree]-unreachable != free || !reflect.DeepEqual(count.Free, spread) {
				t.Errorf("seed %d, %s: %d devices are free on %v (%d are on no node), the allocator takes %d on %v",
					seed, name, count.Left[dra.StageFree], count.Free, unreachable, free, spread)
			}
			some[name] += free
		}
	}
	for name := range oracleRequests() {
		if some[name] == 0 && name != "another capacity" {
			t.Errorf("%s: nothing is ever free: the test shows nothing", name)
		}
	}
}

// unreachable counts free devices that no node reaches: those of a zone where
// no node is.
func (w *testCluster) unreachable(request Request) (n int) {
	q := w.inv.lockedQuery(&request)
	defer w.inv.mu.Unlock()
	for _, p := range q.pools.all() {
		for _, b := range p.blocks {
			for bit := range eachBit(q.stages(p, b).left[dra.StageFree]) {
				selection := b.slice.deviceSelection(b.device(bit))
				if !slices.ContainsFunc(sorted(w.nodes), selection.selects) {
					n++
				}
			}
		}
	}
	return n
}

// What NodeSupply gives is enough for the allocator: it does the same as with all
// that there is.
func TestAllocatorWithSupplyOfNode(t *testing.T) {
	taken, refused := 0, 0
	for seed := range uint64(8) {
		w := newTestCluster(t, seed)
		w.populate()
		whole := w.oracle()
		for node := range w.nodes {
			supply, known, err := w.inv.NodeSupply(node)
			if err != nil || !known {
				t.Fatalf("node %s is known: %v, %v", node, known, err)
			}
			part := newOracle(w, supply.Slices, supply.Allocated)
			part.nodes = map[string]*corev1.Node{node: supply.Node}
			for _, s := range w.slices {
				for i := range s.Spec.Devices {
					id := *s.Spec.Devices[i].Attributes["id"].IntValue
					want := whole.takes(resourcev1.ExactDeviceRequest{DeviceClassName: "any"}, node, s.Spec.Driver, id)
					if got := part.takes(resourcev1.ExactDeviceRequest{DeviceClassName: "any"}, node, s.Spec.Driver, id); got != want {
						t.Errorf("seed %d: device %d on %s is allocated: %v, with all slices: %v", seed, id, node, got, want)
					}
					if want {
						taken++
					} else {
						refused++
					}
				}
			}
		}
	}
	if taken < 50 || refused < 50 {
		t.Errorf("%d taken, %d refused: the test shows nothing", taken, refused)
	}
}

// However a state came about, the supply is the same.
func TestSupplyIsIndependentOfHistory(t *testing.T) {
	for seed := range uint64(15) {
		w := newTestCluster(t, seed)
		w.populate()
		kept := map[poolID]*dra.PoolSupply{}
		for range 30 {
			for range 1 + w.rng.IntN(3) {
				w.change()
			}
			got, want := supplyOf(w.inv), supplyOf(w.rebuilt())
			if supplyOf(w.inv) != got {
				t.Fatal("nothing has changed, and the supply is another")
			}
			compareSupply(t, seed, got, want)
			for _, p := range got.Pools {
				key := poolID{p.Driver, p.Pool}
				if before := kept[key]; before != nil && before != p && reflect.DeepEqual(before, p) {
					t.Fatalf("seed %d: pool %v is made again though nothing is different", seed, key)
				}
				kept[key] = p
			}
			if t.Failed() {
				return
			}
		}
	}
}

func compareSupply(t *testing.T, seed uint64, got, want *dra.Supply) {
	t.Helper()
	for i := range min(len(got.Pools), len(want.Pools)) {
		g, w := *got.Pools[i], *want.Pools[i]
		if g.Slices == 0 { // it remembers where it was
			g.Node, g.Generation, w.Node, w.Generation = "", 0, "", 0
		}
		if !reflect.DeepEqual(g, w) {
			t.Errorf("seed %d: pool\n%+v, from scratch\n%+v", seed, g, w)
		}
	}
	if len(got.Pools) != len(want.Pools) {
		t.Errorf("seed %d: %d pools, from scratch %d", seed, len(got.Pools), len(want.Pools))
	}
	if !reflect.DeepEqual(got.Classes, want.Classes) {
		t.Errorf("seed %d: classes\n%+v, from scratch\n%+v", seed, got.Classes, want.Classes)
	}
	if !reflect.DeepEqual(got.Taints, want.Taints) {
		t.Errorf("seed %d: taints\n%+v, from scratch\n%+v", seed, got.Taints, want.Taints)
	}
	if !reflect.DeepEqual(got.Tainted, want.Tainted) {
		t.Errorf("seed %d: tainted\n%+v, from scratch\n%+v", seed, got.Tainted, want.Tainted)
	}
}
