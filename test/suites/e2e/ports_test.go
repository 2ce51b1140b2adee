package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// handedOut are the ports that unusedAddress has returned.
var handedOut sync.Map

// unusedAddress returns an address of this machine on which no process
// listens. It returns each address once. No connection uses its port before
// the program that it is meant for: the system uses higher ports for the near
// end of connections, and Kubernetes has no node ports in this range.
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
