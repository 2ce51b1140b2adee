package inventory

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// ResourceAmounts are amounts of the resources of a node other than devices.
type ResourceAmounts struct {
	CPU    int64 // millicores
	Memory int64 // bytes
	Pods   int64
}

// NodeCapacity has the facts besides devices that decide whether pods can be bound to a
// node.
type NodeCapacity struct {
	Cordoned  bool
	NotReady  bool
	Taints    []corev1.Taint  // with the effects NoSchedule and NoExecute
	Total     ResourceAmounts // allocatable to pods
	Kept      bool            // an annotation keeps the autoscaler from removing it
	Karpenter bool            // the autoscaler is Karpenter
	Used      ResourceAmounts // requested by the pods that are bound to the node

	others map[string]int64 // allocatable to pods, of other resources
}

// Left is what further pods can request.
func (r *NodeCapacity) Left() ResourceAmounts {
	return ResourceAmounts{CPU: r.Total.CPU - r.Used.CPU, Memory: r.Total.Memory - r.Used.Memory, Pods: r.Total.Pods - r.Used.Pods}
}

// capacityIndex keeps the capacities of nodes, and the resources that pods with claims
// request.
type capacityIndex struct {
	version     uint64 // grows with every change
	nodes       map[string]*NodeCapacity
	used        map[string]ResourceAmounts // by node
	usedOthers  map[nodeResource]int64
	repelled    map[dra.Repelled]int // by how many bound pods
	keeping     map[keepingPods]int  // how many
	tolerations *internPool[[]dra.Toleration]
	pods        map[dra.PodRef]podNeed // that use claims
}

// MostUnits is the largest amount of a resource. Larger amounts count as this
// one.
const MostUnits = 1_000_000_000_000_000

// Units returns an amount that is neither negative nor larger than MostUnits.
func Units(amount *resource.Quantity, scale resource.Scale) int64 {
	if amount.CmpInt64(MostUnits) >= 0 {
		return MostUnits
	}
	return min(max(amount.ScaledValue(scale), 0), MostUnits)
}

// keepingPods are the pods of a node that keep an autoscaler from removing it.
type keepingPods struct {
	node      string
	karpenter bool
	reason    dra.RemovalObstacle
}

// nodeResource is a resource of a node.
type nodeResource struct{ node, resource string }

// podNeed is what a pod that uses claims needs of its node.
type podNeed struct {
	cpu, memory int64
	tolerations *interned[[]dra.Toleration]
}

func newCapacityIndex() *capacityIndex {
	return &capacityIndex{
		nodes: map[string]*NodeCapacity{}, used: map[string]ResourceAmounts{}, usedOthers: map[nodeResource]int64{}, repelled: map[dra.Repelled]int{}, keeping: map[keepingPods]int{},
		tolerations: newInternPool[[]dra.Toleration](), pods: map[dra.PodRef]podNeed{},
	}
}

// setNode applies the present state of a node; nil: it is gone.
func (x *capacityIndex) setNode(name string, published *corev1.Node) {
	if published == nil {
		if x.nodes[name] != nil {
			delete(x.nodes, name)
			x.version++
		}
		return
	}
	_, ok := published.Labels[dra.KarpenterPool]
	kept := published.Annotations[dra.ScaleDownDisabled] == "true"
	if ok {
		kept = published.Annotations[dra.DoNotDisrupt] == "true"
	}
	made := &NodeCapacity{Cordoned: published.Spec.Unschedulable, NotReady: !isReady(published), Kept: kept, Karpenter: ok, Total: ResourceAmounts{
		CPU:    Units(published.Status.Allocatable.Cpu(), resource.Milli),
		Memory: Units(published.Status.Allocatable.Memory(), 0),
		Pods:   Units(published.Status.Allocatable.Pods(), 0),
	}}
	for name, amount := range published.Status.Allocatable {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourcePods && amount.Sign() > 0 {
			if made.others == nil {
				made.others = map[string]int64{}
			}
			made.others[strings.Clone(string(name))] = Units(&amount, 0)
		}
	}
	for _, taint := range published.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute {
			taint.TimeAdded = nil
			made.Taints = append(made.Taints, taint)
		}
	}
	if old := x.nodes[name]; old != nil && old.equal(made) {
		return
	}
	x.nodes[strings.Clone(name)] = made
	x.version++
}

func (r *NodeCapacity) equal(other *NodeCapacity) bool {
	return r.Cordoned == other.Cordoned && r.NotReady == other.NotReady && r.Kept == other.Kept && r.Karpenter == other.Karpenter && r.Total == other.Total && maps.Equal(r.others, other.others) && slices.Equal(r.Taints, other.Taints)
}

