package headroom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// nodeList has the nodes with devices, sorted, and which of them have changed since
// the last refresh.
type nodeList struct {
	names   []string
	stamps  []uint64
	changed []bool
	from    []int32 // where the node was in the list before; -1: it was not
	moved   bool    // the list before had other nodes
	number  int     // of the list: each update makes the next
}

// update takes the present stamps. Until settled, nodes stay changed.
func (l *nodeList) update(now []inventory.NodeStamp) {
	previous := *l
	*l = nodeList{
		names: make([]string, len(now)), stamps: make([]uint64, len(now)), changed: make([]bool, len(now)), from: make([]int32, len(now)),
	}
	l.moved = len(previous.names) != len(now)
	l.number = previous.number + 1
	at := 0
	for i, n := range now {
		for at < len(previous.names) && previous.names[at] < n.Node {
			at++
		}
		l.names[i], l.stamps[i], l.from[i], l.changed[i] = n.Node, n.Stamp, -1, true
		if at < len(previous.names) && previous.names[at] == n.Node {
			l.from[i] = int32(at)
			l.changed[i] = previous.stamps[at] != n.Stamp || previous.changed[at]
		}
		l.moved = l.moved || l.from[i] != int32(i)
	}
}

// settled records that all groups have the present nodes.
func (l *nodeList) settled() { clear(l.changed) }

// shapeGroup has the shapes whose requests read the same properties of devices: nodes
// with the same traits are the same to all of them.
type shapeGroup struct {
	requests   []inventory.Request
	attributes []resourcev1.FullyQualifiedName
	shapes     []*shape
	traits     *inventory.Traits // nil: selectors are broken

	of    []int32 // for each node of the list the index of its key; noKey: it has none
	keys  []inventory.TraitsKey
	index map[inventory.TraitsKey]int32
	users []int32 // nodes with the key
	list  int     // the number of the list that of is for; 0: for none

	linkedVersion uint64 // grows when a node without a key has changed
}

const noKey = -1

// groupKey is the same for shapes of one group.
func groupKey(s *shape) string {
	var key strings.Builder
	for _, r := range s.requests {
		request := r.Request
		exact := resourcev1.ExactDeviceRequest{DeviceClassName: request.Class, Selectors: request.Selectors, Tolerations: request.Tolerations, Capacity: request.Capacity}
		encoded, err := exact.Marshal()
		if err != nil || len(request.Derived) > 0 {
			return s.key // like no other
		}
		fmt.Fprintf(&key, "%d:%s", len(encoded), encoded)
	}
	for _, attribute := range shapeAttributes(s) {
		fmt.Fprintf(&key, "%d=%s", len(attribute), attribute)
	}
	return key.String()
}

func newShapeGroup(s *shape) *shapeGroup {
	g := &shapeGroup{attributes: shapeAttributes(s), index: map[inventory.TraitsKey]int32{}}
	for _, r := range s.requests {
		g.requests = append(g.requests, r.Request)
	}
	return g
}

// shapeAttributes returns the attributes that constraints refer to.
func shapeAttributes(s *shape) []resourcev1.FullyQualifiedName {
	var all []resourcev1.FullyQualifiedName
	for _, constraint := range s.constraints() {
		for _, attribute := range []*resourcev1.FullyQualifiedName{constraint.MatchAttribute, constraint.DistinctAttribute} {
			if attribute != nil {
				all = append(all, *attribute)
			}
		}
	}
	return all
}

// update finds the keys of the nodes that have changed. It first evaluates selectors
// that have no results. It discards what it knows of a list before the last one.
func (g *shapeGroup) update(ctx context.Context, pause inventory.Pause, inv *inventory.Inventory, nodes *nodeList) error {
	g.traits = nil
	for _, request := range g.requests {
		if err := inv.EvaluateRequest(ctx, pause, request); err != nil && !errors.Is(err, inventory.ErrSlowEvaluation) {
			return err
		} else if err != nil {
			return nil //nolint:nilerr // the shapes have no result, as the class has no count
		}
	}
	g.traits = inv.RequestTraits(g.requests, g.attributes)
	if g.traits == nil {
		return nil
	}
	had := g.list > 0 && g.list == nodes.number-1
	if !had {
		g.forget()
	}
	previous := g.of
	g.of = make([]int32, len(nodes.names))
	linked := slices.Contains(previous, noKey) // some nodes are, or were
	for i, name := range nodes.names {
		start := nodes.from[i]
		if had && start >= 0 && !nodes.changed[i] {
			g.of[i] = previous[start]
			previous[start] = noKey // taken over, with its use
			continue
		}
		if i%64 == 0 {
			if err := pause(ctx); err != nil {
				g.forget()
				return err
			}
		}
		g.of[i] = g.nodeKey(inv, name)
		if g.of[i] == noKey || had && start >= 0 && previous[start] == noKey {
			g.linkedVersion++
		}
	}
	if nodes.moved && (linked || slices.Contains(g.of, noKey)) {
		g.linkedVersion++
	}
	if had {
		for _, at := range previous { // of nodes that are gone or have changed
			if at != noKey {
				g.users[at]--
			}
		}
	}
	g.list = nodes.number
	g.compact()
	return nil
}

// nodeKey returns the index of a node's key, which the node then uses.
func (g *shapeGroup) nodeKey(inv *inventory.Inventory, node string) int32 {
	key, ok := g.traits.NodeKey(inv, node)
	if !ok {
		return noKey
	}
	at, ok := g.index[key]
	if !ok {
		at = int32(len(g.keys))
		g.keys, g.users = append(g.keys, key), append(g.users, 0)
		g.index[key] = at
	}
	g.users[at]++
	return at
}

// forget drops all keys, so that they are found again.
func (g *shapeGroup) forget() {
	g.of, g.keys, g.users, g.list = nil, nil, nil, 0
	clear(g.index)
	g.linkedVersion++
}

// compact drops the keys that no node has, once they are the majority.
func (g *shapeGroup) compact() {
	unused := 0
	for _, n := range g.users {
		if n == 0 {
			unused++
		}
	}
	if unused < 64 || unused < len(g.keys)/2 {
		return
	}
	moved := make([]int32, len(g.keys))
	var keys []inventory.TraitsKey
	var users []int32
	clear(g.index)
	for at, key := range g.keys {
		if g.users[at] > 0 {
			moved[at] = int32(len(keys))
			g.index[key] = moved[at]
			keys, users = append(keys, key), append(users, g.users[at])
		}
	}
	g.keys, g.users = keys, users
	for i, at := range g.of {
		if at != noKey {
			g.of[i] = moved[at]
		}
	}
}

// firstNode returns a node with the key at the index.
func (g *shapeGroup) firstNode(at int32) int { return slices.Index(g.of, at) }
