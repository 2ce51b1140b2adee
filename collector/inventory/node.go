package inventory

import (
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/draoptionalnodeoperations"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// nodeSelection determines the nodes that can use a device. A selection that is
// not set or cannot be parsed selects no node.
type nodeSelection struct {
	node     string // the only one
	all      bool
	slot     int // where devices with it are counted
	selector *nodeaffinity.NodeSelector
	matched  map[string]struct{} // known nodes that the selector matches

	// optional: the slice skips node operations (KEP-5945), so that its devices
	// can be allocated only on nodes that declare that their kubelets do.
	optional bool
	// known reports whether the only node exists.
	known bool
}

// selects reports whether devices can be used from the node.
func (s *nodeSelection) selects(node string) bool {
	_, ok := s.matched[node]
	return ok || s.all || (s.node != "" && s.node == node)
}

// update evaluates the selector for a node that is new or has changed; nil: the
// node is gone.
func (s *nodeSelection) update(name string, node *nodeFacts) {
	if s.selector != nil && node != nil && s.selector.Match(node.object()) {
		s.matched[name] = struct{}{}
	} else {
		delete(s.matched, name)
	}
}

// nodeIndex keeps the nodes, and the distinct node selections of slices and
// devices with the nodes that they select.
type nodeIndex struct {
	nodes      map[string]*nodeFacts
	down       map[string]nodeState // of those that are cordoned or not ready
	selections *internPool[*nodeSelection]
	broad      map[*nodeSelection]struct{} // the selections that may select several nodes
	single     []*nodeSelection            // the others, sorted by node; nil: they must be sorted again
	slots      slotNumbers
	counted    bySelection // of the query that runs
}

func newNodeIndex() *nodeIndex {
	return &nodeIndex{nodes: map[string]*nodeFacts{}, down: map[string]nodeState{}, selections: newInternPool[*nodeSelection](), broad: map[*nodeSelection]struct{}{}}
}

// nodeFacts is what decides which devices a node can use.
type nodeFacts struct {
	name     string
	labels   map[string]string
	features []string // that its kubelet declares
}

// object returns the node with its name, labels and declared features alone.
func (n *nodeFacts) object() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: n.labels},
		Status:     corev1.NodeStatus{DeclaredFeatures: n.features},
	}
}

// set applies the present state of a node; nil: it is gone. It keeps
// only what decides which devices the node can use, and reports whether that has
// changed.
func (x *nodeIndex) set(name string, published *corev1.Node) bool {
	var kept *nodeFacts
	if published != nil {
		kept = &nodeFacts{name: strings.Clone(name), labels: published.Labels, features: published.Status.DeclaredFeatures}
	}
	old := x.nodes[name]
	if old == nil && kept == nil || old != nil && kept != nil && maps.Equal(old.labels, kept.labels) && slices.Equal(old.features, kept.features) {
		return false // a heartbeat
	}
	if kept == nil {
		delete(x.nodes, name)
	} else {
		x.nodes[kept.name] = kept
	}
	for s := range x.broad {
		s.update(name, kept)
	}
	for selection := range x.nodeSelections(name) {
		selection.known = kept != nil
	}
	return true
}

// nodeState is whether a node is usable.
type nodeState struct{ notReady, cordoned bool }

// setState applies the present state of a node; nil: it is gone. It reports whether the
// node is cordoned or not ready, and was not before, or the other way round.
func (x *nodeIndex) setState(name string, published *corev1.Node) bool {
	var state nodeState
	if published != nil {
		state = nodeState{notReady: !isReady(published), cordoned: published.Spec.Unschedulable}
	}
	if x.down[name] == state {
		return false
	}
	if state == (nodeState{}) {
		delete(x.down, name)
	} else {
		x.down[strings.Clone(name)] = state
	}
	return true
}

func isReady(node *corev1.Node) bool {
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	return at < 0 || node.Status.Conditions[at].Status == corev1.ConditionTrue
}

// nodeSelections yields the selections of the node alone.
func (x *nodeIndex) nodeSelections(node string) iter.Seq[*nodeSelection] {
	return func(yield func(*nodeSelection) bool) {
		for _, optional := range []bool{false, true} {
			if selection := x.selections.values[string(nodeKey(node, optional))]; selection != nil && !yield(selection.value) {
				return
			}
		}
	}
}

