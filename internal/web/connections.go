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
// the one without progress for longest. A new one is never refused, so that
// connections that are held open exclude nobody.
type connections struct {
	most, mostOfClient int

	mu       sync.Mutex
	open     map[*connection]struct{}
	ofClient map[string]int
	accepted uint64
}

func newConnections(most, mostOfClient int) *connections {
	return &connections{most: most, mostOfClient: mostOfClient, open: map[*connection]struct{}{}, ofClient: map[string]int{}}
}

// limit returns the listener with the bounds of c, which several share.
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
		_ = tcp.SetWriteBuffer(socketWriteBuffer) // the default is a bound as well
	}
	return l.connections.add(accepted), nil
}

// connection is an open connection of a client.
type connection struct {
	net.Conn
	owner  *connections
	client string
	number uint64

	idle   atomic.Bool // nothing but idleTimeout bounds reads
	took   time.Time   // when it last received a part of a response; guarded by owner.mu
	whole  bool        // it has received a whole page; guarded by owner.mu
	closed bool        // guarded by owner.mu
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
	case c.ofClient[added.client] > limitOf(added.client, c.most, c.mostOfClient):
		replaced = c.evictable(added, added.client)
	case len(c.open) > c.most:
		replaced = c.evictable(added, "")
	}
	c.mu.Unlock()
	if replaced != nil {
		_ = replaced.Close() // it is closed either way
	}
	return added
}

// evictable is the connection to replace, of one client or of all.
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
	if c.whole != other.whole {
		return other.whole
	}
	if !c.took.Equal(other.took) {
		return c.took.Before(other.took)
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

// CloseWrite is what net/http calls before it closes a connection whose client
// is still sending, so that the client reads the answer.
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
	c.took = now
	c.owner.mu.Unlock()
}

// prove records that the client has received a whole page. The receiver may be nil.
func (c *connection) prove() {
	if c == nil {
		return
	}
	c.owner.mu.Lock()
	c.whole = true
	c.owner.mu.Unlock()
}

// proven reports whether the client has received a whole page on this connection.
// The receiver may be nil.
func (c *connection) proven() bool {
	if c == nil {
		return false
	}
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	return c.whole
}

// connectionKey is the key of a request's *connection in its context.
type connectionKey struct{}

// withConnection is the ConnContext of the servers.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secured, is := c.(interface{ NetConn() net.Conn }); is {
		c = secured.NetConn()
	}
	if ours, is := c.(*connection); is {
		return context.WithValue(ctx, connectionKey{}, ours)
	}
	return ctx
}

// connectionOf is nil if the listener is not a limitedListener.
func connectionOf(ctx context.Context) *connection {
	ours, _ := ctx.Value(connectionKey{}).(*connection)
	return ours
}

// now is for deadlines of sockets, which are times with a monotonic clock
// reading.
func now() time.Time { return time.Now() } //nolint:forbidigo // see above
