package kubelet

import (
	"net"
	"sync/atomic"
)

// visibility is whether the kubelet's process has a pid in the pid namespace
// of this program. It is safe for concurrent use.
type visibility struct{ known atomic.Pointer[bool] }

// note learns it from a connection to the kubelet's socket.
func (v *visibility) note(connection net.Conn) {
	pid, err := peer(connection)
	if err != nil {
		v.known.Store(nil)
		return
	}
	visible := pid != 0
	v.known.Store(&visible)
}

// Visible reports whether the kubelet's process can be seen from here, which
// is to say that this program shares the node's pid namespace, or that of an
// ancestor: elsewhere nothing can be told of the node's processes. It is
// known after the first connection to the socket, and renewed with each.
func (c *Client) Visible() (visible, known bool) {
	if told := c.visibility.known.Load(); told != nil {
		return *told, true
	}
	return false, false
}
