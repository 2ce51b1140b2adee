package otelcol

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// handedOut are the ports that freeAddresses has returned.
var handedOut sync.Map

// freeAddresses returns addresses of this machine on which no process listens.
// It returns each address once. Their ports are below those that the system
// uses for the near end of connections.
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
