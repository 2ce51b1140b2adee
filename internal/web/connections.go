package web

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// connections bounds how many connections are open, in all and by client
// address, before anybody has authenticated. Beyond a bound, a new connection
// replaces another one: first one that has never taken a whole page, of these
// the one that has taken nothing for longest. A new one is never refused, so
// that connections which are held open keep nobody out.
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
		// What a client does not read is kept by the kernel, up to this much
		// for each connection. The default grows to several MiB.
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
	took   time.Time   // when it last took a part of an answer; guarded by owner.mu
	whole  bool        // it has taken a whole page; guarded by owner.mu
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
		replaced = c.leastWorth(added, added.client)
	case len(c.open) > c.most:
		replaced = c.leastWorth(added, "")
	}
	c.mu.Unlock()
	if replaced != nil {
		_ = replaced.Close() // it is given up either way
	}
	return added
}

// leastWorth is the connection to replace, of one client or of all.
func (c *connections) leastWorth(added *connection, client string) *connection {
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

// SetReadDeadline and Read end connections without a request for idleTimeout,
// in place of net/http, which keeps all of an HTTP/2 connection in memory for
// as long as its IdleTimeout after the connection was closed with requests in
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

// progressed records that the client has taken a part of an answer. The
// receiver may be nil.
func (c *connection) progressed(now time.Time) {
	if c == nil {
		return
	}
	c.owner.mu.Lock()
	c.took = now
	c.owner.mu.Unlock()
}

// prove records that the client has taken a whole page. The receiver may be nil.
func (c *connection) prove() {
	if c == nil {
		return
	}
	c.owner.mu.Lock()
	c.whole = true
	c.owner.mu.Unlock()
}

// proven reports whether the client has taken a whole page by this connection.
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

// connectionOf is nil where the request did not come by one of ours.
func connectionOf(ctx context.Context) *connection {
	ours, _ := ctx.Value(connectionKey{}).(*connection)
	return ours
}
