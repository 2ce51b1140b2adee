package cluster

import (
	"maps"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// clockKind says whose clock wrote a stamp.
type clockKind uint8

const (
	clockServer    clockKind = iota // the API server's: creations, PodScheduled
	clockScheduler                  // allocation timestamps
	clockNode                       // a kubelet's: sandboxes, starts of containers
	clockDriver                     // of whoever writes binding conditions: nobody listens to it
)

// clockSlack is by how much the best stamp of a clock may lie behind our own
// wall clock before that clock is taken to be wrong: one second for stamps
// that are cut to seconds, one for the way to us.
const clockSlack = 2 * time.Second

// clockGrain is by how much stamps of two clocks that agree may be in the
// wrong order: cut to seconds, milliseconds become one. API servers are
// several, with a clock each.
const clockGrain = time.Second

// clockWindow is for how long a stamp is evidence of where its clock stands.
const clockWindow = 15 * time.Minute

// clocks estimates how other clocks stand to ours, so that their stamps can
// be compared with it. A stamp that is told live is at most as late as the
// telling; so the latest that was ever told is the best evidence. It is kept
// against our steady clock, whose wall clock may be the one that is wrong.
type clocks struct {
	server, scheduler skew
	nodes             map[string]*skew
	swept             time.Duration // when nodes was rid of those that tell nothing any more
}

// skew is what is known of one clock: by how much it is ahead of our steady
// clock at least, in this window and in the one before.
type skew struct {
	known        bool
	opened       time.Duration
	best, before time.Time // what the clock shows at our steady clock's origin
}

func newClocks() clocks { return clocks{nodes: make(map[string]*skew)} }

// hear notes a stamp that was told live. The zero stamp says nothing.
func (c *clocks) hear(which clockKind, node string, stamp time.Time, at clock.Instant) {
	if stamp.IsZero() {
		return
	}
	c.of(which, node, true).hear(stamp.Add(-at.Elapsed), at.Elapsed)
	if at.Elapsed-c.swept > clockWindow {
		c.swept = at.Elapsed
		maps.DeleteFunc(c.nodes, func(_ string, s *skew) bool { return !s.knownAt(at.Elapsed) })
	}
}

// known reports whether there is evidence of where the clock stands.
func (c *clocks) known(m moment, now clock.Instant) bool {
	return c.of(m.by, m.node, false).knownAt(now.Elapsed)
}

func (c *clocks) of(which clockKind, node string, keep bool) *skew {
	switch which {
	case clockServer:
		return &c.server
	case clockScheduler:
		return &c.scheduler
	case clockDriver:
		return &skew{}
	}
	s, known := c.nodes[node]
	if !known {
		s = &skew{}
		if keep {
			c.nodes[node] = s
		}
	}
	return s
}

func (c *clocks) forget(node string) { delete(c.nodes, node) }

func (s *skew) hear(origin time.Time, at time.Duration) {
	switch {
	case !s.knownAt(at):
		s.known, s.opened, s.best, s.before = true, at, origin, origin
	case at-s.opened > clockWindow:
		s.opened, s.before, s.best = at, s.best, origin
	case origin.After(s.best):
		s.best = origin
	}
}

// knownAt reports whether some of the evidence is not too old.
func (s *skew) knownAt(at time.Duration) bool { return s.known && at-s.opened <= 2*clockWindow }

// latest is the best evidence that is not too old.
func (s *skew) latest(at time.Duration) time.Time {
	if at-s.opened <= clockWindow && s.before.After(s.best) {
		return s.before
	}
	return s.best
}

// elapsed is when, on our steady clock, the other clock showed the stamp. Our
// own wall clock stands for the other as long as nothing that the other has
// told contradicts it.
func (c *clocks) elapsed(which clockKind, node string, stamp time.Time, now clock.Instant) time.Duration {
	ours := now.Wall.Add(-now.Elapsed)
	s := c.of(which, node, false)
	if !s.knownAt(now.Elapsed) {
		return stamp.Sub(ours)
	}
	theirs := s.latest(now.Elapsed)
	if ahead := theirs.Sub(ours); ahead > 0 || ahead < -clockSlack {
		return stamp.Sub(theirs)
	}
	return stamp.Sub(ours)
}
