package inventory

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node takes a node as it is from now on; nil: it is gone. Of it is kept what
// decides which devices it reaches and takes.
func (inv *Inventory) Node(name string, published *corev1.Node) {
	var kept *corev1.Node
	if published != nil {
		kept = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: published.Name, Labels: published.Labels},
			Status:     corev1.NodeStatus{DeclaredFeatures: published.Status.DeclaredFeatures},
		}
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	old := inv.nodes[name]
	if old == nil && kept == nil || old != nil && kept != nil && maps.Equal(old.Labels, kept.Labels) &&
		slices.Equal(old.Status.DeclaredFeatures, kept.Status.DeclaredFeatures) {
		return // its heartbeat
	}
	inv.version++
	inv.reshaped = inv.version
	if kept == nil {
		delete(inv.nodes, name)
	} else {
		inv.nodes[strings.Clone(name)] = kept
	}
	for r := range inv.widely {
		switch {
		case kept != nil:
			r.look(kept)
		case r.nodes != nil:
			delete(r.nodes, name)
		}
	}
}

// Nodes are the names of all nodes, sorted. Without any, those that slices name:
// then nodes cannot be read.
func (inv *Inventory) Nodes() []string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if len(inv.nodes) > 0 {
		return slices.Sorted(maps.Keys(inv.nodes))
	}
	var names []string
	for _, lent := range inv.reaches.books {
		if lent.thing.node != "" {
			names = append(names, lent.thing.node)
		}
	}
	slices.Sort(names)
	return names
}

// NodeNamed is the node of that name, with labels and declared features alone.
// It must not be changed.
func (inv *Inventory) NodeNamed(name string) (*corev1.Node, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	found := inv.nodes[name]
	return found, found != nil
}

// knows says whether devices can be used on the node. Where no node is known
// at all, they cannot be read.
func (inv *Inventory) knows(node string) bool {
	return len(inv.nodes) == 0 || inv.nodes[node] != nil
}
