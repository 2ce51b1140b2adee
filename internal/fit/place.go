package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/headroom"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// placing counts how many pods each node can have.
type placing struct {
	inventory *inventory.Inventory
	pod       *pod
	known     explain.Known
	nodes     []placed
}

// placed is a node with its devices, and what else counts there.
type placed struct {
	name    string
	devices int  // pods, as far as devices go
	more    bool // there may be more
	room    int  // pods, as far as CPU, memory and their number go
	lack    string
	hard    []hard // what keeps all pods from the node
}

// hard is what keeps all pods from a node.
type hard struct{ kind, text string }

// pods is how many pods the node can have.
func (n *placed) pods() int {
	if len(n.hard) > 0 {
		return 0
	}
	return min(n.devices, n.room)
}

// sharedNodes is how many nodes are looked at for a claim that all pods share.
const sharedNodes = 200

// count counts for each node.
func (p *placing) count(ctx context.Context, most int) error {
	fills, err := headroom.PerNode(ctx, p.inventory, specs(slices.Concat(p.pod.shared, p.pod.own)), most)
	if err != nil {
		return fmt.Errorf("count what can be allocated: %w", err)
	}
	for _, fill := range fills {
		p.nodes = append(p.nodes, placed{name: fill.Node, devices: fill.Pods, more: fill.More, room: math.MaxInt})
	}
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

// countShared counts again where all pods share claims that are not allocated: the
// first pod has them allocated, and the others need only their own, on the same node.
func (p *placing) countShared(ctx context.Context) error {
	snapshot := allocator.NewSnapshot(p.inventory, allocator.NewCache(), allocator.SearchLimit)
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
		first, err := p.fillNode(ctx, snapshot, n.name, p.pod.shared, 1)
		if err != nil {
			return err
		}
		if len(p.pod.own) == 0 {
			n.devices, n.more = resourcev1.ResourceClaimReservedForMaxSize, false
			continue
		}
		own, err := snapshot.Fill(ctx, pause, first.Node, specs(p.pod.own), resourcev1.ResourceClaimReservedForMaxSize)
		if err != nil {
			return fmt.Errorf("allocate on node %s: %w", n.name, err)
		}
		n.devices, n.more = own.Times, own.More
	}
	return nil
}

func pause(ctx context.Context) error { return ctx.Err() }

func (p *placing) fillNode(ctx context.Context, snapshot *allocator.Snapshot, name string, of []explain.SupposedClaim, most int) (allocator.Filled, error) {
	node, exists, err := snapshot.Node(ctx, name)
	if err != nil {
		return allocator.Filled{}, fmt.Errorf("look at node %s: %w", name, err)
	}
	if !exists {
		return allocator.Filled{}, nil
	}
	filled, err := snapshot.Fill(ctx, pause, node, specs(of), most)
	if err != nil {
		return allocator.Filled{}, fmt.Errorf("allocate on node %s: %w", name, err)
	}
	return filled, nil
}

// keepBest keeps of the nodes the one that can have most pods: all that share a claim
// run where it is allocated.
func (p *placing) keepBest() {
	if len(p.nodes) == 0 {
		return
	}
	best := slices.MaxFunc(p.nodes, func(a, b placed) int { return cmp.Or(cmp.Compare(a.pods(), b.pods()), -cmp.Compare(a.name, b.name)) })
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
func (p *placing) look(n *placed, affinity nodeaffinity.RequiredNodeAffinity) {
	if !p.known.Nodes {
		return
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: p.inventory.Overview().NodeLabels(n.name)}}
	if !p.allows(node) {
		n.hard = append(n.hard, hard{ObstacleAllocated, "where the pod's other claims are allocated"})
	}
	if matches, err := affinity.Match(node); err == nil && !matches || p.pod.object.Spec.NodeName != "" && p.pod.object.Spec.NodeName != n.name {
		n.hard = append(n.hard, hard{ObstacleAffinity, "node selector or affinity of the pod"})
	}
	room, known := p.inventory.Overview().Room(n.name)
	if !known {
		return
	}
	if room.Cordoned && !p.tolerates(&corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		n.hard = append(n.hard, hard{ObstacleCordoned, "cordoned"})
	}
	if room.NotReady {
		n.hard = append(n.hard, hard{ObstacleNotReady, "not ready"})
	}
	for i := range room.Taints {
		taint := &room.Taints[i]
		if taint.Key == corev1.TaintNodeUnschedulable && room.Cordoned || taint.Key == corev1.TaintNodeNotReady && room.NotReady || p.tolerates(taint) {
			continue
		}
		n.hard = append(n.hard, hard{ObstacleTaint, taint.ToString()})
	}
	p.lookRoom(n, room)
}

// lookRoom finds out how many pods the rest of a node has room for.
func (p *placing) lookRoom(n *placed, room inventory.Room) {
	if !p.known.Pods {
		return
	}
	left := room.Left()
	for _, of := range []struct {
		kind       string
		left, each int64
	}{{ObstaclePods, left.Pods, 1}, {ObstacleCPU, left.CPU, p.pod.cpu}, {ObstacleMemory, left.Memory, p.pod.memory}} {
		if of.each <= 0 {
			continue
		}
		if times := int(max(of.left, 0) / of.each); times < n.room {
			n.room, n.lack = times, of.kind
		}
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
		if n.more && n.pods() == n.devices {
			r.More = r.More || n.devices > 0
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
	for _, key := range order {
		r.Obstacles = append(r.Obstacles, *obstacles[key])
	}
	slices.SortStableFunc(r.Obstacles, func(a, b Obstacle) int { return cmp.Compare(b.Pods, a.Pods) })
	slices.SortStableFunc(r.Nodes, func(a, b Node) int { return cmp.Compare(b.Pods, a.Pods) })
}

// obstacle returns what keeps pods from a node that has devices for them, and for how
// many more there would be room without it.
func (n *placed) obstacle() (key [2]string, gain int) {
	switch {
	case len(n.hard) == 0:
		return [2]string{n.lack, ""}, n.devices - min(n.devices, n.room)
	case len(n.hard) == 1:
		return [2]string{n.hard[0].kind, n.hard[0].text}, min(n.devices, n.room)
	}
	var texts []string
	for _, h := range n.hard {
		texts = append(texts, h.text)
	}
	return [2]string{ObstacleSeveral, strings.Join(texts, " and ")}, min(n.devices, n.room)
}
