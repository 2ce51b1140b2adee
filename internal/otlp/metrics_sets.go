package otlp

// sets remembers what was made of label or attribute sets, for as long as they
// are asked for in each push: that costs a sort, a hash, an encoding, and
// labels live for hours. In most pushes all but a few are asked for in the
// order of the push before, so that this is a walk along a slice. It is not
// safe for concurrent use.
type sets[K comparable, V any] struct {
	build  func(K) V
	memo   []made[K, V] // what was asked for, in order: of this push up to next, then of the one before
	next   int
	strays int
	index  map[K]V // all that is remembered, once there are many strays in this push
}

// manyStrays is how many sets in a push are built where another was asked for
// in the push before, until an index of all is worth its cost: a few have new
// labels each time, but when a row comes or goes, all behind it are strays.
const manyStrays = 32

type made[K comparable, V any] struct {
	key   K
	value V
}

func newSets[K comparable, V any](build func(K) V) *sets[K, V] { return &sets[K, V]{build: build} }

// turn begins a push. What nobody has asked for since the last turn is
// forgotten.
func (s *sets[K, V]) turn() {
	clear(s.memo[s.next:])
	s.memo, s.next, s.strays, s.index = s.memo[:s.next], 0, 0, nil
}

// of returns what is made of a key. That is seldom built again as long as every
// turn asks for it.
func (s *sets[K, V]) of(key K) V {
	at := s.next
	s.next++
	if at < len(s.memo) && s.memo[at].key == key {
		return s.memo[at].value
	}
	value := s.stray(key)
	if at == len(s.memo) {
		s.memo = append(s.memo, made[K, V]{key, value})
	} else {
		s.memo[at] = made[K, V]{key, value}
	}
	return value
}

// stray finds what is asked for out of order, or builds it.
func (s *sets[K, V]) stray(key K) V {
	if s.strays++; s.strays <= manyStrays {
		return s.build(key)
	}
	if s.index == nil {
		s.index = make(map[K]V, len(s.memo))
		for i := range s.memo {
			s.index[s.memo[i].key] = s.memo[i].value
		}
	}
	value, found := s.index[key]
	if !found {
		value = s.build(key)
		s.index[key] = value
	}
	return value
}
