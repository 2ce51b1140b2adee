package metric

// Definition is a family together with what makes its rows: Fill adds those of a
// model. Histograms have no rows, and no Fill.
type Definition[M any] struct {
	Family
	Fill func(M, *Builder)
}

// Definitions are the families of a role, in the order of their rows. Families are
// compared by their address in this list: it must not be copied once it is used.
type Definitions[M any] []Definition[M]

// Fill adds the rows of all families.
func (d Definitions[M]) Fill(model M, b *Builder) {
	for i := range d {
		if d[i].Fill != nil {
			b.In(&d[i].Family)
			d[i].Fill(model, b)
		}
	}
}

// Families returns the families.
func (d Definitions[M]) Families() []*Family {
	families := make([]*Family, len(d))
	for i := range d {
		families[i] = &d[i].Family
	}
	return families
}

// LabelCache keeps the labels that were made of the records of a list, by the keys of
// the records, from one list to the next: L is all labels of a record. It belongs to
// one goroutine.
type LabelCache[K comparable, L any] struct {
	keys   []K
	labels []*L
}

// Align returns the labels of each record of a list, in its order: those of the list
// before for a key that was in it, else new ones, which are empty. Keys are unique. A
// list with the same keys in the same order costs one comparison for each.
func (c *LabelCache[K, L]) Align(count int, key func(i int) K) []*L {
	same := 0
	for same < min(count, len(c.keys)) && c.keys[same] == key(same) {
		same++
	}
	if same == count && same == len(c.keys) {
		return c.labels
	}
	kept := make(map[K]*L, len(c.keys)-same)
	for i := same; i < len(c.keys); i++ {
		kept[c.keys[i]] = c.labels[i]
	}
	keys, labels := make([]K, count), make([]*L, count)
	copy(keys, c.keys[:same])
	copy(labels, c.labels[:same])
	for i := same; i < count; i++ {
		keys[i] = key(i)
		if labels[i] = kept[keys[i]]; labels[i] == nil {
			labels[i] = new(L)
		}
	}
	c.keys, c.labels = keys, labels
	return labels
}
