package simulated

import (
	"net"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// distortion is gRPC's codec, but for the answers that a trap spoils on
// their way to the wire.
type distortion struct {
	encoding.CodecV2
	traps func() traps
}

func (d distortion) Marshal(message any) (mem.BufferSlice, error) {
	encoded, err := d.CodecV2.Marshal(message)
	if _, listed := message.(*podresourcesv1.ListPodResourcesResponse); !listed || err != nil {
		return encoded, err
	}
	set := d.traps()
	if !set.has(Truncated) && !set.has(InvalidUTF8) {
		return encoded, nil
	}
	wire := encoded.Materialize()
	encoded.Free()
	if set.has(InvalidUTF8) || len(wire) == 0 {
		// Field 1 of the answer, a pod of three bytes: its field 1, the
		// name, is the one byte 0xff.
		wire = append(wire, 0x0a, 3, 0x0a, 1, 0xff)
	}
	if set.has(Truncated) {
		wire = wire[:len(wire)-1]
	}
	return mem.BufferSlice{mem.SliceBuffer(wire)}, nil
}

// listener holds the connections that it accepts instead of handing them on
// while deaf is set.
type listener struct {
	net.Listener
	deaf bool

	mu   sync.Mutex
	held []net.Conn
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil || !l.deaf {
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
