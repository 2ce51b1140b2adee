package cluster

import "slices"

// ordered is a sorted list of things that are added and removed one by one: a change
// costs a search and a move, not another sort of all. A thing is added once, and is not
// added again after its removal.
type ordered[E any] struct {
	compare func(a, b *E) int
	all     []*E // sorted, but for what is in the others
	added   []*E
	removed map[*E]struct{}
}

func (o *ordered[E]) add(thing *E) { o.added = append(o.added, thing) }

func (o *ordered[E]) remove(thing *E) {
	if o.removed == nil {
		o.removed = make(map[*E]struct{})
	}
	o.removed[thing] = struct{}{}
}

// sorted returns the list, until the next change. It must not be changed.
func (o *ordered[E]) sorted() []*E {
	if len(o.removed) > 0 {
		isRemoved := func(thing *E) bool { _, ok := o.removed[thing]; return ok }
		o.all, o.added = slices.DeleteFunc(o.all, isRemoved), slices.DeleteFunc(o.added, isRemoved)
		clear(o.removed)
	}
	slices.SortFunc(o.added, o.compare)
	end := len(o.all) // of what is not at its place yet
	o.all = append(o.all, o.added...)
	for i, thing := range slices.Backward(o.added) {
		at, _ := slices.BinarySearchFunc(o.all[:end], thing, o.compare)
		copy(o.all[at+i+1:], o.all[at:end])
		o.all[at+i] = thing
		end = at
	}
	clear(o.added)
	o.added = o.added[:0]
	return o.all
}
