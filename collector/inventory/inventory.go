// Package inventory indexes the devices that are published in the cluster, their
// allocations, and the device classes. It counts the devices that are free, and
// those that each stage of a request leaves. collector/diagnosis finds out why a
// claim cannot be allocated.
//
// The rules are those of the scheduler's allocator (package structured of
// k8s.io/dynamic-resource-allocation), with all of its features: of the slices of
// a pool that a node can use the newest generation counts, nothing can be
// allocated from a pool that is incomplete or invalid, counters are consumed once,
// admin access consumes nothing, and a selector that fails for a device ends the
// allocation.
//
// The stages, each with a file and a type of its own, in the direction of the
// data:
//
//	textTable, internPool    equal texts and values are kept once
//	nodeIndex                nodes, and from which of them devices can be used
//	capacityIndex            what nodes have for pods besides devices
//	deviceStore, sliceStore  published slices in a compact form, in blocks of 64 devices
//	claimStore, taintRules   allocations; what claims and templates request; DeviceTaintRules
//	views                    what nodes see of a pool
//	poolStore                per pool: what is allocated, tainted, left of counters and capacity
//	shapeIndex               blocks whose devices are the same to selectors
//	selectorStore            CEL expressions with their results for each shape of blocks
//	classStore               device classes, and how many devices of each pool they select
//	requestQuery             what each stage leaves of all devices for one request, and why
//	countStore               counts, for requests whose selectors match the same devices
//	Inventory                the lock, the version and the exported methods
//
// Returned values are shared and must not be changed.
package inventory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// poolsPerUpdate is how many pools are updated under the lock at once.
const poolsPerUpdate = 256

// Inventory is safe for concurrent use. The lock is never held for more than a
// few milliseconds: CEL runs without it.
type Inventory struct {
	mu sync.Mutex // guards the rest

	version  uint64 // grows with every change that an answer can depend on
	reshaped uint64 // version at which devices, classes or nodes last changed, not only what is allocated or tainted

	texts      *textTable
	nodes      *nodeIndex
	devices    *deviceStore
	slices     *sliceStore
	specs      *specStore
	claims     *claimStore
	rules      taintRules
	pools      *poolStore
	selectors  *selectorStore
	classes    *classStore
	counts     countStore
	capacities *capacityIndex
	supply     *dra.Supply // the last one

	classesVersion uint64 // grows with every change of a class

	evictions    []dra.RuleEviction
	broadRules   []dra.BroadRule
	rulesChanged bool // since these were computed
}

// New returns an empty inventory.
func New() *Inventory {
	inv := &Inventory{texts: newTextTable(), nodes: newNodeIndex(), specs: newSpecStore(), rules: taintRules{}, capacities: newCapacityIndex()}
	inv.devices = newDeviceStore(inv.texts)
	inv.pools = newPoolStore(inv.devices)
	inv.slices = newSliceStore(inv.devices, inv.nodes)
	inv.claims = newClaimStore(inv.specs)
	inv.selectors = newSelectorStore(inv.devices)
	inv.classes = newClassStore(inv.selectors)
	return inv
}

// Version grows with every change that an answer can depend on.
func (inv *Inventory) Version() uint64 {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.version
}