// setPod applies a change of what a pod requests; nil: there is no pod, or it takes
// nothing.
func (x *capacityIndex) setPod(previous, updated *dra.PodRequests) {
	x.version++
	x.use(previous, -1)
	x.use(updated, 1)
	if previous != nil && previous.User != nil {
		x.tolerations.release(x.pods[previous.User.Pod].tolerations)
		delete(x.pods, previous.User.Pod)
	}
	if updated != nil && updated.User != nil {
		tolerations := updated.User.Tolerations
		x.pods[updated.User.Pod] = podNeed{
			cpu: updated.CPU, memory: updated.Memory,
			tolerations: x.tolerations.acquire(tolerationsKey(tolerations), func() []dra.Toleration { return tolerations }),
		}
	}
}

// use adds what a pod takes of its node, or removes it.
func (x *capacityIndex) use(requests *dra.PodRequests, sign int64) {
	if requests == nil || requests.Node == "" {
		return
	}
	used := x.used[requests.Node]
	used.CPU += sign * requests.CPU
	used.Memory += sign * requests.Memory
	used.Pods += sign
	if used.Pods == 0 {
		delete(x.used, requests.Node)
	} else {
		x.used[requests.Node] = used
	}
	for _, other := range requests.Others {
		key := nodeResource{requests.Node, other.Resource}
		if x.usedOthers[key] += sign * other.Units; x.usedOthers[key] == 0 {
			delete(x.usedOthers, key)
		}
	}
	for _, repelled := range requests.Repels {
		if x.repelled[repelled] += int(sign); x.repelled[repelled] == 0 {
			delete(x.repelled, repelled)
		}
	}
	x.countKeepingPod(keepingPods{requests.Node, false, requests.KeptByClusterAutoscaler}, int(sign))
	x.countKeepingPod(keepingPods{requests.Node, true, requests.KeptByKarpenter}, int(sign))
}

// countKeepingPod counts a pod that may keep an autoscaler from removing its node.
func (x *capacityIndex) countKeepingPod(as keepingPods, sign int) {
	if as.reason == dra.RemovalNone {
		return
	}
	if x.keeping[as] += sign; x.keeping[as] == 0 {
		delete(x.keeping, as)
	}
}

// removalObstacles returns what keeps the autoscaler of a node from removing it.
func (x *capacityIndex) removalObstacles(node string) (all []dra.KeptNode) {
	capacity := x.nodes[node]
	if capacity == nil {
		return nil
	}
	if capacity.Kept {
		all = append(all, dra.KeptNode{Node: node, Reason: dra.RemovalNodeAnnotation, Pods: 1})
	}
	for _, reason := range dra.RemovalObstacles() {
		if pods := x.keeping[keepingPods{node, capacity.Karpenter, reason}]; pods > 0 {
			all = append(all, dra.KeptNode{Node: node, Reason: reason, Pods: pods})
		}
	}
	return all
}

// tolerationsKey returns equal keys for equal tolerations.
func tolerationsKey(all []dra.Toleration) []byte {
	var key []byte
	for _, t := range all {
		for _, text := range []string{t.Key, t.Operator, t.Value, t.Effect} {
			key = append(append(key, text...), 0)
		}
	}
	return key
}

// capacity returns the capacity of a node, and false for a node that is not known.
func (x *capacityIndex) capacity(node string) (NodeCapacity, bool) {
	found := x.nodes[node]
	if found == nil {
		return NodeCapacity{}, false
	}
	capacity := *found
	capacity.Used = x.used[node]
	return capacity, true
}

// other returns how much of another resource a node offers to pods, and how much of it
// is left.
func (x *capacityIndex) other(node, name string) (offered, left int64) {
	if found := x.nodes[node]; found != nil {
		offered = found.others[name]
	}
	return offered, offered - x.usedOthers[nodeResource{node, name}]
}

// repels reports whether the anti-affinity of a bound pod may keep a pod with
// these labels from nodes.
func (x *capacityIndex) repels(namespace string, set labels.Set) bool {
	for repelled := range x.repelled {
		if repelled.Namespace != "" && repelled.Namespace != namespace {
			continue
		}
		if selector, err := labels.Parse(repelled.Labels); err != nil || selector.Matches(set) {
			return true
		}
	}
	return false
}

// tolerated reports whether any pod that uses claims tolerates the taint.
func (x *capacityIndex) tolerated(taint *corev1.Taint) bool {
	for _, list := range x.tolerations.values {
		if Tolerates(list.value, taint) {
			return true
		}
	}
	return false
}

