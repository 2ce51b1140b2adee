// Package setcache keeps what is computed from label or attribute sets from one
// push to the next.
package setcache

// Cache keeps values for as long as each push uses them: to compute one costs a
// sort, a hash, an encoding, and labels exist for hours. In most pushes nearly
// all keys come in the order of the push before, so that this is a walk along a
// slice. It is not safe for concurrent use.
type Cache[K comparable, V any] struct {
	compute func(K) V
	entries []entry[K, V] // in order of use: of this push up to next, then of the one before
	next    int
	misses  int
	index   map[K]V // of all entries, once this push has many misses
}

// indexAfter is the number of misses in a push, keys that are not next in order,
// after which an index of all entries is worth its cost. A few misses are new
// labels, but when a row is added or removed, all behind it miss.
const indexAfter = 32

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New returns an empty cache of what compute returns, which must be immutable.
func New[K comparable, V any](compute func(K) V) *Cache[K, V] { return &Cache[K, V]{compute: compute} }

// Len is the number of entries.
func (c *Cache[K, V]) Len() int { return len(c.entries) }

// NextPush begins a push. It evicts the entries that the last push did not use.
func (c *Cache[K, V]) NextPush() {
	clear(c.entries[c.next:])
	c.entries, c.next, c.misses, c.index = c.entries[:c.next], 0, 0, nil
}

// Get returns the value of a key. It is seldom computed again as long as every
// push uses it.
func (c *Cache[K, V]) Get(key K) V {
	at := c.next
	c.next++
	if at < len(c.entries) && c.entries[at].key == key {
		return c.entries[at].value
	}
	value := c.miss(key)
	if at == len(c.entries) {
		c.entries = append(c.entries, entry[K, V]{key, value})
	} else {
		c.entries[at] = entry[K, V]{key, value}
	}
	return value
}

func (c *Cache[K, V]) miss(key K) V {
	if c.misses++; c.misses <= indexAfter {
		return c.compute(key)
	}
	if c.index == nil {
		c.index = make(map[K]V, len(c.entries))
		for i := range c.entries {
			c.index[c.entries[i].key] = c.entries[i].value
		}
	}
	value, ok := c.index[key]
	if !ok {
		value = c.compute(key)
		c.index[key] = value
	}
	return value
}