// declares reports whether devices of slices that skip node operations can be
// allocated on the node. It assumes so for a node that is not known, and if
// nodes cannot be read.
func (x *nodeIndex) declares(name string) bool {
	node := x.nodes[name]
	return node == nil || slices.Contains(node.features, draoptionalnodeoperations.DRAOptionalNodeOperationsFeatureGate)
}

// allocatable reports whether a node of the selection declares the feature that
// the devices need. It is true for a selection that selects no node.
func (x *nodeIndex) allocatable(s *nodeSelection) bool {
	if !s.optional || len(x.nodes) == 0 {
		return true
	}
	switch {
	case s.node != "":
		return x.declares(s.node)
	case s.all:
		for name := range x.nodes {
			if x.declares(name) {
				return true
			}
		}
		return false
	}
	for name := range s.matched {
		if x.declares(name) {
			return true
		}
	}
	return len(s.matched) == 0
}

// optionalFor returns the selections of slices that skip node operations for
// which a change of the node may matter.
func (x *nodeIndex) optionalFor(node string) []*nodeSelection {
	var found []*nodeSelection
	if selection := x.selections.values[string(nodeKey(node, true))]; selection != nil {
		found = append(found, selection.value)
	}
	for s := range x.broad {
		if s.optional {
			found = append(found, s)
		}
	}
	return found
}

