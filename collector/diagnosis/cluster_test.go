package diagnosis

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

const testNamespace = "team"

// testCluster is a cluster of objects as the API server has them. Its diagnoses
// through an inventory can be compared with what upstream's allocator does with
// the objects themselves.
type testCluster struct {
	t         testing.TB
	inventory *inventory.Inventory
	nodes     []*corev1.Node
	classes   []*resourcev1.DeviceClass
	slices    []*resourcev1.ResourceSlice
	rules     []*resourcev1.DeviceTaintRule
	claims    []*resourcev1.ResourceClaim
}

func newTestCluster(t testing.TB) *testCluster { return &testCluster{t: t, inventory: inventory.New()} }

// diagnoser returns one whose searches reach no limit on a busy machine.
func (w *testCluster) diagnoser() *Diagnoser {
	diagnoser := New(Options{Inventory: w.inventory, Clock: clock.System(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Budget: 1})
	diagnoser.searchLimit = time.Minute
	return diagnoser
}

func (w *testCluster) node(name string, labels map[string]string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	w.nodes = append(w.nodes, node)
	w.inventory.ApplyNode(name, node.DeepCopy())
}

func (w *testCluster) class(name string, expressions ...string) *resourcev1.DeviceClass {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.Selectors = selectors(expressions...)
	w.classes = append(w.classes, class)
	w.inventory.ApplyClass(name, class.DeepCopy())
	return class
}

func selectors(expressions ...string) []resourcev1.DeviceSelector {
	var all []resourcev1.DeviceSelector
	for _, expression := range expressions {
		all = append(all, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	return all
}

func (w *testCluster) slice(slice *resourcev1.ResourceSlice) {
	w.slices = append(w.slices, slice)
	w.inventory.ApplySlice(slice.Name, slice.DeepCopy())
}

// pool publishes devices of one node in one slice.
func (w *testCluster) pool(driver, node string, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	slice := newSlice(driver, node, devices...)
	slice.Spec.NodeName = &node
	w.slice(slice)
	return slice
}

func newSlice(driver, pool string, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: driver + "-" + pool},
		Spec: resourcev1.ResourceSliceSpec{
			Driver:  driver,
			Pool:    resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
			Devices: devices,
		},
	}
}

// device makes a device with attributes in pairs of name and value: strings,
// ints and bools.
func device(name string, attributes ...any) resourcev1.Device {
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
	for i := 0; i < len(attributes); i += 2 {
		var value resourcev1.DeviceAttribute
		switch v := attributes[i+1].(type) {
		case string:
			value.StringValue = &v
		case int:
			n := int64(v)
			value.IntValue = &n
		case bool:
			value.BoolValue = &v
		}
		d.Attributes[resourcev1.QualifiedName(attributes[i].(string))] = value
	}
	return d
}

func devicesNamed(n int, attributes ...any) []resourcev1.Device {
	var all []resourcev1.Device
	for i := range n {
		all = append(all, device(fmt.Sprintf("dev-%d", i), attributes...))
	}
	return all
}

func tainted(d resourcev1.Device, key string, effect resourcev1.DeviceTaintEffect) resourcev1.Device {
	d.Taints = append(d.Taints, resourcev1.DeviceTaint{Key: key, Effect: effect})
	return d
}

// shared makes a device that several claims may use, with so much memory.
func shared(name, memory string, attributes ...any) resourcev1.Device {
	d, yes := device(name, attributes...), true
	d.AllowMultipleAllocations = &yes
	d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}}
	return d
}

func (w *testCluster) rule(name, key string, effect resourcev1.DeviceTaintEffect, selector resourcev1.DeviceTaintSelector) {
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}}
	rule.Spec = resourcev1.DeviceTaintRuleSpec{DeviceSelector: &selector, Taint: resourcev1.DeviceTaint{Key: key, Effect: effect}}
	w.rules = append(w.rules, rule)
	w.inventory.ApplyRule(name, rule.DeepCopy())
}

// deviceRequest requests so many devices of class gpu; 0: for all.
func deviceRequest(name string, count int64, expressions ...string) resourcev1.DeviceRequest {
	exactly := &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu", Selectors: selectors(expressions...),
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
	}
	if count == 0 {
		exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
	}
	return resourcev1.DeviceRequest{Name: name, Exactly: exactly}
}

