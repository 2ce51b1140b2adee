package headroom

// fill records how often a claim of a shape can be allocated on a node.
type fill struct {
	claims int32
	more   bool    // there may be more
	left   []int32 // devices that could still be allocated after that, for each request by itself
}

// linkedFill is the same for all nodes that have devices in common.
type linkedFill struct {
	version uint64 // of the group's nodes without a key
	fill
	mostLeft []int32         // on one node
	perNode  map[int32]int32 // claims, by index of the node
}

// add adds a node. The devices that are left on several nodes may be the same, so
// only the node with the most counts.
func (l *linkedFill) add(node int32, f fill) {
	l.claims += f.claims
	l.more = l.more || f.more
	if f.claims > 0 {
		l.perNode[node] = f.claims
	}
	for i, n := range f.left {
		l.mostLeft[i] = max(l.mostLeft[i], n)
		l.left[i] = l.mostLeft[i]
	}
}
