package objectfields_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dra-exporter/dra-exporter/collector/objectfields"
)

// A message of many small parts is refused before it is decoded.
func TestCodec(t *testing.T) {
	for name, c := range map[string]struct {
		part []byte
		want string
	}{
		"messages":         {[]byte{4<<3 | 2, 0}, "the message has more than 1000 entries"}, // message_type
		"texts":            {[]byte{3<<3 | 2, 0}, "the message has more than 1000 entries"}, // dependency
		"numbers":          {[]byte{10 << 3, 1}, "the message has more than 1000 entries"},  // public_dependency
		"unknown fields":   {[]byte{13<<3 | 2, 0}, ""},
		"no list":          {[]byte{1<<3 | 2, 0}, ""}, // name
		"what is no field": {[]byte{0xff}, "cannot parse"},
	} {
		var file descriptorpb.FileDescriptorProto
		err := objectfields.Codec(objectfields.AtMost(1000)).Unmarshal(mem.BufferSlice{mem.SliceBuffer(bytes.Repeat(c.part, 1001))}, &file)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// What is deeper than messages are is not skipped.
func TestCodecOfNestedMessages(t *testing.T) {
	nested := bytes.Repeat([]byte{3<<3 | 2, 0}, 2000) // nested_type
	for range 12 {
		field := append([]byte{3<<3 | 2}, varint(len(nested))...)
		nested = append(field, nested...)
	}
	var message descriptorpb.DescriptorProto
	if err := objectfields.Codec(objectfields.AtMost(1000)).Unmarshal(mem.BufferSlice{mem.SliceBuffer(nested)}, &message); err == nil || !strings.Contains(err.Error(), "more than 1000 entries") {
		t.Errorf("got %v", err)
	}
}

func varint(n int) []byte {
	var all []byte
	for ; n >= 0x80; n >>= 7 {
		all = append(all, byte(n)|0x80)
	}
	return append(all, byte(n))
}