// Tolerates reports whether one of the tolerations tolerates the taint of a node.
func Tolerates(tolerations []dra.Toleration, taint *corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t dra.Toleration) bool {
		switch {
		case t.Effect != "" && t.Effect != string(taint.Effect), t.Key != "" && t.Key != taint.Key:
			return false
		case t.Operator == string(corev1.TolerationOpExists):
			return true
		case t.Operator == "" || t.Operator == string(corev1.TolerationOpEqual):
			return t.Key != "" && t.Value == taint.Value
		default:
			return false
		}
	})
}

// ApplyPodRequests applies a change of what a pod takes of its node; nil: there is no pod,
// or it takes nothing any more. Before is what was applied last for the pod.
func (inv *Inventory) ApplyPodRequests(previous, updated *dra.PodRequests) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.capacities.setPod(previous, updated)
}

// Overview reads the inventory as a whole: what nodes have for pods, what claims request,
// which devices are stranded. Its methods are safe for concurrent use.
type Overview struct{ *Inventory }

// Overview returns an Overview of the inventory.
func (inv *Inventory) Overview() Overview { return Overview{inv} }

// CapacityVersion grows with every change of a NodeCapacity.
func (inv Overview) CapacityVersion() uint64 {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.capacities.version
}

// NodeCapacity returns the capacity of a node, and false for a node that is not known.
func (inv Overview) NodeCapacity(node string) (NodeCapacity, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.capacities.capacity(node)
}

// Other returns how much a node offers to pods of a resource other than CPU, memory and
// their number, such as one of a device plugin, and how much of that is left.
func (inv Overview) Other(node, resource string) (offered, left int64) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.capacities.other(node, resource)
}

// Repels reports whether the required anti-affinity of a bound pod may keep a pod of the
// namespace with these labels from some nodes.
func (inv Overview) Repels(namespace string, set map[string]string) bool {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.capacities.repels(namespace, set)
}

// NodeLabels returns the labels of a node. They are shared and must not be changed.
func (inv Overview) NodeLabels(node string) map[string]string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if found := inv.nodes.nodes[node]; found != nil {
		return found.labels
	}
	return nil
}

// Need has the resources that a pod requests for each of its devices.
type Need struct {
	CPU    int64 // millicores
	Memory int64 // bytes
}

// Needs are what pods typically request for each device that they have: the median of
// those that have devices of a class, or of a driver. Claims that several pods share
// are not counted.
type Needs struct {
	ByClass, ByDriver map[string]Need
}

// TypicalNeeds returns what pods with claims typically request besides devices. It looks
// at all claims, so it should not be called often.
func (inv Overview) TypicalNeeds() Needs {
	devices := map[dra.PodRef]int64{} // of all claims of a pod
	claims := inv.ownedClaims()
	for i := range claims {
		devices[claims[i].pod] += int64(len(claims[i].claim.devices))
	}
	byClass, byDriver := needSamples{}, needSamples{}
	for i := range claims {
		claim := &claims[i]
		count := devices[claim.pod]
		if !claim.known || count == 0 {
			continue
		}
		share := Need{CPU: claim.need.cpu / count, Memory: claim.need.memory / count}
		for _, driver := range claim.claim.drivers() {
			byDriver.add(driver, share)
		}
		if claim.spec != nil {
			for class := range eachClass(claim.spec) {
				byClass.add(class, share)
			}
		}
	}
	return Needs{ByClass: byClass.medians(), ByDriver: byDriver.medians()}
}

// ownedClaim is an allocated claim of one pod.
type ownedClaim struct {
	claim *claim // of which nothing is read that changes
	spec  *resourcev1.ResourceClaimSpec
	pod   dra.PodRef
	need  podNeed
	known bool // what the pod requests is
}

// ownedClaims returns the allocated claims that are reserved for one pod.
func (inv Overview) ownedClaims() []ownedClaim {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	all := make([]ownedClaim, 0, len(inv.claims.claims))
	for _, c := range inv.claims.claims {
		if !c.allocated || len(c.pods) != 1 {
			continue
		}
		owned := ownedClaim{claim: c, pod: dra.PodRef{Namespace: c.ref.Namespace, Name: c.pods[0]}}
		owned.need, owned.known = inv.capacities.pods[owned.pod]
		if c.spec != nil {
			owned.spec = c.spec.value.spec
		}
		all = append(all, owned)
	}
	return all
}

// needSamples are needs, of which there is one for each claim.
type needSamples map[string]*struct{ cpu, memory []int64 }

func (s needSamples) add(key string, need Need) {
	amounts := s[key]
	if amounts == nil {
		amounts = new(struct{ cpu, memory []int64 })
		s[key] = amounts
	}
	amounts.cpu, amounts.memory = append(amounts.cpu, need.CPU), append(amounts.memory, need.Memory)
}

