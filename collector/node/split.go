package node

import (
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// deviceSplit is the use of a whole device by the processes of each holder. It is
// computed from the last complete list of processes and the device's holders.
type deviceSplit struct {
	list processList
	users

	reported     [usages]bool // every process reports it, and the user of each process is known
	known        [usages]bool // and so is the device's own value, which limits the sum
	unattributed amounts      // of processes that belong to no holder

	// What lists have shown so far. A device at rest must not look as if its use
	// could be split if it cannot be as soon as processes work: then its idle time
	// alone would be known.
	unreported [usages]bool // by some process of the last list that had any
	server     int          // pid of the MPS server that is reported to do its clients' work; 0: none is
}

// processList is the processes of a device and their owners.
type processList struct {
	at        clock.Instant // when they were listed; zero: never
	processes []device.Process
	owners    []dra.Owner // of each process
	next      []dra.Owner // of the list that is being applied
}

// apply applies a list once all its processes have been looked up. Until then
// the one before is kept. A list that was applied is not looked up again: some
// of its pids may have been reused.
func (l *processList) apply(processes []device.Process, at clock.Instant, owners map[int]dra.Owner) {
	if at == l.at {
		return
	}
	l.next = l.next[:0]
	for i := range processes {
		owner, known := owners[processes[i].PID]
		if !known {
			return
		}
		l.next = append(l.next, owner)
	}
	l.at, l.processes = at, processes
	l.owners, l.next = l.next, l.owners
}

// divide computes the use by each holder. own is the device's own values, and has
// is which of them are known.
func (s *deviceSplit) divide(own amounts, has [usages]bool) {
	sum := s.count()
	for q := range usages {
		s.known[q] = s.reported[q] && has[q]
		if s.known[q] && sum[q] > own[q] {
			s.scale(q, own[q]/sum[q])
		}
	}
}

// invalidate is for a device whose processes are not known now.
func (s *deviceSplit) invalidate() { s.reported, s.known = [usages]bool{}, [usages]bool{} }

// count adds up the use of processes by user, and returns the sum over all that
// have not ended.
func (s *deviceSplit) count() (sum amounts) {
	s.reset()
	s.unattributed = amounts{}
	reported, alive := [usages]bool{usedTime: true, usedMemory: true}, false
	mps := mpsServer{before: s.server}
	for i := range s.list.processes {
		p, owner := &s.list.processes[i], &s.list.owners[i]
		if owner.Gone {
			continue
		}
		alive = true
		by := s.userOf(owner)
		for q := range usages {
			amount, known := q.of(p)
			if !known {
				reported[q] = false
				continue
			}
			sum[q] += amount
			s.credit(by, owner, q, amount)
		}
		mps.add(p, by == nil)
	}
	for q := range usages {
		if alive {
			s.unreported[q] = !reported[q]
		}
		s.reported[q] = !s.unreported[q]
	}
	if s.server = mps.pid(); s.server != 0 {
		s.reported[usedTime] = false
	}
	return sum
}

// credit adds an amount to the pod that uses the device, and to the claim
// through which it does. An amount that may be that of one of several pods is
// added to none of them, and is not unattributed either.
func (s *deviceSplit) credit(by *user, owner *dra.Owner, q usage, amount float64) {
	switch {
	case by == nil && s.unnamed && owner.PodUID != "":
	case by == nil:
		s.unattributed[q] += amount
	default:
		through, certain := by.through(owner.ContainerID)
		if len(through) == 0 {
			s.unattributed[q] += amount
			return
		}
		by.amounts[q] += amount
		for _, hold := range through {
			if hold == throughPlugin {
				continue
			}
			part := &s.parts[hold]
			part.amounts[q] += amount
			part.uncertain = part.uncertain || !certain
		}
	}
}

// scale reduces every part: readings are of different times, and the sum of the
// parts must not be more than the device's own value.
func (s *deviceSplit) scale(q usage, factor float64) {
	s.unattributed[q] *= factor
	for i := range s.parts {
		s.parts[i].amounts[q] *= factor
	}
	for i := range s.pods {
		s.pods[i].amounts[q] *= factor
	}
}

// by returns the use by a claim's processes; false if they cannot be
// distinguished from others.
func (s *deviceSplit) by(claim dra.ClaimRef, q usage) (float64, bool) {
	if !s.reported[q] {
		return 0, false
	}
	for i := range s.parts {
		if part := &s.parts[i]; part.claim == claim {
			return part.amounts[q], !part.uncertain && !part.ambiguous
		}
	}
	return 0, false
}

// mpsServer finds, in a list of processes, the MPS server that is reported to do
// the work of its clients.
type mpsServer struct {
	before int // pid of the server by the lists before; 0: none

	clients bool // there are clients
	busy    bool // and some are reported to work themselves
	working bool // a process works that belongs to no holder, and is no client
	server  int  // its pid, or that of the server of before, which may be at rest
}

// add applies a process of the list. An unattributed one belongs to no holder.
func (m *mpsServer) add(p *device.Process, unattributed bool) {
	switch works := p.Utilization > 0; {
	case p.Proxied:
		m.clients = true
		m.busy = m.busy || works
	case unattributed:
		m.working = m.working || works
		if p.PID == m.before || works && m.server == 0 {
			m.server = p.PID
		}
	}
}

// pid is that of the server that is reported to do its clients' work, 0 if there
// is none. A server stays one for as long as it exists, unless it is at rest
// while its clients are reported to work.
func (m *mpsServer) pid() int {
	switch {
	case m.working && m.clients:
		return m.server
	case m.server != 0 && m.server == m.before && (m.working || !m.busy):
		return m.server
	default:
		return 0
	}
}
