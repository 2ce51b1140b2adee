package watch

import (
	"encoding/binary"

	"github.com/dra-exporter/dra-exporter/collector/objectfields"
)

// framing measures the events of a watch while they are received.
type framing interface {
	// largest returns the size, as far as it is known, of the largest event
	// that the next bytes are part of.
	largest(next []byte) int64

	// fields is the largest number of fields or objects that an event had.
	fields() int

	// memory estimates how much memory all events together take once they are
	// decoded.
	memory() int64
}

// lengthFraming is the framing of protobuf: each event follows its length,
// which has four bytes, the most significant first.
type lengthFraming struct {
	header []byte
	left   int64 // of the present event
	limit  int64
	event  []byte // as far as it was received
	most   int    // fields of one event
	taken  int64  // memory of all events
}

func (f *lengthFraming) largest(next []byte) int64 {
	found := f.left
	for len(next) > 0 {
		if f.left > 0 {
			taken := min(f.left, int64(len(next)))
			f.event = append(f.event, next[:taken]...)
			next, f.left = next[taken:], f.left-taken
			if f.left == 0 {
				count := objectfields.Count(f.event, objectfields.Max+1)
				f.most = max(f.most, count)
				f.taken += int64(len(f.event)) + int64(count)*fieldMemory
				f.event = nil // one may be large, and most are small
			}
			continue
		}
		taken := min(4-len(f.header), len(next))
		f.header, next = append(f.header, next[:taken]...), next[taken:]
		if len(f.header) == 4 {
			f.left = int64(binary.BigEndian.Uint32(f.header))
			f.header = f.header[:0]
			if found = max(found, f.left); f.left > f.limit {
				return found // it will not be read
			}
		}
	}
	return found
}

func (f *lengthFraming) fields() int { return f.most }

func (f *lengthFraming) memory() int64 { return f.taken }

// jsonFraming is the framing of JSON: each event is an object. It counts the
// bytes from the end of one event to the end of the next.
type jsonFraming struct {
	depth   int
	text    bool // within a string
	escaped bool // after its backslash
	read    int64
	objects objectCounter
	most    int
	taken   int64 // memory of all events
}

func (f *jsonFraming) fields() int { return max(f.most, f.objects.objects) }

func (f *jsonFraming) memory() int64 { return f.taken }

func (f *jsonFraming) largest(next []byte) int64 {
	found := int64(0)
	for i, c := range next {
		f.read++
		f.objects.count(next[i : i+1])
		switch {
		case f.escaped:
			f.escaped = false
		case f.text:
			f.escaped = c == '\\'
			f.text = c != '"'
		case c == '"':
			f.text = true
		case c == '{' || c == '[':
			f.depth++
		case c == '}' || c == ']':
			if f.depth--; f.depth <= 0 {
				found = max(found, f.read)
				f.most = max(f.most, f.objects.objects)
				f.taken += f.read + int64(f.objects.objects)*fieldMemory
				f.depth, f.read, f.objects.objects = 0, 0, 0
			}
		}
	}
	return max(found, f.read)
}

// objectCounter counts the objects and nulls of JSON: the values that take more
// memory once they are decoded.
type objectCounter struct {
	text, escaped bool
	objects       int
}

func (c *objectCounter) count(next []byte) {
	for _, b := range next {
		switch {
		case c.escaped:
			c.escaped = false
		case c.text:
			c.escaped, c.text = b == '\\', b != '"'
		case b == '"':
			c.text = true
		case b == '{' || b == 'n':
			c.objects++
		}
	}
}