func (s needSamples) medians() map[string]Need {
	needs := make(map[string]Need, len(s))
	for key, amounts := range s {
		needs[key] = Need{CPU: median(amounts.cpu), Memory: median(amounts.memory)}
	}
	return needs
}

// drivers returns those of the claim's devices, each once.
func (c *claim) drivers() []string {
	var all []string
	for i := range c.devices {
		if driver := c.devices[i].pool.driver; !slices.Contains(all, driver) {
			all = append(all, driver)
		}
	}
	return all
}

func median(values []int64) int64 {
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// NodeStamp changes whenever what the allocator sees of a node may have changed, as
// far as devices go.
type NodeStamp struct {
	Node  string
	Stamp uint64
}

// NodeStamps returns the stamps of all nodes, sorted by node.
func (inv Overview) NodeStamps() []NodeStamp {
	inv.lockUpdated()
	defer inv.mu.Unlock()
	type pools struct{ latest, count uint64 }
	all := map[string]pools{}
	var everywhere pools
	add := func(sum pools, p *pool) pools { return pools{max(sum.latest, p.changed), sum.count + 1} }
	for selection, users := range inv.pools.bySelection {
		for p := range users {
			switch {
			case selection.all:
				everywhere = add(everywhere, p)
			case selection.node != "":
				all[selection.node] = add(all[selection.node], p)
			default:
				for node := range selection.matched {
					all[node] = add(all[node], p)
				}
			}
		}
	}
	stamps := make([]NodeStamp, 0, len(all))
	for _, name := range inv.nodes.names() {
		pools := all[name]
		if pools.count == 0 && everywhere.count == 0 {
			continue
		}
		stamp := max(pools.latest, everywhere.latest)<<16 + (pools.count+everywhere.count)<<1&0xffff + bit(inv.nodes.declares(name))
		stamps = append(stamps, NodeStamp{name, stamp})
	}
	return stamps
}

// SpecUse is what claims and templates request, and how many of them do.
type SpecUse struct {
	Spec              *resourcev1.ResourceClaimSpec // shared; must not be changed
	Claims, Templates int
}

// Specs returns the specifications that most claims and templates have, the most
// frequent first, at most so many. Large ones are left out.
func (inv Overview) Specs(most int) []SpecUse {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	templates := map[*interned[claimSpec]]int{}
	for _, template := range inv.claims.templates {
		templates[template]++
	}
	order := func(a, b *interned[claimSpec]) int {
		return cmp.Or(cmp.Compare(b.users, a.users), cmp.Compare(a.key, b.key))
	}
	var kept []*interned[claimSpec] // the first by the order
	for _, spec := range inv.specs.specs.values {
		if spec.value.namespace != "" || len(kept) == most && (most == 0 || order(spec, kept[most-1]) > 0) {
			continue
		}
		at, _ := slices.BinarySearchFunc(kept, spec, order)
		kept = slices.Insert(kept[:min(len(kept), most-1)], min(at, most-1), spec)
	}
	all := make([]SpecUse, 0, len(kept))
	for _, spec := range kept {
		all = append(all, SpecUse{spec.value.spec, spec.users - templates[spec], templates[spec]})
	}
	return all
}

// ClassesVersion grows with every change of a device class.
func (inv Overview) ClassesVersion() uint64 {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.classesVersion
}

// ClassNames returns the names of all device classes, sorted.
func (inv Overview) ClassNames() []string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.classes.names()
}

// eachClass yields the device classes of requests, each once.
func eachClass(spec *resourcev1.ResourceClaimSpec) iter.Seq[string] {
	return func(yield func(string) bool) {
		var seen []string
		for request := range eachRequest(spec) {
			if !slices.Contains(seen, request.Class) {
				seen = append(seen, request.Class)
				if !yield(request.Class) {
					return
				}
			}
		}
	}
}

// Obstacle returns what keeps every pod from a node: it is cordoned, not ready, or has a
// taint that no pod with claims tolerates; empty: nothing does.
func (inv Overview) Obstacle(capacity *NodeCapacity) dra.StrandedReason {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.capacities.obstacle(capacity)
}

func (x *capacityIndex) obstacle(capacity *NodeCapacity) dra.StrandedReason {
	switch {
	case capacity.Cordoned:
		return dra.StrandedNodeCordoned
	case capacity.NotReady:
		return dra.StrandedNodeNotReady
	}
	for i := range capacity.Taints {
		if !x.tolerated(&capacity.Taints[i]) {
			return dra.StrandedNodeTainted
		}
	}
	return ""
}