// ApplySlice applies the present state of a slice; nil: it is gone.
func (inv *Inventory) ApplySlice(name string, published *resourcev1.ResourceSlice) {
	var packed []byte
	if published != nil {
		var err error
		if packed, err = pack(published); err != nil {
			published = nil // it did not come from the API server
		}
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	old := inv.slices.get(name)
	if old != nil && published != nil && bytes.Equal(old.packed, packed) {
		return // only its metadata has changed
	}
	inv.version++
	if published != nil {
		pool := inv.pools.get(published.Spec.Driver, published.Spec.Pool.Name)
		made, reshaped := inv.slices.put(name, &pool.id, published, packed)
		inv.pools.addSlice(made, inv.version)
		if reshaped {
			inv.reshaped = inv.version
		}
	} else if old != nil {
		inv.reshaped = inv.version
	}
	if old != nil {
		inv.pools.removeSlice(old, inv.version)
		inv.slices.release(old)
	}
	if inv.texts.sweepIfSparse() {
		inv.selectors.clearMemos()
	}
}

// ApplyClaim applies the present state of a claim; nil: it is gone.
func (inv *Inventory) ApplyClaim(namespace, name string, published *resourcev1.ResourceClaim) {
	var requested *measuredSpec
	if published != nil {
		// Of allocated claims, specifications are kept where they cost nothing.
		measured, err := measure(namespace, &published.Spec)
		if err == nil && (published.Status.Allocation == nil || measured.refused == "" && measured.namespace == "") {
			requested = &measured
		}
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	ended, begun := inv.claims.set(dra.ClaimRef{Namespace: namespace, Name: name}, published, requested)
	if ended != nil && ended.allocated {
		inv.version++
		inv.pools.release(ended, inv.version)
	}
	if begun != nil && begun.allocated {
		inv.version++
		inv.pools.allocate(begun, inv.version)
	}
}

// ApplyTemplate applies the present state of a template; nil: it is gone.
func (inv *Inventory) ApplyTemplate(namespace, name string, published *resourcev1.ResourceClaimTemplate) {
	var requested *measuredSpec
	if published != nil {
		if measured, err := measure(namespace, &published.Spec.Spec); err == nil {
			requested = &measured
		}
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.claims.setTemplate(dra.ClaimRef{Namespace: namespace, Name: name}, requested)
}

// ApplyClass applies the present state of a device class; nil: it is gone.
func (inv *Inventory) ApplyClass(name string, published *resourcev1.DeviceClass) {
	var compiled []*selector
	if published != nil {
		compiled, _ = inv.compile(context.Background(), nil, published.Spec.Selectors)
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if inv.classes.set(name, published, compiled) {
		inv.version++
		inv.reshaped = inv.version
		inv.classesVersion++
	}
}

// ApplyRule applies the present state of a DeviceTaintRule; nil: it is gone.
func (inv *Inventory) ApplyRule(name string, published *resourcev1.DeviceTaintRule) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.rulesChanged = true
	if old, changed := inv.rules.set(name, published); changed {
		inv.version++
		inv.pools.markSelectedChanged(inv.version, old, published)
	}
}

// ApplyNode applies the present state of a node; nil: it is gone.
func (inv *Inventory) ApplyNode(name string, published *corev1.Node) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.capacities.setNode(name, published)
	if inv.nodes.set(name, published) {
		inv.version++
		inv.reshaped = inv.version
		inv.pools.markSelectionsChanged(inv.version, inv.nodes.optionalFor(name))
		inv.pools.markBroadChanged(inv.version, maps.Keys(inv.nodes.broad))
	}
	if inv.nodes.setState(name, published) {
		inv.version++
		inv.pools.markSelectionsChanged(inv.version, inv.nodes.selecting(name))
	}
}

// Spec returns the specification of a claim, or that of a template if the claim is "". If
// the specification is not kept, it is nil, and the refusal is the reason in one
// sentence. If the claim or template is not known, both are empty.
func (inv *Inventory) Spec(namespace, claim, template string) (spec *resourcev1.ResourceClaimSpec, refusal string) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if found := inv.claims.requested(namespace, claim, template); found != nil {
		return found.spec, found.refusal()
	}
	return nil, ""
}

// Templates returns the names of a namespace's ResourceClaimTemplates, sorted.
func (inv *Inventory) Templates(namespace string) []string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	var names []string
	for ref := range inv.claims.templates {
		if ref.Namespace == namespace {
			names = append(names, ref.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Allocation returns the allocation of a claim, and false if the claim is not
// allocated.
func (inv *Inventory) Allocation(namespace, name string) (AllocatedClaim, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.claims.allocation(dra.ClaimRef{Namespace: namespace, Name: name})
}

// Nodes returns the names of all nodes, sorted. If nodes cannot be read, it
// returns those that slices name.
func (inv *Inventory) Nodes() []string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.nodes.names()
}

// ClassFor returns the class by which an extended resource is allocated, and
// false if there is none.
func (inv *Inventory) ClassFor(extendedResource string) (*resourcev1.DeviceClass, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	found := inv.classes.forExtendedResource(extendedResource)
	return found, found != nil
}

// Classes lists the device classes for upstream's allocator.
func (inv *Inventory) Classes() structured.DeviceClassLister { return classLister{inv} }

type classLister struct{ inv *Inventory }

// List returns all classes, sorted by name.
func (l classLister) List() ([]*resourcev1.DeviceClass, error) {
	l.inv.mu.Lock()
	defer l.inv.mu.Unlock()
	var all []*resourcev1.DeviceClass
	for _, name := range l.inv.classes.names() {
		all = append(all, l.inv.classes.get(name))
	}
	return all, nil
}

// Get returns the class of that name, or an error that says "not found".
func (l classLister) Get(name string) (*resourcev1.DeviceClass, error) {
	l.inv.mu.Lock()
	defer l.inv.mu.Unlock()
	found := l.inv.classes.get(name)
	if found == nil {
		return nil, fmt.Errorf("get device class: %w", apierrors.NewNotFound(resourcev1.Resource("deviceclasses"), name))
	}
	return found, nil
}

// EvaluateRequest evaluates the selectors of a request: those of its class, then
// its own, each for the devices that all before it select. It returns early with
// the error of the pause, or with ErrSlowEvaluation.
func (inv *Inventory) EvaluateRequest(ctx context.Context, pause Pause, request Request) error {
	compiled, err := inv.compile(ctx, pause, request.Selectors)
	if err != nil {
		return err
	}
	inv.mu.Lock()
	class, ok := inv.classes.classSelectors(request.Class)
	selectors := inv.selectors.add(compiled)
	inv.mu.Unlock()
	if !ok {
		return nil // a class that does not exist selects nothing
	}
	return inv.evaluate(ctx, pause, slices.Concat(class, selectors))
}

// EvaluateClasses evaluates the selectors of all classes, so that the next Supply counts
// them all. It returns early with the error of the pause. A class with a
// selector that reaches EvaluationLimit is left out; the error is then
// ErrSlowEvaluation.
func (inv *Inventory) EvaluateClasses(ctx context.Context, pause Pause) error {
	inv.mu.Lock()
	chains := inv.classes.unevaluated(&inv.slices.blocks)
	inv.mu.Unlock()
	var slow error
	for _, chain := range chains {
		err := inv.evaluate(ctx, pause, chain)
		switch {
		case errors.Is(err, ErrSlowEvaluation):
			slow = err
		case err != nil:
			return err
		}
	}
	return slow
}

// compile returns the selectors with the expressions, and compiles those that
// are not known yet, without the lock.
func (inv *Inventory) compile(ctx context.Context, pause Pause, published []resourcev1.DeviceSelector) ([]*selector, error) {
	compiled := make([]*selector, len(published))
	for i := range published {
		expression := celExpression(&published[i])
		inv.mu.Lock()
		compiled[i] = inv.selectors.get(expression)
		inv.mu.Unlock()
		if compiled[i] != nil {
			continue
		}
		if err := pause.call(ctx); err != nil {
			return nil, err
		}
		compiled[i] = newSelector(expression)
	}
	return compiled, nil
}

// evaluate evaluates selectors, one after the other, for the devices that those
// before select, unless they have results.
func (inv *Inventory) evaluate(ctx context.Context, pause Pause, chain []*selector) error {
	for upTo := uint64(0); ; {
		inv.mu.Lock()
		next := inv.selectors.nextBatch(chain, &inv.slices.blocks, upTo)
		inv.mu.Unlock()
		if next.done {
			return nil
		}
		upTo = next.upTo
		outcomes, err := next.run(ctx, pause)
		inv.mu.Lock()
		inv.selectors.record(next, outcomes)
		inv.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// lockUpdated takes the lock with all pools up to date. Most of them are updated
// a few at a time, between which others can take it.
func (inv *Inventory) lockUpdated() {
	for more := true; more; {
		inv.mu.Lock()
		more = inv.pools.update(inv.rules, inv.nodes, poolsPerUpdate)
		inv.mu.Unlock()
	}
	inv.mu.Lock()
	inv.pools.update(inv.rules, inv.nodes, -1) // what has changed since
}

// lockedQuery takes the lock, under which the query can be used. Selectors that
// have not been compiled are compiled before.
func (inv *Inventory) lockedQuery(request *Request) *requestQuery {
	compiled, _ := inv.compile(context.Background(), nil, request.Selectors)
	inv.lockUpdated()
	return inv.query(request, inv.selectors.add(compiled))
}

func (inv *Inventory) query(request *Request, selectors []*selector) *requestQuery {
	q := &requestQuery{pools: inv.pools, nodes: inv.nodes, devices: inv.devices, selectors: inv.selectors, request: request, own: selectors}
	q.class, q.classExists = inv.classes.classSelectors(request.Class)
	return q
}

// Count counts what each stage leaves of all devices for a request, as far as
// its selectors have been evaluated.
func (inv *Inventory) Count(request Request) Count {
	q := inv.lockedQuery(&request)
	key, keyed := inv.counts.key(q)
	if keyed {
		if known, kept := inv.counts.get(inv.version, key); kept {
			inv.mu.Unlock()
			return known
		}
	}
	count, failures := q.count()
	if keyed && count.Failed == 0 {
		inv.counts.keep(key, count)
	}
	inv.mu.Unlock()
	count.Failures = evaluateFailures(failures)
	return count
}

// MostOnNode returns the largest number of devices that a request selects on one
// node. Allocated and tainted devices count too.
func (inv Overview) MostOnNode(request Request) int {
	q := inv.lockedQuery(&request)
	defer inv.mu.Unlock()
	selected := q.nodes.bySelection()
	for _, p := range q.pools.all() {
		for _, b := range p.blocks {
			selected.add(b, q.stages(p, b).left[dra.StageSelectors])
		}
	}
	most := 0
	for _, node := range q.nodes.count(selected) {
		most = max(most, node.Devices)
	}
	return most
}

// Explain returns why each stage removes devices for a request, and which
// claims hold them. The selectors must have been evaluated.
func (inv *Inventory) Explain(request Request, limits ExplanationLimits) Explanation {
	q := inv.lockedQuery(&request)
	defer inv.mu.Unlock()
	return q.explain(limits)
}

// ChangedFor reports whether what Count and the allocator say about the request
// may have changed since a version: devices, classes or nodes have changed, or
// what is allocated, tainted or consumed of a pool with a device for the
// request. It is also true if that is not known, because selectors have
// been evicted.
func (inv *Inventory) ChangedFor(request Request, version uint64) bool {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if inv.version <= version {
		return false
	}
	selectors, ok := inv.selectors.known(request.Selectors)
	q := inv.query(&request, selectors)
	switch {
	case inv.reshaped > version:
		return true
	case !q.classExists:
		return false // nothing can be allocated while the class does not exist
	case !ok:
		return true
	}
	return q.changedSince(version)
}

// Supply returns the published devices and how many of them are free. It is cheap
// if little has changed since the last call. Classes whose selectors have not been
// evaluated for all devices, which EvaluateClasses does, are marked as not counted.
func (inv *Inventory) Supply() *dra.Supply {
	inv.lockUpdated()
	defer inv.mu.Unlock()
	countsChanged := inv.classes.count(inv.pools, &inv.slices.blocks)
	oversized := inv.specs.oversized()
	if inv.rulesChanged {
		inv.rulesChanged, inv.evictions, inv.broadRules = false, inv.rules.evictions(), inv.rules.broad()
	}
	if inv.supply != nil && inv.supply.Version == inv.version && !countsChanged && maps.Equal(inv.supply.Oversized, oversized) &&
		slices.Equal(inv.supply.Evictions, inv.evictions) {
		return inv.supply
	}
	made := &dra.Supply{Version: inv.version, Oversized: oversized, Classes: inv.classes.supplies(), Evictions: inv.evictions, BroadRules: inv.broadRules}
	inv.pools.addTo(made)
	inv.supply = made
	return made
}

// NodeSupply is what upstream's allocator needs to know for one node.
type NodeSupply struct {
	Node *corev1.Node // with labels and declared features alone
	// Slices are the slices of all pools with a device that the node can use,
	// with the taints of rules. Slices for other nodes are among them if they
	// count for this one.
	Slices []*resourcev1.ResourceSlice
	// Allocated is what is allocated of those pools.
	Allocated structured.AllocatedState
}

// NodeSupply returns what upstream's allocator needs for a node, and false for a
// node that does not exist. A slice that cannot be unpacked is an error.
func (inv *Inventory) NodeSupply(name string) (NodeSupply, bool, error) {
	type packedSlice struct {
		*slice
		rules    []taintRule
		unpacked *resourcev1.ResourceSlice // nil: it has to be unpacked
	}
	inv.lockUpdated()
	if !inv.nodes.exists(name) {
		inv.mu.Unlock()
		return NodeSupply{}, false, nil
	}
	made := NodeSupply{Node: inv.nodes.get(name), Allocated: structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}}
	var found []packedSlice
	for _, p := range inv.pools.withSelections(inv.nodes.selecting(name)) {
		v := p.views.onNode(name)
		if v == nil {
			continue
		}
		p.addAllocated(&made.Allocated)
		for _, s := range v.decisive() {
			found = append(found, packedSlice{s, p.rules, inv.slices.unpackedSlice(s)})
		}
	}
	inv.mu.Unlock()
	for _, s := range found {
		if s.unpacked == nil {
			var err error
			if s.unpacked, err = unpack(s.packed); err != nil {
				return NodeSupply{}, true, err
			}
			inv.mu.Lock()
			inv.slices.keepUnpacked(s.slice, s.unpacked)
			inv.mu.Unlock()
		}
		made.Slices = append(made.Slices, addTaints(s.unpacked, s.rules))
	}
	return made, true, nil
}
