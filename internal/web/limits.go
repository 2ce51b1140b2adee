package web

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Limits that keep slow, idle, greedy or many clients from holding the server.
// One address may have a part of each alone, so that there is room for others.
const (
	maxConnections        = 1024
	maxConnectionsEach    = 128
	maxScrapes            = 16 // that are rendered at once
	maxScrapesEach        = 8
	maxRequests           = 32 // pages and JSON, that are rendered at once
	maxRequestsEach       = 16
	maxAnswers            = 256 // that are written at once
	maxAnswersEach        = 64
	maxAnswerBytes        = 32 << 20 // of them together
	maxAnswerBytesEach    = 16 << 20
	maxStreams            = 16 // of an HTTP/2 connection
	maxFrameBytes         = 16 << 10
	maxHeaderTableBytes   = 4 << 10
	maxStreamBufferBytes  = 64 << 10 // that a client may send; bodies are not read
	maxPasswordAddresses  = 1024     // whose attempts are counted
	maxKnownCredentials   = 64
	concurrentCredentials = 2 // of unknown credentials, that are checked at once
)

// share is a number of places of which one address may have a part.
type share struct {
	most, mostEach int64

	mu        sync.Mutex
	taken     int64
	byAddress map[string]int64
}

func newShare(most, mostEach int64) *share {
	return &share{most: most, mostEach: mostEach, byAddress: make(map[string]int64)}
}

// take takes places for an address, or reports that there are not so many.
// Connections of this machine come from many clients: by a port-forward, or by
// the proxy of a service mesh. They count in all alone.
func (s *share) take(address string, places int64) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken+places > s.most || !isLoopback(address) && s.byAddress[address]+places > s.mostEach {
		return nil, false
	}
	s.taken += places
	s.byAddress[address] += places
	return sync.OnceFunc(func() { s.leave(address, places) }), true
}

func (s *share) leave(address string, places int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= places
	if s.byAddress[address] -= places; s.byAddress[address] <= 0 {
		delete(s.byAddress, address)
	}
}

// addressOf is the host of a peer's address; of a peer without one, such as that
// of a vsock, all that is known.
func addressOf(peer string) string {
	if host, _, err := net.SplitHostPort(peer); err == nil {
		return host
	}
	return peer
}

func isLoopback(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.Unmap().IsLoopback()
}

// busy answers that there are too many requests. Nobody waits in a queue.
func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests in flight, try again later", http.StatusServiceUnavailable)
}

// boundedListener closes connections beyond the limits as soon as they come.
type boundedListener struct {
	net.Listener
	connections *share
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		leave, ok := l.connections.take(addressOf(connection.RemoteAddr().String()), 1)
		if !ok {
			connection.Close()
			continue
		}
		return &boundedConnection{Conn: connection, leave: leave}, nil
	}
}

type boundedConnection struct {
	net.Conn
	leave func()
}

// Close closes the connection and gives its place back.
func (c *boundedConnection) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite ends what the server writes, so that a client which still sends
// reads the answer first.
func (c *boundedConnection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
