package simulated

import (
	"net"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// faultyCodec is gRPC's codec with the faults that change encoded responses.
type faultyCodec struct {
	encoding.CodecV2
	faults func() faults
}

func (d faultyCodec) Marshal(message any) (mem.BufferSlice, error) {
	encoded, err := d.CodecV2.Marshal(message)
	if _, ok := message.(*podresourcesv1.ListPodResourcesResponse); !ok || err != nil {
		return encoded, err
	}
	set := d.faults()
	if !set.has(Truncated) && !set.has(InvalidUTF8) {
		return encoded, nil
	}
	wire := encoded.Materialize()
	encoded.Free()
	if set.has(InvalidUTF8) || len(wire) == 0 {
		// Field 1 of the response, a pod of three bytes: its field 1, the
		// name, is the byte 0xff.
		wire = append(wire, 0x0a, 3, 0x0a, 1, 0xff)
	}
	if set.has(Truncated) {
		wire = wire[:len(wire)-1]
	}
	return mem.BufferSlice{mem.SliceBuffer(wire)}, nil
}

// listener accepts connections. If it is silent, it keeps them open and does not
// return them.
type listener struct {
	net.Listener
	silent bool

	mu   sync.Mutex
	held []net.Conn
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil || !l.silent {
			return accepted, err
		}
		l.mu.Lock()
		l.held = append(l.held, accepted)
		l.mu.Unlock()
	}
}

func (l *listener) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, connection := range l.held {
		_ = connection.Close() // nothing was ever written to it
	}
	l.held = nil
	return err
}
