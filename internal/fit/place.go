package fit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/words"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/headroom"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// placing counts how many pods each node can have.
type placing struct {
	inventory *inventory.Inventory
	pod       *pod
	known     clusterread.Known
	nodes     []placedNode
}

// placedNode is a node with its devices, and what else counts there.
type placedNode struct {
	name      string
	claims    []clusterread.SupposedClaim // that each pod has for itself there
	devices   int                         // pods, as far as devices go
	more      bool                        // there may be more
	resources int                         // pods, as far as the node's resources and their number go
	next      int                         // pods, without what limits resources
	lacks     []obstacle                  // what limits resources
	hard      []obstacle                  // what keeps all pods from the node
}

// obstacle is what keeps pods from a node.
type obstacle struct{ kind, text string }

// pods is how many pods the node can have.
func (n *placedNode) pods() int {
	if len(n.hard) > 0 {
		return 0
	}
	return min(n.devices, n.resources)
}

// sharedNodes is how many nodes are looked at for a claim that all pods share.
const sharedNodes = 200

// count counts for each node.
func (p *placing) count(ctx context.Context, most int) error {
	for _, offer := range p.offers() {
		supposed := p.pod.claimsOn(offer.plugins)
		fills, err := headroom.PerNode(ctx, p.inventory, specs(slices.Concat(p.pod.shared, supposed)), most)
		if err != nil {
			return fmt.Errorf("count what can be allocated: %w", err)
		}
		for _, fill := range fills {
			if offer.nodes == nil || offer.nodes[fill.Node] {
				p.nodes = append(p.nodes, placedNode{name: fill.Node, claims: supposed, devices: fill.Pods, more: fill.More, resources: math.MaxInt, next: math.MaxInt})
			}
		}
	}
	slices.SortFunc(p.nodes, func(a, b placedNode) int { return cmp.Compare(a.name, b.name) })
	if len(p.pod.shared) > 0 {
		if err := p.countShared(ctx); err != nil {
			return err
		}
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(&p.pod.object)
	for i := range p.nodes {
		p.look(&p.nodes[i], affinity)
	}
	if len(p.pod.shared) > 0 {
		p.keepBest()
	}
	return nil
}

// offer is which of the pod's extended resources device plugins offer on some nodes.
type offer struct {
	plugins map[string]bool
	nodes   map[string]bool // nil: all
}

// offers groups the nodes by what device plugins offer there.
func (p *placing) offers() []offer {
	if len(p.pod.backed) == 0 {
		return []offer{{}}
	}
	var all []offer
	for _, node := range p.inventory.Nodes() {
		plugins := map[string]bool{}
		for _, backed := range p.pod.backed {
			if offered, _ := p.inventory.Overview().Other(node, backed.name); offered > 0 {
				plugins[backed.name] = true
			}
		}
		at := slices.IndexFunc(all, func(o offer) bool { return maps.Equal(o.plugins, plugins) })
		if at < 0 {
			at = len(all)
			all = append(all, offer{plugins, map[string]bool{}})
		}
		all[at].nodes[node] = true
	}
	return all
}

// countShared counts again where all pods share claims that are not allocated: the
// first pod has them allocated, and the others need only their own, on the same node.
func (p *placing) countShared(ctx context.Context) error {
	nodeCache := allocator.NewNodeCache(p.inventory, allocator.NewCache(), allocator.CommandLimit)
	looked := 0
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.devices == 0 {
			continue
		}
		if looked++; looked > sharedNodes {
			n.devices, n.more = 1, true
			continue
		}
		first, err := p.fillNode(ctx, nodeCache, n.name, p.pod.shared, 1)
		if err != nil {
			return err
		}
		if len(n.claims) == 0 {
			n.devices, n.more = resourcev1.ResourceClaimReservedForMaxSize, false
			continue
		}
		filled, err := nodeCache.Fill(ctx, pause, first.Node, specs(n.claims), resourcev1.ResourceClaimReservedForMaxSize)
		if err != nil {
			return fmt.Errorf("allocate on node %s: %w", n.name, err)
		}
		n.devices, n.more = filled.Times, filled.More
	}
	return nil
}

func pause(ctx context.Context) error { return ctx.Err() }

