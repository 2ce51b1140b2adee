package node

import (
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A split says who does how much of the work on a whole device, by what its
// processes do. It is pure arithmetic over the last complete list and over
// who holds the device.
type split struct {
	list processList
	users

	told   [usages]bool // every process tells it, and of each it is known for whom it works
	known  [usages]bool // and the device's own value is there to hold the sum against
	nobody amounts      // by processes of nobody that holds the device

	// What lists have shown so far. A device at rest must not look as if it
	// could be split, which it cannot be as soon as somebody works: what is
	// known would then be its idle time alone.
	untold [usages]bool // by some process of the last list that had any
	server int          // pid of the MPS server that is told to do its clients' work; 0: none is
}

// processList is the processes of a device and whose they are.
type processList struct {
	at        clock.Instant // when they were listed; zero: never
	processes []device.Process
	owners    []dra.Owner // of each process
	next      []dra.Owner // those of the list that is being taken
}

// take takes a list once all its processes have been looked up. Until then
// the one before is kept. A list that was taken is not looked up again: some
// of its pids may be others' by now.
func (l *processList) take(processes []device.Process, at clock.Instant, owners map[int]dra.Owner) {
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

// divide says who does how much. own is the device's own values, and has
// which of them are known.
func (s *split) divide(own amounts, has [usages]bool) {
	sum := s.count()
	for q := range usages {
		s.known[q] = s.told[q] && has[q]
		if s.known[q] && sum[q] > own[q] {
			s.scale(q, own[q]/sum[q])
		}
	}
}

// silence is for a device whose processes are not known now.
func (s *split) silence() { s.told, s.known = [usages]bool{}, [usages]bool{} }

// count gives each process's work to whom it is done for, and returns the sum
// over all that have not ended.
func (s *split) count() (sum amounts) {
	s.reset()
	s.nobody = amounts{}
	told, alive := [usages]bool{usedTime: true, usedMemory: true}, false
	mps := proxying{before: s.server}
	for i := range s.list.processes {
		p, owner := &s.list.processes[i], &s.list.owners[i]
		if owner.Gone {
			continue
		}
		alive = true
		by := s.userOf(owner)
		for q := range usages {
			amount, tells := q.of(p)
			if !tells {
				told[q] = false
				continue
			}
			sum[q] += amount
			s.credit(by, owner, q, amount)
		}
		mps.meet(p, by == nil)
	}
	for q := range usages {
		if alive {
			s.untold[q] = !told[q]
		}
		s.told[q] = !s.untold[q]
	}
	if s.server = mps.serving(); s.server != 0 {
		s.told[usedTime] = false
	}
	return sum
}

// credit gives an amount to the pod that uses the device, and to the claim
// through which it does. What may be that of one of several belongs to none
// of them, and to nobody else.
func (s *split) credit(by *user, owner *dra.Owner, q usage, amount float64) {
	switch {
	case by == nil && s.unnamed && owner.PodUID != "":
	case by == nil:
		s.nobody[q] += amount
	default:
		through, certain := by.through(owner.ContainerID)
		if len(through) == 0 {
			s.nobody[q] += amount
			return
		}
		by.amounts[q] += amount
		for _, hold := range through {
			if hold == throughPlugin {
				continue
			}
			part := &s.parts[hold]
			part.amounts[q] += amount
			part.unclear = part.unclear || !certain
		}
	}
}

// scale makes every part smaller: readings are of different moments, and the
// sum of the parts must not be more than the device's own value.
func (s *split) scale(q usage, factor float64) {
	s.nobody[q] *= factor
	for i := range s.parts {
		s.parts[i].amounts[q] *= factor
	}
	for i := range s.pods {
		s.pods[i].amounts[q] *= factor
	}
}

// by is what a claim's processes do; false if that cannot be told from what
// others do.
func (s *split) by(claim dra.ClaimRef, q usage) (float64, bool) {
	if !s.told[q] {
		return 0, false
	}
	for i := range s.parts {
		if part := &s.parts[i]; part.claim == claim {
			return part.amounts[q], !part.unclear && !part.blurred
		}
	}
	return 0, false
}