// either requests one of several alternatives; each is made by deviceRequest.
func either(name string, alternatives ...resourcev1.DeviceRequest) resourcev1.DeviceRequest {
	list := resourcev1.DeviceRequest{Name: name}
	for _, a := range alternatives {
		list.FirstAvailable = append(list.FirstAvailable, resourcev1.DeviceSubRequest{
			Name: a.Name, DeviceClassName: a.Exactly.DeviceClassName, Selectors: a.Exactly.Selectors,
			AllocationMode: a.Exactly.AllocationMode, Count: a.Exactly.Count,
			Tolerations: a.Exactly.Tolerations, Capacity: a.Exactly.Capacity,
		})
	}
	return list
}

func matchAttribute(name string, requests ...string) resourcev1.DeviceConstraint {
	attribute := resourcev1.FullyQualifiedName(name)
	return resourcev1.DeviceConstraint{MatchAttribute: &attribute, Requests: requests}
}

func spec(requests ...resourcev1.DeviceRequest) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}}
}

func (w *testCluster) claim(name string, spec resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name}, Spec: spec}
	w.claims = append(w.claims, claim)
	w.inventory.ApplyClaim(testNamespace, name, claim.DeepCopy())
	return claim
}

// allocate runs upstream's allocator for the claim on the node, and reports
// whether it succeeded.
func (w *testCluster) allocate(claim *resourcev1.ResourceClaim, node string) bool {
	w.t.Helper()
	results, err := w.allocator().Allocate(context.Background(), w.nodeNamed(node), []*resourcev1.ResourceClaim{claim})
	if err != nil || results == nil {
		return false
	}
	claim.Status.Allocation = &results[0]
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod-of-" + claim.Name, UID: "uid"}}
	w.inventory.ApplyClaim(testNamespace, claim.Name, claim.DeepCopy())
	return true
}

// hold has a claim of this name hold one device on the node.
func (w *testCluster) hold(name, node string, expressions ...string) {
	w.t.Helper()
	if !w.allocate(w.claim(name, spec(deviceRequest("main", 1, expressions...))), node) {
		w.t.Fatalf("claim %s cannot be allocated on %s", name, node)
	}
}

func (w *testCluster) nodeNamed(name string) *corev1.Node {
	for _, node := range w.nodes {
		if node.Name == name {
			return node
		}
	}
	w.t.Fatalf("no node %s", name)
	return nil
}

// question returns a question about the claims by name, each with a reference
// of the same name.
func question(claims ...string) dra.Question {
	q := dra.Question{Pod: dra.PodRef{Namespace: testNamespace, Name: "pod"}, PodUID: "pod-uid"}
	for _, claim := range claims {
		q.Refs = append(q.Refs, dra.PendingRef{PodClaim: claim, Claim: claim})
	}
	return q
}

// allocator is upstream's over all objects.
func (w *testCluster) allocator() structured.Allocator {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range w.claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case result.AdminAccess != nil && *result.AdminAccess:
			case result.ShareID != nil:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			default:
				state.AllocatedDevices.Insert(id)
			}
		}
	}
	allocator, err := structured.NewAllocator(context.Background(), allocator.Features(), state, lister{w}, w.ruled(), allocator.NewCache())
	if err != nil {
		w.t.Fatal(err)
	}
	return allocator
}

// ruled are the slices with the taints of rules on their devices.
func (w *testCluster) ruled() []*resourcev1.ResourceSlice {
	var all []*resourcev1.ResourceSlice
	for _, slice := range w.slices {
		slice = slice.DeepCopy()
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			for _, rule := range w.rules {
				s := rule.Spec.DeviceSelector
				if matches(s.Driver, slice.Spec.Driver) && matches(s.Pool, slice.Spec.Pool.Name) && matches(s.Device, d.Name) {
					d.Taints = append(d.Taints, rule.Spec.Taint)
				}
			}
		}
		all = append(all, slice)
	}
	return all
}

func matches(want *string, is string) bool { return want == nil || *want == is }

// lister has the classes of the cluster for the allocator.
type lister struct{ cluster *testCluster }

func (l lister) List() ([]*resourcev1.DeviceClass, error) { return l.cluster.classes, nil }

func (l lister) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, class := range l.cluster.classes {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("no class %s", name)
}
