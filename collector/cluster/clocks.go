package cluster

import (
	"maps"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// observed is when a change was observed: live, as it happened, or in a list,
// so that it happened some time before. The zero value means "not yet".
type observed struct {
	at   clock.Instant
	live bool
}

func (o observed) set() bool { return !o.at.IsZero() }

func observedBy(change *Change) observed { return observed{change.At, change.Live} }

// moment is an observed in few bytes, without pointers.
type moment struct {
	wall    int64 // nanoseconds since 1970
	elapsed time.Duration
	live    bool
}

func (o observed) moment() moment {
	if !o.set() {
		return moment{live: o.live}
	}
	return moment{o.at.Wall.UnixNano(), o.at.Elapsed, o.live}
}

func (m moment) set() bool { return m.wall != 0 || m.elapsed != 0 }

func (m moment) at() clock.Instant {
	if !m.set() {
		return clock.Instant{}
	}
	return clock.Instant{Wall: time.Unix(0, m.wall), Elapsed: m.elapsed}
}

func (m moment) observed() observed { return observed{m.at(), m.live} }

// timestamp is when something happened, as far as it is known: by our own clock
// if it was observed live, else by the second that a server wrote.
type timestamp struct {
	observed
	written   time.Time // by the server, cut to whole seconds; zero: none
	by        clockKind // whose clock wrote it
	node      string    // of clockNode
	disputed  bool      // written contradicts another timestamp of the same object
	corrected bool      // observed live, but late: at was set by written
}

// sameClock reports whether one clock wrote both timestamps, or several that
// count as one.
func (t timestamp) sameClock(other timestamp) bool { return t.by == other.by && t.node == other.node }

// contradicts reports whether what happened later was written as earlier, by
// more than clocks that agree may differ.
func contradicts(earlier, later time.Time) bool { return later.Before(earlier.Add(-clockGrain)) }

// clockKind is the owner of the clock that wrote a timestamp.
type clockKind uint8

const (
	clockServer    clockKind = iota // the API server's: creations, PodScheduled
	clockScheduler                  // allocation timestamps
	clockNode                       // a kubelet's: sandboxes, starts of containers
	clockDriver                     // of whatever writes binding conditions: its skew is not estimated
)

// clockSlack is how far the best timestamp of a clock may be behind our own
// wall clock before that clock counts as wrong: one second because timestamps
// are cut to seconds, one for the delay until they are observed.
const clockSlack = 2 * time.Second

// clockGrain is how far timestamps of two clocks that agree may be in the wrong
// order: cut to seconds, milliseconds become one second. There may be several
// API servers, each with its own clock.
const clockGrain = time.Second

// clockWindow is how long a timestamp is evidence of a clock's skew.
const clockWindow = 15 * time.Minute

// watchDisorder is by how much two watches may deliver changes in the wrong
// order.
const watchDisorder = time.Second

// clocks estimates the skew of other clocks against ours, so that their
// timestamps can be compared with it. A timestamp that is observed live is at
// most as late as its observation, so that the latest one is the best
// evidence. Skews are against our steady clock, because our wall clock may be
// the wrong one.
type clocks struct {
	server, scheduler skew
	nodes             map[string]*skew
	swept             time.Duration // when nodes without recent evidence were last evicted
}

// skew is what is known of one clock: by how much it is ahead of our steady
// clock at least, in this window and in the one before.
type skew struct {
	known        bool
	opened       time.Duration
	best, before time.Time // what the clock shows at our steady clock's origin
}

func newClocks() clocks { return clocks{nodes: make(map[string]*skew)} }

// observe records a timestamp that was observed live. The zero time is ignored.
func (c *clocks) observe(kind clockKind, node string, written time.Time, at clock.Instant) {
	if written.IsZero() {
		return
	}
	c.findSkew(kind, node, true).observe(written.Add(-at.Elapsed), at.Elapsed)
	if at.Elapsed-c.swept > clockWindow {
		c.swept = at.Elapsed
		maps.DeleteFunc(c.nodes, func(_ string, s *skew) bool { return !s.knownAt(at.Elapsed) })
	}
}

// known reports whether there is evidence of the skew of a timestamp's clock.
func (c *clocks) known(t timestamp, now clock.Instant) bool {
	return c.findSkew(t.by, t.node, false).knownAt(now.Elapsed)
}

func (c *clocks) findSkew(kind clockKind, node string, add bool) *skew {
	switch kind {
	case clockServer:
		return &c.server
	case clockScheduler:
		return &c.scheduler
	case clockDriver:
		return &skew{}
	}
	s, ok := c.nodes[node]
	if !ok {
		s = &skew{}
		if add {
			c.nodes[node] = s
		}
	}
	return s
}

// evict drops the skew of a node's clock.
func (c *clocks) evict(node string) { delete(c.nodes, node) }

func (s *skew) observe(origin time.Time, at time.Duration) {
	switch {
	case !s.knownAt(at):
		s.known, s.opened, s.best, s.before = true, at, origin, origin
	case at-s.opened > clockWindow:
		s.opened, s.before, s.best = at, s.best, origin
	case origin.After(s.best):
		s.best = origin
	}
}

// knownAt reports whether some of the evidence is recent enough.
func (s *skew) knownAt(at time.Duration) bool { return s.known && at-s.opened <= 2*clockWindow }

// latest is the best evidence that is recent enough.
func (s *skew) latest(at time.Duration) time.Time {
	if at-s.opened <= clockWindow && s.before.After(s.best) {
		return s.before
	}
	return s.best
}

// elapsed is when, on our steady clock, another clock showed the time written.
// Our own wall clock is used instead of the other until evidence contradicts
// it.
func (c *clocks) elapsed(kind clockKind, node string, written time.Time, now clock.Instant) time.Duration {
	ours := now.Wall.Add(-now.Elapsed)
	s := c.findSkew(kind, node, false)
	if !s.knownAt(now.Elapsed) {
		return written.Sub(ours)
	}
	theirs := s.latest(now.Elapsed)
	if ahead := theirs.Sub(ours); ahead > 0 || ahead < -clockSlack {
		return written.Sub(theirs)
	}
	return written.Sub(ours)
}

// steady is a timestamp on our own steady clock; false if it is not known.
func (c *clocks) steady(t timestamp, now clock.Instant) (time.Duration, bool) {
	switch {
	case t.live:
		return t.at.Elapsed, true
	case t.written.IsZero():
		return 0, false
	default:
		return c.elapsed(t.by, t.node, t.written, now), true
	}
}

// later returns the later of two timestamps. What a list reports happened
// before the list; where that does not decide, written times do. The result is
// unset if nothing decides.
func (c *clocks) later(a, b timestamp) timestamp {
	if b.live && !a.live {
		a, b = b, a
	}
	switch {
	case !a.set() || !b.set():
		return timestamp{}
	case a.live && a.at.Since(b.at) >= 0:
		return a // b was observed before
	case b.live:
		return b
	case a.written.IsZero() || b.written.IsZero():
		return timestamp{}
	}
	// The written times may be of two clocks. Where one is disputed, so is the
	// result, and its observation does not help.
	disputed := a.disputed || b.disputed
	if c.between(a, b) > 0 {
		a = b
	}
	a.disputed, a.live = disputed, a.live && !disputed
	return a
}

// between is the time from one written time to another, corrected by the skews
// of their clocks where both are known.
func (c *clocks) between(a, b timestamp) time.Duration {
	if a.sameClock(b) || !c.known(a, b.at) || !c.known(b, b.at) {
		return b.written.Sub(a.written)
	}
	return c.elapsed(b.by, b.node, b.written, b.at) - c.elapsed(a.by, a.node, a.written, b.at)
}

// ordered is the duration from begin to end. took is the observed duration; it
// is negative where the end was observed first, because watches deliver in any
// order. A watch that lags far behind another is known by the written times,
// which are in order. Then these decide, corrected by the skews of their
// clocks; that of a driver's clock is not known.
func (c *clocks) ordered(begin, end timestamp, took time.Duration) time.Duration {
	inOrder := !begin.written.IsZero() && !end.written.IsZero() && !contradicts(begin.written, end.written)
	switch {
	case took >= 0:
		return took
	case took > -watchDisorder:
		return 0
	case !begin.live || !inOrder:
		return took
	case begin.by == clockDriver || end.by == clockDriver:
		return 0
	default:
		return max(0, c.between(begin, end))
	}
}

// contradicted reports whether the written times of begin and end contradict
// the duration. While the skew of the clock that wrote the beginning is not
// known, our own clock is used instead, and the written times must agree with
// the result.
func (c *clocks) contradicted(begin, end timestamp, took time.Duration) bool {
	if begin.written.IsZero() || end.written.IsZero() {
		return false
	}
	tolerated := clockGrain
	if begin.by == clockNode && begin.sameClock(end) {
		tolerated = 0
	}
	gap := end.written.Sub(begin.written)
	if gap < -tolerated || (begin.disputed && !begin.live) {
		return true
	}
	if begin.live || c.known(begin, end.at) {
		return false
	}
	return (gap - took).Abs() > time.Second+clockSlack
}
