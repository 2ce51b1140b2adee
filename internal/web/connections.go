package web

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// connections bounds the number of open connections, in all and by client address,
// before authentication. Beyond a bound, a new connection replaces another one: a
// connection that has never received a whole page before one that has, and of these
// the one without progress for longest. A new one is never refused, so that clients
// cannot exclude others by holding connections open.
type connections struct {
	max, maxOfClient int

	mu       sync.Mutex
	open     map[*connection]struct{}
	ofClient map[string]int
	accepted uint64
}

func newConnections(most, mostOfClient int) *connections {
	return &connections{max: most, maxOfClient: mostOfClient, open: map[*connection]struct{}{}, ofClient: map[string]int{}}
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
	if tcp, is := accepted.(*net.TCPConn); is {
		// The kernel buffers what a client does not read, up to this size for each
		// connection. The default grows to several MiB.
		_ = tcp.SetWriteBuffer(socketWriteBuffer) // if it fails, the default is the bound
	}
	return l.connections.add(accepted), nil
}

// connection is an open connection of a client.
type connection struct {
	net.Conn
	owner  *connections
	client string
	number uint64

	idle         atomic.Bool // only idleTimeout bounds reads
	progressedAt time.Time   // when it last received a part of a response; guarded by owner.mu
	received     bool        // it has received a whole page; guarded by owner.mu
	closed       bool        // guarded by owner.mu
}

func (c *connections) add(accepted net.Conn) *connection {
	added := &connection{Conn: accepted, owner: c, client: addressOf(accepted.RemoteAddr().String())}
	c.mu.Lock()
	added.number = c.accepted
	c.accepted++
	c.open[added] = struct{}{}
	c.ofClient[added.client]++
	var replaced *connection
	switch {
	case c.ofClient[added.client] > limitOf(added.client, c.max, c.maxOfClient):
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
func (c *connections) evictable(added *connection, client string) *connection {
	var least *connection
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

// before reports whether c is replaced rather than other.
func (c *connection) before(other *connection) bool {
	if c.received != other.received {
		return other.received
	}
	if !c.progressedAt.Equal(other.progressedAt) {
		return c.progressedAt.Before(other.progressedAt)
	}
	return c.number < other.number
}

func (c *connection) Close() error {
	c.owner.mu.Lock()
	if !c.closed {
		c.closed = true
		delete(c.owner.open, c)
		if c.owner.ofClient[c.client]--; c.owner.ofClient[c.client] == 0 {
			delete(c.owner.ofClient, c.client)
		}
	}
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// SetReadDeadline and Read end connections without requests for idleTimeout, instead
// of net/http, which keeps all of an HTTP/2 connection in memory for as
// long as its IdleTimeout after the connection was closed with requests in
// flight.
func (c *connection) SetReadDeadline(deadline time.Time) error {
	c.idle.Store(deadline.IsZero())
	if deadline.IsZero() {
		deadline = now().Add(idleTimeout)
	}
	return c.Conn.SetReadDeadline(deadline)
}

func (c *connection) Read(p []byte) (int, error) {
	if c.idle.Load() {
		_ = c.Conn.SetReadDeadline(now().Add(idleTimeout)) // Read fails if this does
	}
	return c.Conn.Read(p)
}

// CloseWrite is called by net/http before it closes a connection whose client is
// still sending, so that the client can read the response.
func (c *connection) CloseWrite() error {
	if half, is := c.Conn.(interface{ CloseWrite() error }); is {
		return half.CloseWrite()
	}
	return nil
}

// progressed records that the client has received a part of a response. The receiver
// may be nil.
func (c *connection) progressed(now time.Time) {
	if c == nil {
		return
	}
	c.owner.mu.Lock()
	c.progressedAt = now
	c.owner.mu.Unlock()
}

// setReceived records that the client has received a whole page. The receiver may be nil.
func (c *connection) setReceived() {
	if c == nil {
		return
	}
	c.owner.mu.Lock()
	c.received = true
	c.owner.mu.Unlock()
}

// hasReceived reports whether the client has received a whole page on this connection.
// The receiver may be nil.
func (c *connection) hasReceived() bool {
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
	if secured, is := c.(interface{ NetConn() net.Conn }); is {
		c = secured.NetConn()
	}
	if limited, is := c.(*connection); is {
		return context.WithValue(ctx, connectionKey{}, limited)
	}
	return ctx
}

// connectionOf is nil if the listener is not a limitedListener.
func connectionOf(ctx context.Context) *connection {
	limited, _ := ctx.Value(connectionKey{}).(*connection)
	return limited
}

// now returns the time for deadlines of sockets, which need a monotonic clock reading.
func now() time.Time { return time.Now() } //nolint:forbidigo // see above
