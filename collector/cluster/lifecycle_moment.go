package cluster

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// moment is when something happened, as far as anybody can tell: by our own
// clock if it was told live, else by the second that a server wrote down.
type moment struct {
	mark
	stamp time.Time // the server's, cut to whole seconds; zero: none
	by    clockKind
	node  string // whose clock it is, for clockNode
	doubt bool   // the stamp contradicts another of the same object
	cut   bool   // told live, and late: the stamp decides
}

// later returns the later of two moments. What a list told was there before
// the list; where that does not decide, servers' stamps do. The result is
// unset if nothing does.
func (s *State) later(a, b moment) moment {
	if b.live && !a.live {
		a, b = b, a
	}
	switch {
	case !a.set() || !b.set():
		return moment{}
	case a.live && a.told.Since(b.told) >= 0:
		return a // b was told before, or found in a list before
	case b.live:
		return b
	default:
		return s.laterStamp(a, b)
	}
}

// laterStamp decides by stamps, which may be of two clocks: where one is in
// doubt, so is the result, and when it was told is no help.
func (s *State) laterStamp(a, b moment) moment {
	if a.stamp.IsZero() || b.stamp.IsZero() {
		return moment{}
	}
	doubt := a.doubt || b.doubt
	if s.between(a, b) > 0 {
		a = b
	}
	a.doubt, a.live = doubt, a.live && !doubt
	return a
}

// between is the time from one stamp to another, as far as is known how their
// clocks stand to each other.
func (s *State) between(a, b moment) time.Duration {
	if a.sameClock(b) || !s.clocks.known(a, b.told) || !s.clocks.known(b, b.told) {
		return b.stamp.Sub(a.stamp)
	}
	return s.clocks.elapsed(b.by, b.node, b.stamp, b.told) - s.clocks.elapsed(a.by, a.node, a.stamp, b.told)
}

// sameClock reports whether one clock stamped both, or several that are taken
// for one.
func (m moment) sameClock(other moment) bool { return m.by == other.by && m.node == other.node }

// contradicts reports whether the stamp of what came later is before that of
// what came earlier by more than clocks that agree can be apart.
func contradicts(earlier, later time.Time) bool { return later.Before(earlier.Add(-clockGrain)) }

// instant is the moment on our own steady clock; false if nobody can tell.
func (s *State) instant(m moment, now clock.Instant) (time.Duration, bool) {
	switch {
	case m.live:
		return m.told.Elapsed, true
	case m.stamp.IsZero():
		return 0, false
	default:
		return s.clocks.elapsed(m.by, m.node, m.stamp, now), true
	}
}

// madeMoment is when the pod was made.
func (p *podEntry) madeMoment() moment {
	return moment{mark: p.journey.made, stamp: p.life.Created, by: clockServer}
}

// boundMoment is when the pod was bound to its node.
func (p *podEntry) boundMoment() moment {
	return moment{mark: p.journey.bound, stamp: p.life.Scheduled, by: clockServer}
}

// waitMoment is since when one reference of the pod waits, or waited.
func (s *State) waitMoment(p *podEntry, r *reference) moment {
	if r.claim == nil || r.claim.life == nil || r.extended > 0 {
		return p.madeMoment()
	}
	made := moment{mark: r.claim.course.made, stamp: r.claim.life.Created, by: clockServer}
	return s.later(p.madeMoment(), made)
}

// allocatedMoment is when the claim was allocated.
func (c *claimEntry) allocatedMoment() moment { return allocatedMoment(c.life, c.course.allocated) }

func allocatedMoment(life *dra.ClaimLife, told mark) moment {
	at := life.AllocatedAt
	return moment{mark: told, stamp: at, by: clockScheduler, doubt: contradicts(life.Created, at)}
}

// conditionsMoment is when the claim's binding conditions became true.
func (c *claimEntry) conditionsMoment() moment { return conditionsMoment(c.life, c.course.bound) }

func conditionsMoment(life *dra.ClaimLife, told mark) moment {
	at := life.BindingSince
	return moment{mark: told, stamp: at, by: clockDriver, doubt: contradicts(life.AllocatedAt, at) || contradicts(life.Created, at)}
}

// usableMoment is when a pod could be bound as far as the claim goes: its
// binding conditions were true, or it had none and was allocated. The pod that
// a claim is reserved for first is the one that it was allocated for.
func (c *claimEntry) usableMoment(p *podEntry) moment {
	m := c.allocatedMoment()
	if c.course.bound.set() {
		m = c.conditionsMoment()
	}
	if first := c.life.ReservedFor; len(first) > 0 && first[0].UID == p.life.UID && contradicts(p.life.Created, m.stamp) {
		m.doubt = true
	}
	return m
}

// sandboxMoment is when the pod's sandbox was ready. Where it was told of
// together with the start of a container, the kubelet's own stamps tell the
// two apart.
func (s *State) sandboxMoment(p *podEntry) moment {
	m := moment{mark: p.journey.sandbox, stamp: p.life.Sandbox, by: clockNode, node: p.life.Node, doubt: contradicts(p.life.Scheduled, p.life.Sandbox)}
	if m.live && p.journey.together {
		between := max(0, p.life.Started.Sub(p.life.Sandbox))
		m.told, m.cut = s.startedMoment(p).told.Add(-between), true
	}
	return m
}

// startedMoment is when the first container of the pod started. Where the
// kubelet tells late of it, its stamp decides, unless that cannot be.
func (s *State) startedMoment(p *podEntry) moment {
	m := moment{mark: p.journey.started, stamp: p.life.Started, by: clockNode, node: p.life.Node}
	if !m.live {
		return m
	}
	latest := s.clocks.elapsed(clockNode, m.node, m.stamp, m.told) + time.Second
	bound, known := s.instant(p.boundMoment(), m.told)
	if late := m.told.Elapsed - latest; late > tardiness && known && latest > bound {
		m.told, m.cut = m.told.Add(-late), true
	}
	return m
}
