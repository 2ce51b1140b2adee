// Package objectfields counts what Kubernetes' objects consist of before they are
// decoded.
package objectfields

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// Max is how many fields an object, or what is decoded at once, may have. An
// object of two bytes takes a thousand once it is decoded. One of the largest
// size that the API server takes has some 150,000 fields.
const Max = 250_000

// Magic is what the API server's protobuf begins with.
const Magic = "k8s\x00"

// textBytes is after how many bytes something counts as a message even if what
// follows is none: a decoder takes in all that is before the fault. Text is no
// protobuf after fewer.
const textBytes = 128

// Count counts the fields of protobuf and of the messages within it, as
// far as they can be told from text without their descriptions; it ends at the
// limit.
func Count(raw []byte, limit int) int {
	c := counter{left: limit}
	c.count(raw, 0)
	return limit - c.left
}

type counter struct{ left int }

// maxNesting is more than that of any object.
const maxNesting = 30

func (c *counter) count(raw []byte, depth int) {
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

// isMessage reports whether something is a message, or begins with one.
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
