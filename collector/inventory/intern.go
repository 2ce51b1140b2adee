package inventory

import "strings"

// textTable keeps each text once and assigns it a small number, so that devices
// with the same attributes share them and can be compared by integers. A number
// is assigned to its text while the text has users, and until the next sweep
// after that.
type textTable struct {
	numbers map[string]uint32
	texts   []string // by number
	users   []uint32 // by number
	unused  int      // texts without users that have not been swept
	free    []uint32 // swept numbers
	sweeps  int      // numbers from before a sweep must not be used after it
}

func newTextTable() *textTable { return &textTable{numbers: map[string]uint32{}} }

// acquire returns the number of a text. Each call needs one release.
func (t *textTable) acquire(text string) uint32 {
	if number, ok := t.numbers[text]; ok {
		if t.users[number] == 0 {
			t.unused--
		}
		t.users[number]++
		return number
	}
	text = strings.Clone(text) // do not keep the whole object that it came with
	number := uint32(len(t.texts))
	if last := len(t.free) - 1; last >= 0 {
		number, t.free = t.free[last], t.free[:last]
	} else {
		t.texts, t.users = append(t.texts, ""), append(t.users, 0)
	}
	t.numbers[text], t.texts[number], t.users[number] = number, text, 1
	return number
}

func (t *textTable) release(number uint32) {
	t.users[number]--
	if t.users[number] == 0 {
		t.unused++
	}
}

func (t *textTable) text(number uint32) string { return t.texts[number] }

// sweepIfSparse sweeps if most texts have no users, and reports whether it did.
func (t *textTable) sweepIfSparse() bool {
	if t.unused <= 1024 || t.unused <= len(t.numbers)/2 {
		return false
	}
	t.sweep()
	return true
}

// sweep removes the texts without users. A number may then be assigned to
// another text: numbers that were remembered without acquire are invalid.
func (t *textTable) sweep() {
	for text, number := range t.numbers {
		if t.users[number] == 0 {
			delete(t.numbers, text)
			t.texts[number] = ""
			t.free = append(t.free, number)
		}
	}
	t.unused = 0
	t.sweeps++
}

// internPool keeps each distinct value once, while it has users. Values are
// equal if their keys are equal, and must not be changed.
type internPool[T any] struct {
	values map[string]*interned[T]
}

// interned is a value of an internPool.
type interned[T any] struct {
	value T
	key   string
	users int
}

func newInternPool[T any]() *internPool[T] { return &internPool[T]{values: map[string]*interned[T]{}} }

// acquire returns the value with the key, and makes it if there is none. Each
// call needs one release.
func (p *internPool[T]) acquire(key []byte, build func() T) *interned[T] {
	found, ok := p.values[string(key)]
	if !ok {
		found = &interned[T]{key: string(key), value: build()}
		p.values[found.key] = found
	}
	found.users++
	return found
}

// acquireFor is acquire with the encoded object as the key. It returns nil for
// an object that cannot be encoded, which did not come from the API server.
func (p *internPool[T]) acquireFor(object interface{ Marshal() ([]byte, error) }, build func() T) *interned[T] {
	key, err := object.Marshal()
	if err != nil {
		return nil
	}
	return p.acquire(key, build)
}

func (p *internPool[T]) has(key []byte) bool {
	_, ok := p.values[string(key)]
	return ok
}

// release ends one use of a value, which may be nil. It reports whether that
// was the last use.
func (p *internPool[T]) release(used *interned[T]) bool {
	if used == nil {
		return false
	}
	used.users--
	if used.users == 0 {
		delete(p.values, used.key)
	}
	return used.users == 0
}
