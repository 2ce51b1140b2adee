package kubelet

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// peer returns the pid of the process that listens on the other end of a unix
// socket (unix(7), SO_PEERCRED): the one that called listen(2), in the pid namespace of
// this program. It is 0 if the process is not visible there.
func peer(connection net.Conn) (pid int32, err error) {
	socket, ok := connection.(syscall.Conn)
	if !ok {
		return 0, errors.New("ask for the socket's peer: it is not a socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("ask for the socket's peer: %w", err)
	}
	var credentials *syscall.Ucred
	refused := raw.Control(func(fd uintptr) {
		credentials, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err := errors.Join(refused, err); err != nil {
		return 0, fmt.Errorf("ask for the socket's peer: %w", err)
	}
	return credentials.Pid, nil
}
