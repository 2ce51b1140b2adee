package web

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// connections bounds the number of open connections, in all and by client address,
// before authentication. Beyond a bound, a new connection replaces another one:
//
//  1. one of the network and the address with the most connections, if these are more
//     than fewConnections, so that a flood of one address closes its own;
//  2. one that serves no request before one that does, and one of the newest, whose
//     request may be about to come, after those without a request;
//  3. one that has never received a whole page before one that has;
//  4. the one without progress for longest.
//
// A new one is never refused, so that clients cannot exclude others by holding
// connections open.
type connections struct {
	max, maxOfClient int
	check            func() error // before what a client has sent is used; nil: none

	mu        sync.Mutex
	open      map[*clientConnection]struct{}
	ofClient  map[string]int
	ofNetwork map[string]int
	accepted  uint64
}

func newConnections(most, mostOfClient int) *connections {
	return &connections{
		max: most, maxOfClient: mostOfClient,
		open: map[*clientConnection]struct{}{}, ofClient: map[string]int{}, ofNetwork: map[string]int{},
	}
}

// limit returns the listener with the bounds of c. Several listeners can share them.
func (c *connections) limit(listener net.Listener) net.Listener {
	return &limitedListener{Listener: listener, connections: c}
}

type limitedListener struct {
	net.Listener
	connections *connections
}

func (l *limitedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if tcp, ok := accepted.(*net.TCPConn); ok {
		// The kernel buffers what a client does not read, up to this size for each
		// connection. The default grows to several MiB.
		_ = tcp.SetWriteBuffer(socketWriteBuffer) // if it fails, the default is the bound
	}
	return l.connections.add(accepted), nil
}

// clientConnection is an open connection of a client.
type clientConnection struct {
	net.Conn
	owner   *connections
	client  string
	network string
	number  uint64

	idle         atomic.Bool // only idleTimeout bounds reads
	progressedAt time.Time   // when it last received a part of a response; guarded by owner.mu
	received     bool        // it has received a whole page; guarded by owner.mu
	requests     int         // that are being served; guarded by owner.mu
	closed       bool        // guarded by owner.mu
}

func (c *connections) add(accepted net.Conn) *clientConnection {
	client := peerAddress(accepted.RemoteAddr().String())
	added := &clientConnection{Conn: accepted, owner: c, client: client, network: network(client)}
	c.mu.Lock()
	added.number = c.accepted
	c.accepted++
	c.open[added] = struct{}{}
	c.ofClient[added.client]++
	c.ofNetwork[added.network]++
	var replaced *clientConnection
	switch {
	case c.ofClient[added.client] > clientLimit(added.client, c.max, c.maxOfClient):
		replaced = c.evictable(added, added.client)
	case len(c.open) > c.max:
		replaced = c.evictable(added, "")
	}
	c.mu.Unlock()
	if replaced != nil {
		_ = replaced.Close() // it is closed even with an error
	}
	return added
}

// evictable returns the connection to replace: one of the client, or of all clients if
// client is empty.
func (c *connections) evictable(added *clientConnection, client string) *clientConnection {
	var least *clientConnection
	for open := range c.open {
		if open == added || client != "" && open.client != client {
			continue
		}
		if least == nil || open.before(least) {
			least = open
		}
	}
	return least
}

// before reports whether c is to be replaced rather than other.
func (c *clientConnection) before(other *clientConnection) bool {
	o := c.owner
	return cmp.Or(
		cmp.Compare(excess(o.ofNetwork[other.network]), excess(o.ofNetwork[c.network])),
		cmp.Compare(excess(o.ofClient[other.client]), excess(o.ofClient[c.client])),
		cmp.Compare(c.use(), other.use()),
		c.progressedAt.Compare(other.progressedAt),
		cmp.Compare(c.number, other.number),
	) < 0
}

// excess returns the number of connections if it is more than a client needs, else 0:
// small numbers say nothing about a client.
func excess(open int) int {
	if open <= fewConnections {
		return 0
	}
	return open
}

