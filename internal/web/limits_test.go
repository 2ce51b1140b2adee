package web

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fakeConnection has an address, and records that it was closed.
type fakeConnection struct {
	net.Conn
	address string
	closed  atomic.Bool
}

func (f *fakeConnection) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(f.address), Port: 1}
}
func (f *fakeConnection) Close() error { f.closed.Store(true); return nil }

// openConnections opens one connection for each address.
func openConnections(c *connections, addresses ...string) []*clientConnection {
	var opened []*clientConnection
	for _, address := range addresses {
		opened = append(opened, c.add(&fakeConnection{address: address}))
	}
	return opened
}

func isClosed(c *clientConnection) bool { return c.Conn.(*fakeConnection).closed.Load() }

// TestConnectionsAreEvicted checks which connections are replaced beyond the limits: one
// that has received a page only if there is no other.
func TestConnectionsAreEvicted(t *testing.T) {
	limit := newConnections(4, 2)
	opened := openConnections(limit, "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	opened[0].setReceived()
	second := openConnections(limit, "10.0.0.1")[0]
	if !isClosed(opened[1]) || isClosed(opened[0]) || isClosed(second) {
		t.Error("the third connection of a client did not replace the one without a page")
	}
	opened[2].progressed(time.Unix(1, 0))
	fifth := openConnections(limit, "10.0.0.4")[0]
	if !isClosed(opened[3]) || isClosed(fifth) || isClosed(opened[2]) {
		t.Error("the fifth connection did not replace the oldest without progress")
	}
	for _, one := range append(opened, second, fifth) {
		_ = one.Close()
		_ = one.Close()
	}
	if len(limit.open) != 0 || len(limit.ofClient) != 0 {
		t.Errorf("%d connections and %d clients are kept", len(limit.open), len(limit.ofClient))
	}
}

// TestFloodsEvictTheirOwnConnections checks which clients keep their connections while
// others open one after the other.
func TestFloodsEvictTheirOwnConnections(t *testing.T) {
	addresses := func(format string, count int) []string {
		made := make([]string, count)
		for i := range made {
			made[i] = fmt.Sprintf(format, i+1)
		}
		return made
	}
	repeated := func(address string) []string { return slices.Repeat([]string{address}, 1000) }
	for name, test := range map[string]struct {
		others []string // are connected first, and have read a page
		flood  []string // each reads a page as well
		client string   // connects within the flood, and later reads a page
	}{
		"one address":                       {addresses("10.1.0.%d", 100), repeated("10.2.0.1"), "10.0.0.1"},
		"one address of the loopback":       {addresses("10.1.0.%d", 100), repeated("127.0.0.2"), "127.0.0.1"},
		"one address of the client's /64":   {addresses("10.1.0.%d", 100), repeated("fd00:1::2"), "fd00:1::1"},
		"two addresses":                     {addresses("10.1.0.%d", 8), slices.Concat(repeated("10.2.0.1"), repeated("10.2.0.2")), "10.0.0.1"},
		"all addresses of a /64":            {addresses("10.1.0.%d", 100), addresses("fd00:1::%x", 1000), "fd00:2::1"},
		"all addresses of the client's /64": {addresses("10.1.0.%d", 100), addresses("fd00:1::2:%x", 1000), "fd00:1::1"},
		"a link-local network":              {addresses("10.1.0.%d", 100), addresses("fe80::2:%x%%eth0", 1000), "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := newConnections(maxConnections, maxConnectionsOfClient)
			kept := openConnections(limit, test.others...)
			for _, other := range kept {
				other.setReceived()
			}
			for i, address := range test.flood {
				openConnections(limit, address)[0].setReceived()
				if i%20 == 0 {
					client := openConnections(limit, test.client)[0]
					for _, address := range test.flood[i/2 : i/2+min(20, i/2)] {
						openConnections(limit, address)[0].setReceived()
					}
					if isClosed(client) {
						t.Fatalf("the client's connection is closed after %d others", i)
					}
					_ = client.Close()
				}
			}
			for i, other := range kept {
				if isClosed(other) {
					t.Fatalf("the connection of %s is closed", test.others[i])
				}
			}
			if len(limit.open) > maxConnections {
				t.Errorf("%d connections are open", len(limit.open))
			}
		})
	}
}

// TestFloodOfManyAddresses checks that no connection that serves a request is closed
// while another one is idle, and none of the newest, if each address has one.
func TestFloodOfManyAddresses(t *testing.T) {
	limit := newConnections(maxConnections, maxConnectionsOfClient)
	address := func(i int) string { return fmt.Sprintf("10.%d.%d.1", 1+i/250, i%250) }
	serving := openConnections(limit, "10.0.0.1")[0]
	serving.serve()
	var idle []*clientConnection
	for i := range maxConnections - 1 {
		idle = append(idle, openConnections(limit, address(i))...)
		idle[i].setReceived()
	}
	client := openConnections(limit, "10.0.0.2")[0]
	if !isClosed(idle[0]) || isClosed(idle[1]) {
		t.Error("the oldest idle connection was not replaced")
	}
	for i := range maxConnections/4 - 1 {
		openConnections(limit, address(1000+i))
	}
	if isClosed(client) {
		t.Error("a new connection was replaced before its request could come")
	}
	for i := range 1000 {
		openConnections(limit, address(2000+i))
	}
	if isClosed(serving) {
		t.Error("a connection that serves a request was replaced")
	}
	if !isClosed(client) {
		t.Error("a connection without a request is kept beside a thousand newer ones")
	}
	for one := range limit.open {
		_ = one.Close()
	}
	if len(limit.ofClient)+len(limit.ofNetwork) != 0 {
		t.Errorf("%d clients and %d networks are kept", len(limit.ofClient), len(limit.ofNetwork))
	}
}