// names returns the names of all nodes, sorted. If nodes cannot be read, it
// returns the nodes that selections name.
func (x *nodeIndex) names() []string {
	if len(x.nodes) > 0 {
		return slices.Sorted(maps.Keys(x.nodes))
	}
	var names []string
	for _, s := range x.selections.values {
		if s.value.node != "" {
			names = append(names, s.value.node)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// exists reports whether the node exists. If nodes cannot be read, every node
// is assumed to exist.
func (x *nodeIndex) exists(name string) bool {
	return len(x.nodes) == 0 || x.nodes[name] != nil
}

// get returns an existing node with only its labels and declared features. If
// nodes cannot be read, the node declares the feature that the allocator looks
// for.
func (x *nodeIndex) get(name string) *corev1.Node {
	if known := x.nodes[name]; known != nil {
		return known.object()
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{DeclaredFeatures: []string{draoptionalnodeoperations.DRAOptionalNodeOperationsFeatureGate}},
	}
}

// acquireAll returns the node selections of a slice: its own, or one for each
// device. Each needs one release.
func (x *nodeIndex) acquireAll(spec *resourcev1.ResourceSliceSpec) (selection *interned[*nodeSelection], selections []*interned[*nodeSelection]) {
	optional := len(spec.SkipNodeOperations) > 0
	if spec.PerDeviceNodeSelection == nil || !*spec.PerDeviceNodeSelection {
		return x.acquire(optional, spec.NodeName, spec.AllNodes, spec.NodeSelector), nil
	}
	selections = make([]*interned[*nodeSelection], len(spec.Devices))
	for i := range spec.Devices {
		device := &spec.Devices[i]
		selections[i] = x.acquire(optional, device.NodeName, device.AllNodes, device.NodeSelector)
	}
	return nil, selections
}

// acquire returns a selection. One of the last three arguments is set.
func (x *nodeIndex) acquire(optional bool, node *string, all *bool, selector *corev1.NodeSelector) *interned[*nodeSelection] {
	switch {
	case node != nil && *node != "":
		return x.selections.acquire(nodeKey(*node, optional), func() *nodeSelection {
			return x.add(&nodeSelection{node: validUTF8(*node), optional: optional, known: x.nodes[*node] != nil})
		})
	case all != nil && *all:
		return x.selections.acquire(selectionKey("all", optional), func() *nodeSelection {
			return x.addBroad(&nodeSelection{all: true, optional: optional})
		})
	case selector != nil:
		if key, err := selector.Marshal(); err == nil {
			return x.selections.acquire(append(selectionKey("selector ", optional), key...), func() *nodeSelection {
				made := &nodeSelection{matched: map[string]struct{}{}, optional: optional}
				// A selector that does not parse selects nothing; the allocator reports it.
				made.selector, _ = nodeaffinity.NewNodeSelector(selector)
				for name, node := range x.nodes {
					made.update(name, node)
				}
				return x.addBroad(made)
			})
		}
	}
	return x.selections.acquire([]byte("none"), func() *nodeSelection { return x.add(&nodeSelection{}) })
}

func nodeKey(node string, optional bool) []byte { return selectionKey("node "+node, optional) }

// selectionKey returns a key that begins with what kind of slice it is for.
func selectionKey(key string, optional bool) []byte {
	if optional {
		return []byte("optional " + key)
	}
	return []byte(key)
}

// add adds a selection that selects one node at most.
func (x *nodeIndex) add(s *nodeSelection) *nodeSelection {
	s.slot, x.single = x.slots.take(), nil
	return s
}

func (x *nodeIndex) addBroad(s *nodeSelection) *nodeSelection {
	s.slot = x.slots.take()
	x.broad[s] = struct{}{}
	return s
}

func (x *nodeIndex) release(s *interned[*nodeSelection]) {
	if x.selections.release(s) {
		delete(x.broad, s.value)
		x.slots.free = append(x.slots.free, s.value.slot)
		x.single = nil
	}
}

// selecting returns the selections that select the node.
func (x *nodeIndex) selecting(node string) []*nodeSelection {
	found := slices.AppendSeq(make([]*nodeSelection, 0, 2), x.nodeSelections(node))
	for s := range x.broad {
		if s.selects(node) {
			found = append(found, s)
		}
	}
	return found
}

// bySelection returns a count of no devices for each selection, which is valid until the
// next call.
func (x *nodeIndex) bySelection() bySelection {
	x.counted = slices.Grow(x.counted[:0], x.slots.next)[:x.slots.next]
	clear(x.counted)
	return x.counted
}

// sorted returns the selections that select one node at most, sorted by node.
func (x *nodeIndex) sorted() []*nodeSelection {
	if x.single == nil {
		for _, s := range x.selections.values {
			if _, ok := x.broad[s.value]; !ok {
				x.single = append(x.single, s.value)
			}
		}
		slices.SortFunc(x.single, func(a, b *nodeSelection) int { return strings.Compare(a.node, b.node) })
	}
	return x.single
}

// count adds up the devices that can be allocated on each node, given the
// devices of each selection.
func (x *nodeIndex) count(devices bySelection) NodeCounts {
	used := 0 // of the selections, most of which often have no device left
	for _, n := range devices {
		if n > 0 {
			used++
		}
	}
	counts := make(NodeCounts, 0, used)
	add := func(node string, n int) {
		if last := len(counts) - 1; last >= 0 && counts[last].Node == node {
			counts[last].Devices += n
		} else {
			counts = append(counts, NodeCount{node, n})
		}
	}
	for _, s := range x.sorted() {
		n := devices[s.slot]
		if n > 0 && s.node != "" && (s.known || len(x.nodes) == 0) && (!s.optional || x.declares(s.node)) {
			add(s.node, n)
		}
	}
	return x.countBroad(devices, counts)
}

// sortedCounts returns the counts sorted by node.
func sortedCounts(devices map[string]int) NodeCounts {
	counts := make(NodeCounts, 0, len(devices))
	for _, node := range slices.Sorted(maps.Keys(devices)) {
		counts = append(counts, NodeCount{node, devices[node]})
	}
	return counts
}

// countBroad adds the devices that several nodes can use to the counts.
func (x *nodeIndex) countBroad(devices bySelection, counts NodeCounts) NodeCounts {
	shared, onAll := map[string]int{}, 0
	for s := range x.broad {
		n := devices[s.slot]
		if n == 0 {
			continue
		}
		add := func(node string) {
			if !s.optional || x.declares(node) {
				shared[node] += n
			}
		}
		switch {
		case s.all && s.optional && len(x.nodes) > 0:
			for node := range x.nodes {
				add(node)
			}
		case s.all:
			onAll += n
		}
		for node := range s.matched {
			add(node)
		}
	}
	if onAll > 0 {
		for node := range x.nodes {
			shared[node] += onAll
		}
		if len(x.nodes) == 0 { // the nodes that are named
			for _, n := range counts {
				shared[n.Node] += onAll
			}
		}
	}
	if len(shared) == 0 {
		return counts
	}
	return counts.Merge(sortedCounts(shared), func(a, b int) int { return a + b })
}