func (p *placing) fillNode(ctx context.Context, nodeCache *allocator.NodeCache, name string, claims []clusterread.SupposedClaim, most int) (allocator.Filled, error) {
	node, exists, err := nodeCache.Node(ctx, name)
	if err != nil {
		return allocator.Filled{}, fmt.Errorf("look at node %s: %w", name, err)
	}
	if !exists {
		return allocator.Filled{}, nil
	}
	filled, err := nodeCache.Fill(ctx, pause, node, specs(claims), most)
	if err != nil {
		return allocator.Filled{}, fmt.Errorf("allocate on node %s: %w", name, err)
	}
	return filled, nil
}

// claimsOn returns the claims that each pod has for itself on a node.
func (p *placing) claimsOn(name string) []clusterread.SupposedClaim {
	at := slices.IndexFunc(p.nodes, func(n placedNode) bool { return n.name == name })
	return p.nodes[at].claims
}

// keepBest keeps of the nodes the one that can have most pods: all that share a claim
// run where it is allocated.
func (p *placing) keepBest() {
	if len(p.nodes) == 0 {
		return
	}
	best := slices.MaxFunc(p.nodes, func(a, b placedNode) int {
		return cmp.Or(cmp.Compare(a.pods(), b.pods()), -cmp.Compare(a.name, b.name))
	})
	if best.pods() == 0 {
		return
	}
	for i := range p.nodes {
		if n := &p.nodes[i]; n.name != best.name {
			n.devices = 0
		}
	}
}

// look finds out what keeps pods from a node, besides devices.
func (p *placing) look(n *placedNode, affinity nodeaffinity.RequiredNodeAffinity) {
	if !p.known.Nodes {
		return
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: p.inventory.Overview().NodeLabels(n.name)}}
	if !p.allows(node) {
		n.hard = append(n.hard, obstacle{ObstacleAllocated, "where the pod's other claims are allocated"})
	}
	if matches, _ := affinity.Match(node); !matches || p.pod.object.Spec.NodeName != "" && p.pod.object.Spec.NodeName != n.name {
		n.hard = append(n.hard, obstacle{ObstacleAffinity, "node selector or affinity of the pod"})
	}
	capacity, ok := p.inventory.Overview().NodeCapacity(n.name)
	if !ok {
		n.hard = append(n.hard, obstacle{ObstacleAbsent, "does not exist"})
		return
	}
	if capacity.Cordoned && !p.tolerates(&corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		n.hard = append(n.hard, obstacle{ObstacleCordoned, "cordoned"})
	}
	if capacity.NotReady {
		n.hard = append(n.hard, obstacle{ObstacleNotReady, "not ready"})
	}
	for i := range capacity.Taints {
		taint := &capacity.Taints[i]
		if taint.Key == corev1.TaintNodeUnschedulable && capacity.Cordoned || taint.Key == corev1.TaintNodeNotReady && capacity.NotReady || p.tolerates(taint) {
			continue
		}
		n.hard = append(n.hard, obstacle{ObstacleTaint, taint.ToString()})
	}
	p.limitByResources(n, capacity)
}

// limitByResources finds out for how many pods the other resources of a node are enough.
func (p *placing) limitByResources(n *placedNode, capacity inventory.NodeCapacity) {
	if !p.known.Pods {
		return
	}
	left := capacity.Left()
	n.limit(left.Pods, 1, obstacle{kind: ObstaclePods})
	n.limit(left.CPU, p.pod.cpu, obstacle{kind: ObstacleCPU})
	n.limit(left.Memory, p.pod.memory, obstacle{kind: ObstacleMemory})
	for _, amount := range p.pod.others {
		offered, left := p.inventory.Overview().Other(n.name, amount.Resource)
		switch asDevices := slices.ContainsFunc(p.pod.backed, func(b backedResource) bool { return b.name == amount.Resource }); {
		case offered > 0:
			n.limit(left, amount.Units, obstacle{ObstacleResource, amount.Resource})
		case !asDevices:
			n.limit(0, amount.Units, obstacle{ObstacleNoResource, amount.Resource})
		}
	}
}

// limit limits the pods on a node to those for which so much is left.
func (n *placedNode) limit(left, need int64, o obstacle) {
	if need <= 0 {
		return
	}
	switch times := int(max(left, 0) / need); {
	case times < n.resources:
		n.next, n.resources, n.lacks = n.resources, times, []obstacle{o}
	case times == n.resources:
		n.lacks = append(n.lacks, o)
	default:
		n.next = min(n.next, times)
	}
}

