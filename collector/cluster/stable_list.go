package cluster

import "slices"

// stableList is a list that is the same in memory as long as its values are the same.
type stableList[T comparable] struct{ list, next []T }

func (l *stableList[T]) add(value T) { l.next = append(l.next, value) }

// take returns what was added since the last call. The list must not be changed.
func (l *stableList[T]) take() []T {
	if !slices.Equal(l.next, l.list) {
		l.list = slices.Clone(l.next)
	}
	clear(l.next)
	l.next = l.next[:0]
	return l.list
}
