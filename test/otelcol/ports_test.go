package otelcol

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// handedOut are the ports that tests have got so far.
var handedOut sync.Map

// freeAddresses are addresses of this machine at which nobody listens, and which
// nobody else gets before the program does for which they are: their ports are
// below those from which the system takes the near end of a connection.
func freeAddresses(t *testing.T, count int) []string {
	t.Helper()
	const first, end, tries = 15000, 32000, 1000
	var all []string
	for range tries {
		port := first + rand.IntN(end-first)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		listener.Close()
		if _, taken := handedOut.LoadOrStore(port, true); taken {
			continue
		}
		if all = append(all, listener.Addr().String()); len(all) == count {
			return all
		}
	}
	t.Fatal("no ports are free")
	return nil
}
