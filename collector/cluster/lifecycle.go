package cluster

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// mark is when something was told: live, as it happened, or found in a list,
// so that it had happened some time before. The zero mark is "not yet".
type mark struct {
	told clock.Instant
	live bool
}

func (m mark) set() bool { return !m.told.IsZero() }

func markOf(change *Change) mark { return mark{change.At, change.Live} }

// course is how far a claim has come, for its present allocation.
type course struct {
	made      mark
	allocated mark
	bound     mark // all its binding conditions are true

	allocationDone, bindingDone bool // observed, or never to be

	observed *podEntry // whose wait was observed; nil: nobody's
}

// journey is how far a pod has come. What happened once stays: the sandbox of
// a pod that runs may be made again, and its devices prepared again, but that
// is no start.
type journey struct {
	made    mark
	bound   mark
	sandbox mark
	started mark

	direct         bool            // bound from the start: nobody scheduled it
	prompt         bool            // its kubelet tells of sandboxes at once
	together       bool            // sandbox and start were told of in one
	schedulingDone bool            // observed, or never to be
	lost           map[string]mark // by a claim's UID: when it was reserved for the pod no more
	rows           []phaseRow
	story          *story // for its traces; nil: it has none that are yet to be told
}

// followClaim notes how far a claim has come by a change.
func (s *State) followClaim(c *claimEntry, before *dra.ClaimLife, change *Change) {
	if before == nil {
		c.course = course{made: markOf(change)}
		if change.Live {
			s.clocks.hear(clockServer, "", c.life.Created, change.At)
		}
	}
	was := before != nil && before.Allocated
	if was {
		c.loseConsumers(before, change)
	}
	if was && (!c.life.Allocated || (!change.Live && !sameAllocation(before, c.life))) {
		c.course = course{made: c.course.made}
		was = false
	}
	if !c.life.Allocated {
		return
	}
	if was {
		s.endAllocation(c, c.users...) // it may be reserved for others now
	} else {
		s.allocate(c, change)
	}
	s.followBinding(c, before, change)
}

func (s *State) allocate(c *claimEntry, change *Change) {
	c.course.allocated = markOf(change)
	c.course.allocationDone, c.course.bindingDone = !change.Live, false
	if change.Live {
		s.clocks.hear(clockScheduler, "", c.life.AllocatedAt, change.At)
	}
	s.endAllocation(c, c.users...)
}

// loseConsumers notes of the pods for which the claim is not reserved any more
// that they wait for it again, if they still do, from now on. The scheduler
// takes a reservation back before it takes the devices back.
func (c *claimEntry) loseConsumers(before *dra.ClaimLife, change *Change) {
	for i := range before.ReservedFor {
		consumer := &before.ReservedFor[i]
		if c.life.Allocated && slices.Contains(c.life.ReservedFor, *consumer) {
			continue
		}
		for _, p := range c.users {
			if p.life == nil || !p.isFor(consumer) {
				continue
			}
			if p.journey.lost == nil {
				p.journey.lost = make(map[string]mark)
			}
			p.journey.lost[c.life.UID] = markOf(change)
			if p.journey.story != nil {
				p.journey.story.loseAttempt(c, before, markOf(change))
			}
		}
	}
}

func (s *State) followBinding(c *claimEntry, before *dra.ClaimLife, change *Change) {
	switch c.life.Binding {
	case dra.BindingDone:
		if !c.course.bound.set() {
			c.course.bound = markOf(change)
			s.endBinding(c)
		}
	case dra.BindingFailed:
		if change.Live && before != nil && before.Binding != dra.BindingFailed {
			s.failures.add(c.life.Class(), failureBinding, 1, change.At.Wall)
			s.noteBinding(c, change.At)
		}
	}
}

// sameAllocation reports whether the claim still has the devices that it had.
// An allocation without a date may get one later.
func sameAllocation(a, b *dra.ClaimLife) bool {
	undated := a.AllocatedAt.IsZero() || b.AllocatedAt.IsZero()
	return slices.Equal(a.Results, b.Results) && (undated || a.AllocatedAt.Equal(b.AllocatedAt))
}

// followPod notes how far a pod has come by a change.
func (s *State) followPod(p *podEntry, before *dra.PodLife, change *Change) {
	j, at := &p.journey, markOf(change)
	if before == nil {
		j.made = at
		s.hear(clockServer, "", p.life.Created, change)
		s.beginStory(p, change)
	}
	if p.life.Node != "" && !j.bound.set() {
		j.bound, j.direct = at, before == nil && change.Live
		if !j.direct {
			s.hear(clockServer, "", p.life.Scheduled, change)
		}
	}
	s.followSandbox(p, change)
	s.followPhases(p)
	if !p.life.Started.IsZero() && !j.started.set() {
		j.started = at
		s.endStart(p)
		s.hearLate(p.life.Node, p.life.Started, change)
	}
	s.followStory(p, before, change)
	s.followUnder(p)
}

func (s *State) followSandbox(p *podEntry, change *Change) {
	j := &p.journey
	if p.life.Sandbox.IsZero() || j.sandbox.set() {
		return
	}
	j.sandbox, j.together = markOf(change), !p.life.Started.IsZero()
	if s.prompt(p) {
		s.hear(clockNode, p.life.Node, p.life.Sandbox, change)
		s.endPreparation(p)
	}
}

// prompt reports whether the pod's kubelet tells of sandboxes at once. Of a
// node that is not known it is not believed; what has been known stays.
func (s *State) prompt(p *podEntry) bool {
	if n, known := s.books.nodes[p.life.Node]; known && n.SandboxPrompt {
		p.journey.prompt = true
	}
	return p.journey.prompt
}

func (s *State) hear(which clockKind, node string, stamp time.Time, change *Change) {
	if change.Live {
		s.clocks.hear(which, node, stamp, change.At)
	}
}

// hearLate takes a stamp that its kubelet may have told of long after: so it
// shows a clock that is ahead, but none that is behind.
func (s *State) hearLate(node string, stamp time.Time, change *Change) {
	if stamp.After(change.At.Wall) {
		s.hear(clockNode, node, stamp, change)
	}
}

// followPhases looks at what depends on both the pod and its claims: the two
// are told of by different watches, in whichever order.
func (s *State) followPhases(p *podEntry) {
	if p.life == nil {
		return
	}
	for i := range p.refs {
		if c := p.refs[i].claim; c != nil && c.life != nil {
			s.endAllocation(c, p)
		}
	}
	s.endScheduling(p)
}
