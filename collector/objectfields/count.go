// Package objectfields counts the fields of encoded Kubernetes objects before they are
// decoded.
package objectfields

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// Max is the most fields of an object, or of a message that is decoded as a whole. An
// object of two bytes needs a thousand bytes when it is decoded. An object of the
// largest size that the API server accepts has some 150,000 fields.
const Max = 250_000

// Magic is the prefix of the API server's protobuf.
const Magic = "k8s\x00"

// textBytes is the length of a valid prefix from which on bytes count as a message: a
// decoder decodes everything before an error. In text, shorter prefixes are valid.
const textBytes = 128

// Count counts the fields of protobuf and of the messages within it, as
// far as they can be distinguished from text without descriptors. It stops at the
// limit.
func Count(raw []byte, limit int) int {
	c := fieldCounter{left: limit}
	c.count(raw, 0)
	return limit - c.left
}

type fieldCounter struct{ left int }

// maxNesting is more than the nesting of any object.
const maxNesting = 30

func (c *fieldCounter) count(raw []byte, depth int) {
	raw = bytes.TrimPrefix(raw, []byte(Magic))
	if depth > maxNesting || !isMessage(raw) {
		return
	}
	for len(raw) > 0 && c.left >= 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return
		}
		raw = raw[n:]
		if n = protowire.ConsumeFieldValue(number, kind, raw); n < 0 {
			return
		}
		if c.left--; kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(raw)
			c.count(inner, depth+1)
		}
		raw = raw[n:]
	}
}

// isMessage reports whether the bytes are a message, or begin with one.
func isMessage(raw []byte) bool {
	for read := 0; len(raw) > 0; {
		number, kind, tag := protowire.ConsumeTag(raw)
		if tag < 0 {
			return read >= textBytes
		}
		value := protowire.ConsumeFieldValue(number, kind, raw[tag:])
		if value < 0 {
			return read >= textBytes
		}
		if read += tag + value; read >= textBytes {
			return true
		}
		raw = raw[tag+value:]
	}
	return true
}
