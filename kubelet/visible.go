package kubelet

import (
	"net"
	"sync/atomic"
)

// visibility is whether the kubelet's process has a pid in the pid namespace
// of this program. It is safe for concurrent use.
type visibility struct{ known atomic.Pointer[bool] }

// note determines the visibility from a connection to the kubelet's socket.
func (v *visibility) note(connection net.Conn) {
	pid, err := peer(connection)
	if err != nil {
		v.known.Store(nil)
		return
	}
	visible := pid != 0
	v.known.Store(&visible)
}

// Visible reports whether the kubelet's process is visible from here: whether
// this program is in the node's pid namespace, or in an ancestor. Otherwise the
// node's processes are unknown. It is known after the first connection to the
// socket, and updated with each.
func (c *Client) Visible() (visible, known bool) {
	if told := c.visibility.known.Load(); told != nil {
		return *told, true
	}
	return false, false
}
