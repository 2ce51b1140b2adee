package apiserver

import "encoding/binary"

// framing finds out how large the events of a watch are while they come.
type framing interface {
	// largest takes in the next bytes and returns the size, as far as it is
	// known, of the largest event that they are part of.
	largest(next []byte) int64
}

// lengthFraming is that of protobuf: each event has its length, four bytes
// most significant first, before it.
type lengthFraming struct {
	header []byte
	left   int64 // of the present event
}

func (f *lengthFraming) largest(next []byte) int64 {
	found := f.left
	for len(next) > 0 {
		if f.left > 0 {
			skipped := min(f.left, int64(len(next)))
			next, f.left = next[skipped:], f.left-skipped
			continue
		}
		taken := min(4-len(f.header), len(next))
		f.header, next = append(f.header, next[:taken]...), next[taken:]
		if len(f.header) == 4 {
			f.left = int64(binary.BigEndian.Uint32(f.header))
			f.header = f.header[:0]
			found = max(found, f.left)
		}
	}
	return found
}

// jsonFraming is that of JSON: events follow upon one another, and each is an
// object. It counts what comes from the end of one to the end of the next.
type jsonFraming struct {
	depth   int
	text    bool // within a string
	escaped bool // after its backslash
	read    int64
}

func (f *jsonFraming) largest(next []byte) int64 {
	found := int64(0)
	for _, c := range next {
		f.read++
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
				f.depth, f.read = 0, 0
			}
		}
	}
	return max(found, f.read)
}
