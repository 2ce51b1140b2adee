package diagnosis

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// nodesJoined is how many nodes are looked at as if they were one.
const nodesJoined = 20

// blameRoom says why no node will do for the parts, whatever their
// constraints, though each request by itself has enough: is it that there is
// not enough anywhere, because requests compete or devices are cut from the
// same, or that it lies on several nodes?
func (q *inquiry) blameRoom(ctx context.Context, parts []int, failed trial) error {
	for _, part := range parts {
		for i, a := range q.order.parts[part].asks {
			if a.count == 0 {
				f, err := q.allOfNode(ctx, a, q.tallies[part][i])
				if err != nil {
					return err
				}
				q.blame(parts, f)
				return nil
			}
		}
	}
	enough, slow, err := q.enoughTogether(ctx, parts)
	switch {
	case err != nil:
		return err
	case slow:
		q.blame(parts, finding{dra.ReasonUndetermined, dra.Stages, saySlowTogether(q.judge.patience)})
	case enough:
		q.blame(parts, finding{dra.ReasonFragmented, dra.Stages, sayNoRoom(parts, failed)})
	default:
		q.blame(parts, finding{dra.ReasonInsufficient, dra.Stages, sayCompeting(parts)})
	}
	return nil
}

// enoughTogether asks the allocator about a node that reaches all devices of
// all nodes that have free ones. Where these are too many to be joined, there
// is taken to be enough.
func (q *inquiry) enoughTogether(ctx context.Context, parts []int) (enough, slow bool, err error) {
	free := make(inventory.NodeCounts)
	for _, part := range parts {
		for _, t := range q.tallies[part] {
			for node, n := range t.Free {
				free[node] += n
			}
		}
	}
	joined := newJoint()
	for _, node := range free.Best(nodesJoined) {
		if err := q.meter.pause(ctx); err != nil {
			return true, false, err
		}
		at, ok, err := q.ground.site(ctx, node.Node)
		if err != nil || !ok {
			continue // it was there when its devices were counted
		}
		joined.add(at.NodeSupply)
	}
	allocator, err := q.judge.allocator(ctx, joined.NodeSupply)
	if err != nil {
		return true, false, err
	}
	at := site{NodeSupply: joined.NodeSupply, allocator: allocator}
	q.meter.searched()
	allocated, slow, failed := q.judge.allocate(ctx, at, q.order.claims(parts, false))
	if err := q.meter.pause(ctx); err != nil {
		return true, slow, err
	}
	return allocated || failed != nil || len(free) > nodesJoined, slow && len(free) <= nodesJoined, nil
}

// joint is several nodes as if they were one.
type joint struct {
	inventory.NodeSupply
	names sets.Set[string] // of slices: those that are network-attached are on many nodes
}

func newJoint() *joint {
	return &joint{names: sets.New[string](), NodeSupply: inventory.NodeSupply{
		Node: &corev1.Node{},
		Allocated: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		},
	}}
}

func (j *joint) add(supply inventory.NodeSupply) {
	for _, slice := range supply.Slices {
		if !j.names.Has(slice.Name) {
			j.names.Insert(slice.Name)
			j.Slices = append(j.Slices, anywhere(slice))
		}
	}
	for id := range supply.Allocated.AllocatedDevices {
		j.Allocated.AllocatedDevices.Insert(id)
	}
	for id := range supply.Allocated.AllocatedSharedDeviceIDs {
		j.Allocated.AllocatedSharedDeviceIDs.Insert(id)
	}
	// A pool is on each of its nodes with all that is consumed of it.
	maps.Copy(j.Allocated.AggregatedCapacity, supply.Allocated.AggregatedCapacity)
	j.Node.Status.DeclaredFeatures = append(j.Node.Status.DeclaredFeatures, supply.Node.Status.DeclaredFeatures...)
}

// anywhere is the slice as if all nodes could use its devices.
func anywhere(slice *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	yes := true
	changed := *slice
	changed.Spec.NodeName, changed.Spec.NodeSelector, changed.Spec.PerDeviceNodeSelection = nil, nil, nil
	changed.Spec.AllNodes = &yes
	return &changed
}

// allOfNode says what keeps a request from having all devices of a node: on
// each node one of them is held, or tainted. The node that comes furthest
// decides. What is free to a request that tolerates all taints, or to one with
// admin access, is what there would be without taints, or without holders.
func (q *inquiry) allOfNode(ctx context.Context, a ask, t tally) (finding, error) {
	unheld := a.Request
	unheld.AdminAccess = true
	all := unheld
	all.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	withTaints, err := q.counted(ctx, all)
	if err != nil {
		return finding{}, err
	}
	withHolders, err := q.counted(ctx, unheld)
	if err != nil {
		return finding{}, err
	}
	matching, untainted := withTaints.Free, withHolders.Free
	worst := finding{dra.ReasonFragmented, dra.Stages, sayAllMixed(a)}
	for node, n := range matching {
		switch {
		case untainted[node] == n && t.Free[node] < n:
			return finding{dra.ReasonInsufficient, dra.StageFree, sayAllHeld(a)}, nil
		case untainted[node] < n:
			worst = finding{dra.ReasonTainted, dra.StageUntainted, sayAllTainted(a)}
		}
	}
	return worst, nil
}
