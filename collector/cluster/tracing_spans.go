package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// mostEvents is how many events a span has at most: the first of them and the
// last.
const mostEvents = 32

// timeline lays the phases of a pod and one of its claims on one axis: our
// steady clock, with the wall clock that it had at the end, so that a jump of
// that moves nothing. Stamps of servers are placed on it by what is known of
// their clocks at the end.
type timeline struct {
	p    *podEntry
	c    *claimEntry
	end  ending
	root laidSpan
	laid []laidSpan // the phases, in their order
}

// laidSpan is a span and where it lies on our steady clock.
type laidSpan struct {
	trace.Span
	from, to time.Duration
}

// traceOf is the trace of the pod and the claim of one of its references, which
// has come to its end; false if nobody knows since when the pod had waited.
func (s *State) traceOf(p *podEntry, r *reference, end ending) (trace.Trace, bool) {
	t := &timeline{p: p, c: r.claim, end: end}
	wait := s.waitedMoment(p, r)
	from, to, known := t.between(s, wait, end.moment)
	if !known {
		return trace.Trace{}, false
	}
	t.root = t.span(s, segment{phase: phaseReady, attempt: 1, begin: wait, end: end.moment, failed: end.failed, message: end.message}, from, to)
	segments := t.segments(s, r)
	for i := range segments {
		if t.lay(s, segments[i]) {
			break
		}
	}
	slices.SortStableFunc(t.laid, func(a, b laidSpan) int { return cmp.Compare(a.from, b.from) })
	t.noteAll()
	life := r.claim.life
	told := trace.Trace{
		Claim: trace.Claim{Namespace: life.Ref.Namespace, Name: life.Ref.Name, UID: life.UID, Class: life.Class()},
		Pod:   trace.Pod{Name: p.ref.Name, UID: p.life.UID, Node: p.life.Node},
		Spans: []trace.Span{t.root.Span},
		Lost:  p.journey.story.dropped(life.UID),
	}
	for i := range life.Results {
		device := &life.Results[i]
		told.Claim.Devices = append(told.Claim.Devices, trace.Device{Driver: device.Device.Driver, Pool: device.Device.Pool, Name: device.Device.Name, Request: device.Request})
	}
	for i := range t.laid {
		told.Spans = append(told.Spans, t.laid[i].Span)
	}
	return told, true
}

// between is where a phase lies, as long as its duration is one that would be
// observed; false if nobody knows when it began or ended, or clocks contradict
// it. Where two watches told of the two in the wrong order, the end stands.
func (t *timeline) between(s *State, begin, end moment) (from, to time.Duration, known bool) {
	from, begun := s.instant(begin, t.end.told)
	to, over := s.instant(end, t.end.told)
	if !begun || !over {
		return 0, 0, false
	}
	took := s.inOrder(begin, end, to-from)
	if took < 0 || (!begin.live && s.contradicted(begin, end, took)) || (!end.live && end.doubt) {
		return 0, 0, false
	}
	return to - took, to, true
}

// lay adds a phase, if it is known when it was. The one that was under way when
// the pod failed ends there, and is the last: true.
func (t *timeline) lay(s *State, g segment) (last bool) {
	failed := t.end.failed != ""
	if g.underWay && !failed {
		return false // nobody knows its end
	}
	from, to, known := t.between(s, g.begin, g.end)
	if begun, ok := s.instant(g.begin, t.end.told); failed && ok && (g.underWay || (known && to > t.root.to)) {
		g.end, g.failed, g.message = moment{mark: t.end.mark}, t.end.failed, t.end.message
		from, to, known, last = begun, t.root.to, begun <= t.root.to, true
	}
	if !known {
		return last
	}
	took, limit := to-from, t.limit(s, g, to)
	to = min(to, limit)
	from = max(to-took, t.root.from)
	to = min(max(to, from+took), limit)
	t.laid = append(t.laid, t.span(s, g, from, to))
	return last
}

// limit is when a phase was over at the latest, whatever watches told in which
// order: the end of the whole; of what is before the binding of the pod that, if
// the claims' watch lagged far behind.
func (t *timeline) limit(s *State, g segment, to time.Duration) time.Duration {
	if g.phase != phaseAllocation && g.phase != phaseBinding {
		return t.root.to
	}
	bound, known := s.instant(t.p.boundMoment(), t.end.told)
	if !known || !t.p.journey.bound.set() || bound < t.root.from || to-bound < disorder {
		return t.root.to
	}
	return min(bound, t.root.to)
}

func (t *timeline) span(s *State, g segment, from, to time.Duration) laidSpan {
	return laidSpan{from: from, to: to, Span: trace.Span{
		Phase: g.phase, Attempt: g.attempt, Begin: t.moment(s, g.begin, from), End: t.moment(s, g.end, to), Failed: g.failed, Message: g.message,
	}}
}

// moment says how it is known when something happened. A stamp was cut to a
// second, and a clock that nobody has heard of may be off by the slack.
func (t *timeline) moment(s *State, m moment, at time.Duration) trace.Moment {
	told := trace.Moment{At: t.wall(at), Evidence: trace.EvidenceWatch}
	if !m.live || m.cut {
		told.Evidence, told.Error = trace.EvidenceTimestamp, time.Second
		if !s.clocks.known(m, t.end.told) {
			told.Error += clockSlack
		}
	}
	return told
}

func (t *timeline) wall(at time.Duration) time.Time {
	return t.end.told.Wall.Add(at - t.end.told.Elapsed)
}

// noteAll gives each event to the phase in which it happened.
func (t *timeline) noteAll() {
	concern := []string{""} // the pod's references that stand for the claim
	for i := range t.p.refs {
		if t.p.refs[i].claim == t.c {
			concern = append(concern, t.p.refs[i].name)
		}
	}
	threads := t.p.journey.story.threads
	var notes []note
	for i := range threads {
		if slices.Contains(concern, threads[i].reference) {
			notes = append(notes, threads[i].notes...)
		}
	}
	slices.SortStableFunc(notes, func(a, b note) int { return cmp.Compare(a.at, b.at) })
	for i := range notes {
		n := &notes[i]
		n.at = min(n.at, t.root.to)
		span := t.at(n.at)
		span.Lost += n.lost
		span.Events = append(span.Events, trace.Event{At: t.wall(n.at), Name: n.name, Reason: n.reason, Message: n.message})
		if len(span.Events) > mostEvents {
			span.Events = slices.Delete(span.Events, mostEvents/2, mostEvents/2+1)
			span.Lost++
		}
	}
	for i := range t.laid {
		if span := &t.laid[i]; span.Failed != "" && span.Failed == t.root.Failed && len(span.Events) > 0 {
			latest := span.Events[len(span.Events)-1]
			span.Message += "; last: " + latest.Reason + ": " + latest.Message
			t.root.Message = span.Message
		}
	}
}

// at is the phase in which something happened, the later of two that overlap;
// the root where none was. What happens at the end belongs to what follows.
func (t *timeline) at(when time.Duration) *laidSpan {
	for i := len(t.laid) - 1; i >= 0; i-- {
		span := &t.laid[i]
		if span.from <= when && (when < span.to || span.to == t.root.to) {
			return span
		}
	}
	return &t.root
}