// pageOf renders a page of this many bytes.
func pageOf(size int) *rendered {
	return render(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", size))
	}), httptest.NewRequest(http.MethodGet, "/", nil))
}

// startWrites begins to write the page to each connection.
func startWrites(t *testing.T, s *writes, page *rendered, to ...*clientConnection) []*write {
	t.Helper()
	var started []*write
	for i, connection := range to {
		one, err := s.start(page, connection, time.Unix(int64(i), 0))
		if err != nil {
			t.Fatal(err)
		}
		started = append(started, one)
	}
	return started
}

// TestWritesAreEvicted checks the bound of the memory of unfinished pages: clients of the
// address with the most bytes are disconnected first. A page that several clients
// receive counts once.
func TestWritesAreEvicted(t *testing.T) {
	limit, bounded := newConnections(100, 100), newWrites(100, 4, 10_000)
	shared := pageOf(5_000)
	together := startWrites(t, bounded, shared, openConnections(limit, "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.3")...)
	if bounded.bytes != 5_000 {
		t.Errorf("four writes of one page count %d bytes", bounded.bytes)
	}
	bounded.end(together[0])
	bounded.end(together[3])
	startWrites(t, bounded, pageOf(2_000), openConnections(limit, "10.0.0.4")...)
	startWrites(t, bounded, pageOf(2_000), openConnections(limit, "10.0.0.5")...)
	newest := openConnections(limit, "10.0.0.6")
	startWrites(t, bounded, pageOf(2_000), newest...)
	if !isClosed(together[1].connection) || !isClosed(together[2].connection) || isClosed(newest[0]) {
		t.Error("the client with the most bytes was not disconnected")
	}
	if bounded.bytes > 10_000 {
		t.Errorf("%d bytes are kept", bounded.bytes)
	}
	large := startWrites(t, bounded, pageOf(20_000), openConnections(limit, "10.0.0.7")...)
	if bounded.bytes > pagesKept*20_000 || isClosed(large[0].connection) {
		t.Errorf("a large page has no room: %d bytes", bounded.bytes)
	}
	for one := range bounded.open {
		bounded.end(one)
	}
	if bounded.bytes != 0 || len(bounded.pages)+len(bounded.ofClient)+len(bounded.ofConnection) != 0 {
		t.Errorf("%d bytes, %d pages, %d clients are kept", bounded.bytes, len(bounded.pages), len(bounded.ofClient))
	}
}

// TestOrderOfEvictedWrites checks that a client that reads is not disconnected in favour
// of one that does not, and the bound of one HTTP/2 connection.
func TestOrderOfEvictedWrites(t *testing.T) {
	limit, bounded := newConnections(100, 100), newWrites(3, 2, 1<<20)
	several := openConnections(limit, "10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.1")
	several[0].setReceived()
	page := pageOf(100)
	begun := startWrites(t, bounded, page, several[0], several[1], several[2])
	bounded.progressed(begun[1], time.Unix(100, 0))
	startWrites(t, bounded, page, several[3])
	if !isClosed(several[2]) || isClosed(several[0]) || isClosed(several[1]) {
		t.Error("it was not the one without progress for longest")
	}
	bounded = newWrites(100, 2, 1<<20)
	startWrites(t, bounded, page, several[3], several[3])
	if _, err := bounded.start(page, several[3], time.Unix(200, 0)); err == nil {
		t.Error("one connection has no bound")
	}
}

// TestSlots checks the bounds of requests, in all and of one client.
func TestSlots(t *testing.T) {
	bounded := newRenderLimiter(1, 3, 2)
	entered := ""
	for _, client := range []string{"a", "a", "a", "b", "c"} {
		if bounded.enter(client) {
			entered += client
		}
	}
	if entered != "aab" {
		t.Errorf("%s entered, want aab", entered)
	}
	for _, client := range []string{"a", "a", "b"} {
		bounded.leave(client)
	}
	// A loopback address can be that of many clients.
	local := 0
	for range 5 {
		if bounded.enter("127.0.0.1") {
			local++
		}
	}
	if local != 3 {
		t.Errorf("an address of the loopback interface enters %d times, want 3, as many as all may", local)
	}
	for range local {
		bounded.leave("127.0.0.1")
	}
	if bounded.requests != 0 || len(bounded.ofClient) != 0 {
		t.Errorf("%d requests of %d clients are left", bounded.requests, len(bounded.ofClient))
	}
}

func TestAddressOf(t *testing.T) {
	for peer, address := range map[string]string{"10.0.0.1:80": "10.0.0.1", "[::1]:80": "::1", "host(2):9420": "host(2)", "@": "@", "": ""} {
		if got := peerAddress(peer); got != address {
			t.Errorf("the address of %q is %q", peer, got)
		}
	}
	for address, loopback := range map[string]bool{"127.0.0.6": true, "::1": true, "::ffff:127.0.0.1": true, "10.0.0.1": false, "localhost": false, "": false} {
		if isLoopback(address) != loopback {
			t.Errorf("%q is loopback: %v", address, !loopback)
		}
	}
}
