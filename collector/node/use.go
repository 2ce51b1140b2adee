package node

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// A use is what a claim does with a device, of one quantity that processes
// may split.
type use struct {
	attribution attribution
	since       time.Duration // elapsed time since which the attribution has been this one
	value       float64
	known       bool
}

// use is what a claim that holds the unit does with it: all that the unit
// does, or, of several that share it, what the claim's processes do. Who is
// alone has all of it whatever procfs says of the processes.
func (u *deviceState) use(claim dra.ClaimRef, q usage, held attribution) use {
	own, known := u.reading(q.quantity())
	now := use{attribution: held, value: own, known: known}
	if q == usedMemory && u.holders.siblings > 0 {
		now.attribution = shared
	}
	if held != shared || u.split == nil {
		return now
	}
	if part, told := u.split.by(claim, q); told {
		now.attribution, now.value, now.known = process, part, u.split.known[q]
	}
	return now
}

// take notes what the use is in this step. begun says that the claim has not
// held the device before.
func (u *use) take(present use, begun bool, now time.Duration) {
	present.since = u.since
	if begun || u.attribution != present.attribution {
		present.since = now
	}
	*u = present
}

// busy is how long the claim kept the device busy between the last two
// measurements of its utilization: the later one says it of the time since the
// use began.
func (u *use) busy(g *growth) float64 {
	over := g.at.To - max(g.from.To, u.since)
	if !u.known || !g.grew || over <= 0 {
		return 0
	}
	return u.value * over.Seconds()
}
