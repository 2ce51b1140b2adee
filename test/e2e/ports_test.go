package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// handedOut are the ports that tests have got so far.
var handedOut sync.Map

// unusedAddress is an address of this machine at which nobody listens. No other
// test gets it, and no connection takes it before the program does for which it
// is: the system takes the near end of a connection from higher ports, and
// Kubernetes has no ports of nodes among these.
func unusedAddress() (string, error) {
	const first, end, tries = 15000, 29000, 1000
	for range tries {
		port := first + rand.IntN(end-first)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		listener.Close()
		if _, taken := handedOut.LoadOrStore(port, true); !taken {
			return listener.Addr().String(), nil
		}
	}
	return "", errors.New("no port is free")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := unusedAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func freeAddresses(t *testing.T, count int) (addresses []string) {
	t.Helper()
	for range count {
		addresses = append(addresses, freeAddress(t))
	}
	return addresses
}
