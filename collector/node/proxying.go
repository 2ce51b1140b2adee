package node

import "github.com/dra-exporter/dra-exporter/collector/device"

// proxying is what a list tells of the clients of MPS servers, and of who
// does their work.
type proxying struct {
	before int // pid of the server by the lists before; 0: none

	clients bool // there are some
	busy    bool // and some are told to work themselves
	working bool // a process of nobody that holds the device works, and is no client
	server  int  // its pid, or that of the server of before, which rests perhaps
}

// meet takes in a process. nobodys is one of nobody that holds the device.
func (m *proxying) meet(p *device.Process, nobodys bool) {
	switch works := p.Utilization > 0; {
	case p.Proxied:
		m.clients = true
		m.busy = m.busy || works
	case nobodys:
		m.working = m.working || works
		if p.PID == m.before || works && m.server == 0 {
			m.server = p.PID
		}
	}
}

// serving is the pid of the server that is told to do its clients' work, 0 if
// there is none. Once it was told so it is that for as long as it is there,
// unless it rests while its clients are told to work.
func (m *proxying) serving() int {
	switch {
	case m.working && m.clients:
		return m.server
	case m.server != 0 && m.server == m.before && (m.working || !m.busy):
		return m.server
	default:
		return 0
	}
}
