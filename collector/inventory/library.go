package inventory

// library keeps each distinct thing once, for as long as somebody has it:
// specifications of claims, what a device consumes, node selections. Things
// are the same if their keys are, and must not be changed.
type library[T any] struct {
	books map[string]*book[T]
}

// book is a thing of a library.
type book[T any] struct {
	thing   T
	key     string
	readers int
}

func newLibrary[T any]() *library[T] { return &library[T]{books: map[string]*book[T]{}} }

// lend gives the book with the key, which is written if there is none yet. A
// book that was lent is to be given back once.
func (l *library[T]) lend(key []byte, write func() T) *book[T] {
	found, known := l.books[string(key)]
	if !known {
		found = &book[T]{key: string(key), thing: write()}
		l.books[found.key] = found
	}
	found.readers++
	return found
}

// has reports whether there is a book with the key.
func (l *library[T]) has(key []byte) bool {
	_, known := l.books[string(key)]
	return known
}

// giveBack takes a book back; no book is fine. It reports whether nobody has
// it any more.
func (l *library[T]) giveBack(lent *book[T]) bool {
	if lent == nil {
		return false
	}
	lent.readers--
	if lent.readers == 0 {
		delete(l.books, lent.key)
	}
	return lent.readers == 0
}
