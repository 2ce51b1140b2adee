package kubelet

import (
	"bytes"
	"net"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// rawCodec sends bytes as they are.
type rawCodec struct{ encoding.CodecV2 }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }

// answering serves one response to every call.
func answering(t *testing.T, answer []byte) (socket string) {
	t.Helper()
	socket = freshSocket(t)
	listener, err := net.Listen("unix", socket)
	must(t, err)
	server := grpc.NewServer(grpc.MaxSendMsgSize(64<<20), grpc.ForceServerCodecV2(rawCodec{encoding.GetCodecV2(proto.Name)}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return stream.SendMsg(answer) }))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return socket
}

// field encodes a length-delimited field of protobuf.
func field(number byte, inner []byte) []byte {
	head := []byte{number<<3 | 2}
	for n := len(inner); ; n >>= 7 {
		if n < 0x80 {
			return append(append(head, byte(n)), inner...)
		}
		head = append(head, byte(n)|0x80)
	}
}

// TestAnswersOfEmptyEntries checks that a response of many empty entries is refused
// before it is decoded, with the limit in the error.
func TestAnswersOfEmptyEntries(t *testing.T) {
	const fill = 15 << 20
	inContainer := func(inner []byte) []byte { return field(1, field(3, inner)) }
	for what, test := range map[string]struct {
		answer []byte
		want   string
	}{
		"pods":           {bytes.Repeat(field(1, nil), fill/2), "the limit of 10000 pods"},
		"containers":     {field(1, bytes.Repeat(field(3, nil), fill/2)), "the limit of 200000 entries"},
		"devices":        {inContainer(bytes.Repeat(field(2, nil), fill/2)), "the limit of 200000 entries"},
		"CDI devices":    {inContainer(field(5, field(4, bytes.Repeat(field(1, nil), fill/2)))), "the limit of 200000 entries"},
		"NUMA nodes":     {inContainer(field(2, field(3, bytes.Repeat(field(1, nil), fill/2)))), "the limit of 200000 entries"},
		"device ids":     {inContainer(field(2, bytes.Repeat(field(2, nil), fill/2))), "the limit of 1000000 ids"},
		"CPUs":           {inContainer(field(3, make([]byte, fill))), "the limit of 1000000 ids"},
		"CPUs of pods":   {field(1, field(4, make([]byte, fill))), "the limit of 1000000 ids"},
		"memory of pods": {field(1, bytes.Repeat(field(5, nil), fill/2)), "the limit of 200000 entries"},
		"single CPUs":    {inContainer(bytes.Repeat([]byte{3 << 3, 1}, fill/2)), "the limit of 1000000 ids"},
	} {
		t.Run(what, func(t *testing.T) {
			client := New(Options{Socket: answering(t, test.answer)})
			defer client.disconnect()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := client.fetch(t.Context())
			runtime.ReadMemStats(&after)
			if err == nil || source.ReasonOf(err) != source.ReasonResourceExhausted || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 80 {
				t.Errorf("it allocated %d MiB", allocated)
			}
		})
	}
}

// TestCountedAnswersAreDecoded checks that the count accepts a response at the limit,
// and leaves invalid protobuf to the decoder.
func TestCountedAnswersAreDecoded(t *testing.T) {
	pod := field(1, append(append(field(1, []byte("train")), field(2, []byte("ml"))...), field(3, field(1, []byte("main")))...))
	client := New(Options{Socket: answering(t, bytes.Repeat(pod, maxPods))})
	defer client.disconnect()
	if answer, err := client.fetch(t.Context()); err != nil || len(answer.GetPodResources()) != maxPods {
		t.Errorf("%d pods, %v", len(answer.GetPodResources()), err)
	}
	broken := New(Options{Socket: answering(t, []byte{0x0a, 0x05, 0x01})})
	defer broken.disconnect()
	if _, err := broken.fetch(t.Context()); source.ReasonOf(err) != source.ReasonInvalid {
		t.Errorf("no protobuf: %v", err)
	}
}
