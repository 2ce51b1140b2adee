package objectfields

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Entries counts the parts of a message of protobuf whose descriptor is known. An
// empty entry takes two bytes, and a hundred times that when it is decoded.
type Entries struct {
	Top    int // messages directly within the message
	All    int // messages within it
	Values int // of repeated fields that are no messages
}

// codec is gRPC's codec for protobuf that checks a message before it decodes it.
type codec struct {
	encoding.CodecV2

	check func(Entries) error
}

// Codec returns gRPC's codec for protobuf that decodes no message for which check
// returns an error. It counts no further than that.
func Codec(check func(Entries) error) encoding.CodecV2 {
	return codec{encoding.GetCodecV2(proto.Name), check}
}

// AtMost is a check that refuses a message with more than limit entries and values.
func AtMost(limit int) func(Entries) error {
	return func(e Entries) error {
		if e.All+e.Values > limit {
			return fmt.Errorf("the message has more than %d entries", limit)
		}
		return nil
	}
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, target any) error {
	message, ok := target.(protoadapt.MessageV2)
	if !ok {
		return c.CodecV2.Unmarshal(data, target)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	counted := entries{check: c.check}
	if err := counted.add(message.ProtoReflect().Descriptor(), whole.ReadOnlyData(), 0); err != nil {
		return err
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{whole}, target)
}

// entries counts until check returns an error.
type entries struct {
	Entries

	check func(Entries) error
}

// maxDepth is more than the depth of the messages that are counted so. What is
// deeper counts as empty entries.
const maxDepth = 10

// add counts the messages within one, and the values of its repeated fields.
// The decoder refuses what is no protobuf.
func (e *entries) add(kind protoreflect.MessageDescriptor, raw []byte, depth int) error {
	if depth == maxDepth {
		e.All += len(raw) / 2
		return e.check(e.Entries)
	}
	for len(raw) > 0 {
		number, wire, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return nil
		}
		raw = raw[n:]
		if n = protowire.ConsumeFieldValue(number, wire, raw); n < 0 {
			return nil
		}
		value := raw[:n]
		raw = raw[n:]
		if err := e.addField(kind.Fields().ByNumber(number), wire, value, depth); err != nil {
			return err
		}
	}
	return nil
}

func (e *entries) addField(field protoreflect.FieldDescriptor, wire protowire.Type, value []byte, depth int) error {
	switch {
	case field == nil:
		return nil // unknown fields are kept as bytes
	case field.Message() == nil && field.IsList():
		e.Values++
		if field.IsPacked() && wire == protowire.BytesType {
			e.Values += len(value) // at least one byte each
		}
	case field.Message() != nil && wire == protowire.BytesType:
		e.All++
		if depth == 0 {
			e.Top++
		}
		inner, _ := protowire.ConsumeBytes(value)
		if err := e.add(field.Message(), inner, depth+1); err != nil {
			return err
		}
	}
	return e.check(e.Entries)
}