// use ranks how much is lost if the connection is closed.
func (c *clientConnection) use() int {
	switch {
	case c.requests > 0:
		return 3
	case c.owner.accepted-c.number <= uint64(c.owner.max/4):
		return 2
	case c.received:
		return 1
	default:
		return 0
	}
}

// network returns the network in which one client may have all addresses: for IPv6
// the first 64 bits, otherwise the address itself.
func network(client string) string {
	address, err := netip.ParseAddr(client)
	if err != nil || address.Unmap().Is4() {
		return client
	}
	prefix, err := address.WithZone("").Prefix(64)
	if err != nil {
		return client
	}
	return prefix.String()
}

func (c *clientConnection) Close() error {
	c.owner.mu.Lock()
	if !c.closed {
		c.closed = true
		delete(c.owner.open, c)
		if c.owner.ofClient[c.client]--; c.owner.ofClient[c.client] == 0 {
			delete(c.owner.ofClient, c.client)
		}
		if c.owner.ofNetwork[c.network]--; c.owner.ofNetwork[c.network] == 0 {
			delete(c.owner.ofNetwork, c.network)
		}
	}
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// SetReadDeadline and Read end connections without requests for idleTimeout, instead
// of net/http, which keeps all of an HTTP/2 connection in memory for as
// long as its IdleTimeout after the connection was closed with requests in
// flight.
func (c *clientConnection) SetReadDeadline(deadline time.Time) error {
	c.idle.Store(deadline.IsZero())
	if deadline.IsZero() {
		deadline = now().Add(idleTimeout)
	}
	return c.Conn.SetReadDeadline(deadline)
}

func (c *clientConnection) Read(p []byte) (int, error) {
	if c.idle.Load() {
		_ = c.Conn.SetReadDeadline(now().Add(idleTimeout)) // Read fails if this does
	}
	n, err := c.Conn.Read(p)
	if err == nil && c.owner.check != nil {
		if err = c.owner.check(); err != nil {
			return 0, err
		}
	}
	return n, err
}

// CloseWrite is called by net/http before it closes a connection whose client is
// still sending, so that the client can read the response.
func (c *clientConnection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// progressed records that the client has received a part of a response. The receiver
// may be nil.
func (c *clientConnection) progressed(now time.Time) {
	if c == nil {
		return
	}
	c.owner.mu.Lock()
	c.progressedAt = now
	c.owner.mu.Unlock()
}

// serve counts a request that begins, and end one that ends. Their receiver may be nil.
func (c *clientConnection) serve() {
	if c == nil {
		return
	}
	c.owner.mu.Lock()
	c.requests++
	c.owner.mu.Unlock()
}

func (c *clientConnection) end(now time.Time) {
	if c == nil {
		return
	}
	c.owner.mu.Lock()
	c.requests--
	c.progressedAt = now
	c.owner.mu.Unlock()
}

// countRequests counts the requests that each connection serves.
func countRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limited := contextConnection(r.Context())
		limited.serve()
		defer func() { limited.end(now()) }()
		next.ServeHTTP(w, r)
	})
}

// setReceived records that the client has received a whole page. The receiver may be nil.
func (c *clientConnection) setReceived() {
	if c == nil {
		return
	}
	c.owner.mu.Lock()
	c.received = true
	c.owner.mu.Unlock()
}

// hasReceived reports whether the client has received a whole page on this connection.
// The receiver may be nil.
func (c *clientConnection) hasReceived() bool {
	if c == nil {
		return false
	}
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	return c.received
}

// connectionKey is the key of a request's *connection in its context.
type connectionKey struct{}

// withConnection is the ConnContext of the servers.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	if limited, ok := c.(*clientConnection); ok {
		return context.WithValue(ctx, connectionKey{}, limited)
	}
	return ctx
}

// contextConnection is nil if the listener is not a limitedListener.
func contextConnection(ctx context.Context) *clientConnection {
	limited, _ := ctx.Value(connectionKey{}).(*clientConnection)
	return limited
}

// now returns the time for deadlines of sockets, which need a monotonic clock reading.
func now() time.Time { return time.Now() } //nolint:forbidigo // see above
