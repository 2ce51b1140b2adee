// Package porttest chooses ports for programs that tests start.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// chosen are the ports that Unused has returned.
var chosen sync.Map

// Unused returns ports of an address of this machine, "" for all of them, on which no
// process listens. It returns each port once. No connection uses a port before the
// program that it is meant for: the system takes the near end of connections from
// higher ports (net.ipv4.ip_local_port_range), as does a listener on port 0.
// Kubernetes has no node ports in this range. It is safe for concurrent use.
func Unused(host string, count int) ([]int, error) {
	const first, end, tries = 15000, 29000, 1000
	var ports []int
	var last error
	for range tries {
		if len(ports) == count {
			return ports, nil
		}
		port := first + rand.IntN(end-first)
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		listener.Close()
		if _, ok := chosen.LoadOrStore(port, true); !ok {
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("find %d free ports: %w", count, last)
}

// Address returns an address of the loopback interface with a port as Unused.
func Address() (string, error) {
	ports, err := Unused("127.0.0.1", 1)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0]), nil
}

// Addresses returns addresses as Address does, or ends the test.
func Addresses(t testing.TB, count int) []string {
	t.Helper()
	addresses := make([]string, count)
	for i := range addresses {
		var err error
		if addresses[i], err = Address(); err != nil {
			t.Fatal(err)
		}
	}
	return addresses
}

// OneAddress returns an address as Addresses does.
func OneAddress(t testing.TB) string {
	t.Helper()
	return Addresses(t, 1)[0]
}