func (p *placing) tolerates(taint *corev1.Taint) bool {
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), []corev1.Taint{*taint}, p.pod.object.Spec.Tolerations,
		func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }, true)
	return !untolerated
}

// allows reports whether the pod's allocated claims can be used on a node.
func (p *placing) allows(node *corev1.Node) bool {
	for _, allocation := range p.pod.allocated {
		if allocation.Node != "" && allocation.Node != node.Name {
			return false
		}
		if allocation.Selector == nil {
			continue
		}
		selector, err := nodeaffinity.NewNodeSelector(allocation.Selector)
		if err != nil || !selector.Match(node) {
			return false
		}
	}
	return true
}

// fill adds to the report where pods can run, and what keeps more from nodes that have
// devices for them.
func (p *placing) fill(r *Report) {
	obstacles := map[[2]string]*Obstacle{}
	var order [][2]string
	for i := range p.nodes {
		n := &p.nodes[i]
		if pods := n.pods(); pods > 0 {
			r.Nodes = append(r.Nodes, Node{Node: n.name, Pods: pods})
			r.Pods = sum(r.Pods, pods)
		}
		if n.more && len(n.hard) == 0 && n.pods() == n.devices {
			r.More = true
		}
		if n.devices == 0 {
			continue
		}
		key, gain := n.obstacle()
		if gain == 0 {
			continue
		}
		if obstacles[key] == nil {
			obstacles[key] = &Obstacle{Kind: key[0], Detail: key[1]}
			order = append(order, key)
		}
		obstacles[key].Pods = sum(obstacles[key].Pods, gain)
		obstacles[key].Nodes = append(obstacles[key].Nodes, n.name)
	}
	if len(p.nodes) == 0 && len(r.Claims) == 0 {
		r.Obstacles = append(r.Obstacles, Obstacle{Kind: ObstacleNoNodes, Nodes: []string{}})
	}
	for _, key := range order {
		r.Obstacles = append(r.Obstacles, *obstacles[key])
	}
	slices.SortStableFunc(r.Obstacles, func(a, b Obstacle) int { return cmp.Compare(b.Pods, a.Pods) })
	slices.SortStableFunc(r.Nodes, func(a, b Node) int { return cmp.Compare(b.Pods, a.Pods) })
	for _, allocation := range p.pod.allocated {
		r.keep(max(maxReserved-allocation.Reserved, 0))
	}
}

// maxReserved is for how many pods a claim can be reserved.
const maxReserved = resourcev1.ResourceClaimReservedForMaxSize

// keep keeps so many of the pods that could run: for no more can a claim that they share
// be reserved.
func (r *Report) keep(most int) {
	if r.Pods <= most {
		return
	}
	r.Obstacles = append(r.Obstacles, Obstacle{Kind: ObstacleReserved, Nodes: []string{}, Pods: most})
	r.Pods, r.More = most, false
	for i := range r.Nodes {
		r.Nodes[i].Pods = min(r.Nodes[i].Pods, most)
		most -= r.Nodes[i].Pods
	}
	r.Nodes = slices.DeleteFunc(r.Nodes, func(n Node) bool { return n.Pods == 0 })
}

// obstacle returns what keeps pods from a node that has devices for them, and for how
// many more there would be without it.
func (n *placedNode) obstacle() (key [2]string, gain int) {
	all, gain := n.hard, min(n.devices, n.resources)
	if len(all) == 0 {
		all, gain = n.lacks, min(n.devices, n.next)-min(n.devices, n.resources)
	}
	switch len(all) {
	case 0:
		return key, 0
	case 1:
		return [2]string{all[0].kind, all[0].text}, gain
	}
	return [2]string{ObstacleSeveral, strings.Join(words.Names(all, obstacle.words), " and ")}, gain
}

// words says what one of several obstacles is.
func (o obstacle) words() string {
	return cmp.Or(map[string]string{
		ObstaclePods: "as many pods as allowed", ObstacleCPU: "too little CPU", ObstacleMemory: "too little memory",
		ObstacleResource: "too little " + o.text, ObstacleNoResource: "no " + o.text,
	}[o.kind], o.text)
}
