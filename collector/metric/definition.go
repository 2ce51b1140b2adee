package metric

import (
	"math"
	"slices"
)

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

// alignReach is how many records that are gone are skipped in one place before the next
// records are looked up by their keys.
const alignReach = 32

// Align returns the labels of each record of a list, in its order: those of the list
// before for a key that was in it, else new ones, which are empty. Keys are unique. The
// labels are valid until the next call. A list with the same keys in the same order costs
// one comparison for each; so does one of which a few have come or gone.
func (c *LabelCache[K, L]) Align(count int, key func(i int) K) []*L {
	same := 0
	for same < min(count, len(c.keys)) && c.keys[same] == key(same) {
		same++
	}
	if same == count && same == len(c.keys) {
		return c.labels
	}
	// The rest of the list before, and the position at which the new list would overwrite it.
	keys, labels, end := c.keys[same:], c.labels[same:], len(c.keys)
	c.keys = slices.Grow(c.keys[:same], count-same)[:count]
	c.labels = slices.Grow(c.labels[:same], count-same)[:count]
	spare := make(map[K]*L) // the labels of records that were skipped
	var gaps []int          // positions whose labels are not near the one before
	for i := same; i < count; i++ {
		k, l := key(i), (*L)(nil)
		if at := slices.Index(keys[:min(alignReach, len(keys))], k); at >= 0 {
			for j := range at {
				spare[keys[j]] = labels[j]
			}
			l, keys, labels = labels[at], keys[at+1:], labels[at+1:]
		} else {
			gaps = append(gaps, i)
		}
		if len(keys) > 0 && i >= end-len(keys) {
			end, keys, labels = math.MaxInt, slices.Clone(keys), slices.Clone(labels)
		}
		c.keys[i], c.labels[i] = k, l
	}
	if len(gaps) > 0 {
		for j := range keys {
			spare[keys[j]] = labels[j]
		}
	}
	for _, i := range gaps {
		if c.labels[i] = spare[c.keys[i]]; c.labels[i] == nil {
			c.labels[i] = new(L)
		}
	}
	clear(c.keys[count:cap(c.keys)])
	clear(c.labels[count:cap(c.labels)])
	return c.labels
}
