package kubelet

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxAnswer is the largest response, in bytes: what Kubernetes' own node tests
// allow. gRPC's default of 4 MiB is too small for a full node.
const maxAnswer = 16 << 20

// Limits of a response. An empty entry takes two bytes on the wire and a hundred
// times that decoded. A full node with 1,000 pods
// has some 25,000 entries.
const (
	maxPods    = 10_000
	maxEntries = 200_000   // of all kinds: pods, containers, devices and what those consist of
	maxValues  = 1_000_000 // ids of devices and of CPUs
)

// countingCodec is gRPC's codec for protobuf that refuses responses with too many
// entries before it decodes them.
type countingCodec struct{ encoding.CodecV2 }

func newCountingCodec() countingCodec { return countingCodec{encoding.GetCodecV2(proto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c countingCodec) Unmarshal(data mem.BufferSlice, into any) error {
	message, ok := into.(protoadapt.MessageV2)
	if !ok {
		return c.CodecV2.Unmarshal(data, into)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	var counted entries
	if err := counted.add(message.ProtoReflect().Descriptor(), whole.ReadOnlyData(), 0); err != nil {
		return err
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{whole}, into)
}

// entries counts the parts of a message.
type entries struct{ pods, all, values int }

// maxDepth is more than the depth of PodResources' messages.
const maxDepth = 10

// add counts the messages within one, and the values of its repeated fields.
// The decoder refuses what is no protobuf.
func (e *entries) add(kind protoreflect.MessageDescriptor, raw []byte, depth int) error {
	for len(raw) > 0 && depth < maxDepth {
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
		e.values++
		if field.IsPacked() && wire == protowire.BytesType {
			e.values += len(value) // at least one byte each
		}
	case field.Message() != nil && wire == protowire.BytesType:
		e.all++
		if depth == 0 {
			e.pods++
		}
		inner, _ := protowire.ConsumeBytes(value)
		if err := e.add(field.Message(), inner, depth+1); err != nil {
			return err
		}
	}
	return e.check()
}

// check returns an error whose text diagnose recognizes: gRPC keeps only the text
// of a codec's error.
func (e *entries) check() error {
	switch {
	case e.pods > maxPods:
		return fmt.Errorf("%s %d pods", moreThan, maxPods)
	case e.all > maxEntries:
		return fmt.Errorf("%s %d entries", moreThan, maxEntries)
	case e.values > maxValues:
		return fmt.Errorf("%s %d ids of devices and CPUs", moreThan, maxValues)
	default:
		return nil
	}
}

const moreThan = "the answer has more than"
