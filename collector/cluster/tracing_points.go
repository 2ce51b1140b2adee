package cluster

import (
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// whose is of whom a duration is observed: a pod, and the one of its claims
// whose trace shows it.
type whose struct {
	pod   *podEntry
	claim *claimEntry
}

// point names the span of a phase in the trace that will be told of it; zero
// where none will.
func (s *State) point(of whose, phase string) trace.Point {
	if of.pod == nil || of.pod.journey.story == nil || of.claim == nil || of.claim.life == nil {
		return trace.Point{}
	}
	claim, pod := of.claim.life.UID, of.pod.life.UID
	span := trace.Span{Phase: phase, Attempt: 1}
	switch phase {
	case phaseAllocation, phaseBinding, phaseScheduling:
		span.Attempt += of.pod.journey.story.tried(claim)
	}
	return trace.Point{Trace: trace.NewID(claim, pod), Span: trace.NewSpanID(claim, pod, span.Name())}
}

// whoseClaim is the pod and the claim that it waits for longest.
func (s *State) whoseClaim(p *podEntry) whose {
	if !s.tracing.on {
		return whose{}
	}
	_, claim, _ := s.firstWait(p, s.tracing.now)
	return whose{p, claim}
}

// whoseBinding is the pod for which the claim was allocated, else the first
// by name of those that it is reserved for.
func (s *State) whoseBinding(c *claimEntry) whose {
	if !s.tracing.on {
		return whose{}
	}
	if p := c.course.observed; p != nil && p.life != nil && c.reservedFor(p) {
		return whose{p, c}
	}
	var first *podEntry
	for _, p := range c.users {
		if p.journey.story != nil && c.reservedFor(p) && (first == nil || p.ref.Name < first.ref.Name) {
			first = p
		}
	}
	return whose{first, c}
}
