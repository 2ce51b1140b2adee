package web

import (
	"fmt"
	"net"
	"testing"
)

// One address gets its part alone, all together no more than there is, and what
// is given back can be taken again.
func TestShare(t *testing.T) {
	s := newShare(10, 4)
	var leave []func()
	takes := func(address string, want int) {
		t.Helper()
		got := 0
		for range 20 {
			if back, ok := s.take(address, 1); ok {
				got++
				leave = append(leave, back)
			}
		}
		if got != want {
			t.Errorf("%s takes %d, not %d", address, got, want)
		}
	}
	takes("10.0.0.1", 4)
	takes("10.0.0.2", 4)
	takes("10.0.0.3", 2)
	for _, back := range leave {
		back()
		back() // a second time it gives nothing back
	}
	if leave = nil; s.taken != 0 || len(s.byAddress) != 0 {
		t.Errorf("%d are taken by %v when all were given back", s.taken, s.byAddress)
	}
	takes("127.0.0.1", 10) // a port-forward stands for many
}

func TestAddressOf(t *testing.T) {
	for peer, address := range map[string]string{"10.0.0.1:80": "10.0.0.1", "[::1]:80": "::1", "host(2):9420": "host(2)", "@": "@", "": ""} {
		if got := addressOf(peer); got != address {
			t.Errorf("%q is of %q", peer, got)
		}
	}
	for address, loopback := range map[string]bool{"127.0.0.6": true, "::1": true, "::ffff:127.0.0.1": true, "10.0.0.1": false, "localhost": false, "": false} {
		if isLoopback(address) != loopback {
			t.Errorf("%q is taken for loopback: %v", address, !loopback)
		}
	}
}

// distant is a connection that seems to come from an address.
type distant struct {
	net.Conn
	from net.Addr
}

func (d *distant) RemoteAddr() net.Addr { return d.from }

// flood is a listener with many connections of a few addresses.
type flood struct {
	net.Listener
	left int
}

func (f *flood) Accept() (net.Conn, error) {
	if f.left == 0 {
		return nil, net.ErrClosed
	}
	f.left--
	near, far := net.Pipe()
	far.Close()
	return &distant{near, &net.TCPAddr{IP: net.IPv4(10, 0, 0, byte(f.left%3)), Port: f.left}}, nil
}

func TestConnectionsAreBounded(t *testing.T) {
	l := &boundedListener{Listener: &flood{left: 3000}, connections: newShare(maxConnections, maxConnectionsEach)}
	byAddress := map[string]int{}
	var open []net.Conn
	for {
		connection, err := l.Accept()
		if err != nil {
			break
		}
		open = append(open, connection)
		byAddress[addressOf(connection.RemoteAddr().String())]++
	}
	if want := "map[10.0.0.0:128 10.0.0.1:128 10.0.0.2:128]"; fmt.Sprint(byAddress) != want {
		t.Errorf("accepted are %v", byAddress)
	}
	for _, connection := range open {
		connection.Close()
	}
	if l.connections.taken != 0 {
		t.Errorf("%d are open when all are closed", l.connections.taken)
	}
}
