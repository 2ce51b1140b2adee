package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// maxEvents is how many events a span has at most: the first and the last.
const maxEvents = 32

// traceBuilder builds the trace of a pod and one of its claims. All spans lie on
// one axis: our steady clock, with the wall clock that it had at the end, so
// that a jump of the wall clock moves nothing. Timestamps of servers are placed
// on it by the skews that are known at the end.
type traceBuilder struct {
	nodes   map[string]*dra.Node
	clocks  *clocks
	history *podHistory
	pod     *podProgress
	claim   *claimProgress
	end     ending
	pending timestamp // since when the pod was pending
	root    builtSpan
	spans   []builtSpan // the phases, in their order
}

// builtSpan is a span and its position on our steady clock.
type builtSpan struct {
	trace.Span
	from, to time.Duration
}

// segment is a phase from one timestamp to another, or under way.
type segment struct {
	phase           string
	attempt         int
	begin, end      timestamp
	underWay        bool
	failed, message string
}

// build builds the trace of a pod and the claim of one of its references; false
// if it is not known since when the pod was pending.
func (b *traceBuilder) build(r *reference) (trace.Trace, bool) {
	b.pending = b.pod.pendingSince(r, b.claim, b.clocks)
	if started := b.pod.started; started.live && b.claim.created.elapsed > started.elapsed {
		b.pending = b.pod.createdAt() // the claim was observed only afterwards
	}
	start, end, ok := b.interval(b.pending, b.end.timestamp)
	if !ok {
		return trace.Trace{}, false
	}
	b.root = b.span(segment{phase: phaseReady, attempt: 1, begin: b.pending, end: b.end.timestamp, failed: b.end.failed, message: b.end.message}, start, end)
	for _, s := range b.segments() {
		if b.add(s) {
			break
		}
	}
	slices.SortStableFunc(b.spans, func(a, b builtSpan) int { return cmp.Compare(a.from, b.from) })
	b.addEvents()
	pod, object := b.pod.pod, b.claim.object
	built := trace.Trace{
		Claim: trace.Claim{Namespace: object.Ref.Namespace, Name: object.Ref.Name, UID: object.UID, Class: object.Class()},
		Pod:   trace.Pod{Name: pod.ref.Name, UID: pod.object.UID, Node: pod.object.Node},
		Spans: []trace.Span{b.root.Span},
		Lost:  b.history.droppedAttempts(object.UID),
	}
	for i := range object.Results {
		device := &object.Results[i]
		built.Claim.Devices = append(built.Claim.Devices, trace.Device{Driver: device.Device.Driver, Pool: device.Device.Pool, Name: device.Device.Name, Request: device.Request})
	}
	for i := range b.spans {
		built.Spans = append(built.Spans, b.spans[i].Span)
	}
	return built, true
}

// segments lists the phases in their order, those of lost allocations first.
func (b *traceBuilder) segments() []segment {
	lost, last := b.attempts()
	var all []segment
	for _, a := range lost {
		phases := b.attemptSegments(a, false)
		if latest := len(phases) - 1; latest >= 0 {
			failed := &phases[latest]
			failed.end, failed.underWay = timestamp{observed: a.lost}, false
			failed.failed, failed.message = trace.FailedReservationLost, "the reservation was removed"
			if a.binding == dra.BindingFailed {
				failed.failed, failed.message = trace.FailedBinding, "a failure condition of a device became true, and the reservation was removed"
			}
		}
		all = append(all, phases...)
	}
	return append(append(all, b.attemptSegments(last, true)...), b.nodeSegments()...)
}

// attempts returns the allocations of the claim for the pod that were lost, and
// the last one. Once the pod is bound, and where it is deleted, the loss of the
// reservation is not a failure.
func (b *traceBuilder) attempts() (lost []attempt, last attempt) {
	for _, a := range b.history.attempts {
		if a.claimUID == b.claim.object.UID {
			lost = append(lost, a)
		}
	}
	n := len(lost)
	last = attempt{number: 1}
	if n > 0 {
		last.number, last.since = lost[n-1].number+1, lost[n-1].lost
	}
	switch {
	case b.claim.allocated.set() && (n == 0 || b.pod.pod.has(b.claim.object)):
		last.allocation = b.claim.allocation()
	case n > 0 && (b.pod.bound.set() || (b.end.failed != "" && b.end.at.Since(lost[n-1].lost.at) < watchDisorder)):
		last, lost = lost[n-1], lost[:n-1]
	}
	return lost, last
}

// attemptSegments lists the phases of one allocation until the pod was bound.
// The latest of them is under way if the pod never was.
func (b *traceBuilder) attemptSegments(a attempt, last bool) []segment {
	begin := b.pending
	if a.number > 1 {
		begin = timestamp{observed: a.since}
	}
	if !a.allocated.set() {
		return []segment{{phase: phaseAllocation, attempt: a.number, begin: begin, underWay: true}}
	}
	var all []segment
	usable, joined := a.allocated, a.number == 1 && !b.waited(a.allocated)
	if joined {
		usable = b.clocks.later(b.pending, a.allocated)
	} else {
		all = append(all, segment{phase: phaseAllocation, attempt: a.number, begin: begin, end: a.allocated})
	}
	if a.binding == dra.BindingWaiting || a.binding == dra.BindingFailed {
		if last && b.pod.bound.set() {
			return all // the watch of claims lags: it is not known when the conditions became true
		}
		return append(all, segment{phase: phaseBinding, attempt: a.number, begin: usable, underWay: true})
	}
	scheduled := b.pod.pod.object.Scheduled
	if !a.conditions.live && contradicts(a.conditions.written, scheduled) && !scheduled.IsZero() {
		a.conditions.disputed = true // the pod was bound before: the clock of the driver is wrong
	}
	if a.conditions.set() && (!joined || b.clocks.later(usable, a.conditions).by == clockDriver) {
		all = append(all, segment{phase: phaseBinding, attempt: a.number, begin: usable, end: a.conditions})
		usable = a.conditions
	}
	if last && b.pod.boundAtCreation {
		return all
	}
	scheduling := segment{phase: phaseScheduling, attempt: a.number, begin: usable, underWay: true}
	if last && b.pod.bound.set() {
		scheduling.end, scheduling.underWay = b.pod.boundAt(), false
		if b.history.schedulable.set() {
			scheduling.begin = b.history.schedulable
		}
	}
	return append(all, scheduling)
}

// waited reports whether the pod was pending when the claim was allocated. One
// that came later, also where two watches delivered in the wrong order, was if
// the claim was allocated for it.
func (b *traceBuilder) waited(allocated timestamp) bool {
	begin, beginKnown := b.clocks.steady(b.pending, b.end.at)
	end, endKnown := b.clocks.steady(allocated, b.end.at)
	switch {
	case !beginKnown || !endKnown:
		return false
	case end >= begin:
		return true
	default:
		pod, first := b.pod.pod, b.claim.object.ReservedFor
		allocatedFor := b.claim.measuredPod == pod.object.UID || (len(first) > 0 && pod.isConsumer(first[0]))
		return allocatedFor && b.clocks.ordered(b.pending, allocated, end-begin) >= 0
	}
}

// nodeSegments lists the phases of a pod that is bound.
func (b *traceBuilder) nodeSegments() []segment {
	if !b.pod.bound.set() {
		return nil
	}
	started := b.end.failed == ""
	last := segment{phase: phasePreparationStart, attempt: 1, begin: b.pod.boundAt(), end: b.end.timestamp, underWay: !started}
	if b.claim.object.NoPreparation {
		last.phase = phaseStart
		return []segment{last}
	}
	if !b.pod.hasPromptSandbox(b.nodes) {
		return []segment{last}
	}
	var sandbox timestamp
	if b.history.started {
		sandbox = b.history.sandboxAt
	} else if b.pod.sandbox.set() {
		sandbox = b.pod.sandboxAt(b.clocks)
	}
	if !sandbox.set() {
		if last.phase = phasePreparation; started {
			return nil // it is not known when the sandbox was ready
		}
		return []segment{last}
	}
	last.phase, last.begin = phaseStart, sandbox
	return []segment{{phase: phasePreparation, attempt: 1, begin: b.pod.boundAt(), end: sandbox}, last}
}

// interval is the position of a phase whose duration would be observed; false
// if its beginning or end is not known, or clocks contradict each other. Where
// two watches delivered the two in the wrong order, the end decides.
func (b *traceBuilder) interval(begin, end timestamp) (first, last time.Duration, known bool) {
	first, beginKnown := b.clocks.steady(begin, b.end.at)
	last, endKnown := b.clocks.steady(end, b.end.at)
	if !beginKnown || !endKnown {
		return 0, 0, false
	}
	took := b.clocks.ordered(begin, end, last-first)
	if took < 0 || (!begin.live && b.clocks.contradicted(begin, end, took)) || (!end.live && end.disputed) {
		return 0, 0, false
	}
	return last - took, last, true
}

// add adds a phase, if its position is known. The phase that was under way when
// the pod failed ends there, and is the last: true.
func (b *traceBuilder) add(s segment) (last bool) {
	failed := b.end.failed != ""
	if s.underWay && !failed {
		return false // its end is not known
	}
	start, end, ok := b.interval(s.begin, s.end)
	if begin, beginKnown := b.clocks.steady(s.begin, b.end.at); failed && beginKnown && (s.underWay || (ok && end > b.root.to)) {
		s.end, s.failed, s.message = timestamp{observed: b.end.observed}, b.end.failed, b.end.message
		start, end, ok, last = begin, b.root.to, begin <= b.root.to, true
	}
	if !ok {
		return last
	}
	took, limit := end-start, b.limit(s, end)
	end = min(end, limit)
	start = max(end-took, b.root.from)
	end = min(max(end, start+took), limit)
	b.spans = append(b.spans, b.span(s, start, end))
	return last
}

// limit is when a phase ended at the latest, in whatever order watches
// delivered: at the end of the trace; a phase before the binding of the pod at
// the binding, if the watch of claims lagged far behind.
func (b *traceBuilder) limit(s segment, end time.Duration) time.Duration {
	if s.phase != phaseAllocation && s.phase != phaseBinding {
		return b.root.to
	}
	bound, ok := b.clocks.steady(b.pod.boundAt(), b.end.at)
	if !ok || !b.pod.bound.set() || bound < b.root.from || end-bound < watchDisorder {
		return b.root.to
	}
	return min(bound, b.root.to)
}

func (b *traceBuilder) span(s segment, start, end time.Duration) builtSpan {
	return builtSpan{from: start, to: end, Span: trace.Span{
		Phase: s.phase, Attempt: s.attempt, Begin: b.traceTimestamp(s.begin, start), End: b.traceTimestamp(s.end, end), Failed: s.failed, Message: s.message,
	}}
}

// traceTimestamp returns a timestamp with its evidence and error. A written time was cut
// to a second, and a clock without evidence may be off by the slack.
func (b *traceBuilder) traceTimestamp(t timestamp, at time.Duration) trace.Timestamp {
	converted := trace.Timestamp{At: b.wall(at), Evidence: trace.EvidenceWatch}
	if !t.live || t.corrected {
		converted.Evidence, converted.Error = trace.EvidenceTimestamp, time.Second
		if !b.clocks.known(t, b.end.at) {
			converted.Error += clockSlack
		}
	}
	return converted
}

func (b *traceBuilder) wall(at time.Duration) time.Time {
	return b.end.at.Wall.Add(at - b.end.at.Elapsed)
}

// addEvents adds each note as an event to the phase in which it happened.
func (b *traceBuilder) addEvents() {
	names := []string{""} // of the pod's references to the claim
	for i := range b.pod.pod.refs {
		if r := &b.pod.pod.refs[i]; r.claim == b.claim.entry {
			names = append(names, r.name)
		}
	}
	var notes []note
	for i := range b.history.refs {
		if ref := &b.history.refs[i]; slices.Contains(names, ref.name) {
			notes = append(notes, ref.notes...)
		}
	}
	slices.SortStableFunc(notes, func(a, b note) int { return cmp.Compare(a.at, b.at) })
	for i := range notes {
		n := &notes[i]
		n.at = min(n.at, b.root.to)
		span := b.spanAt(n.at)
		span.Lost += n.dropped
		span.Events = append(span.Events, trace.SpanEvent{At: b.wall(n.at), Name: n.name, Reason: n.reason, Message: n.message})
		if len(span.Events) > maxEvents {
			span.Events = slices.Delete(span.Events, maxEvents/2, maxEvents/2+1)
			span.Lost++
		}
	}
	for i := range b.spans {
		if span := &b.spans[i]; span.Failed != "" && span.Failed == b.root.Failed && len(span.Events) > 0 {
			latest := span.Events[len(span.Events)-1]
			span.Message += "; last: " + latest.Reason + ": " + latest.Message
			b.root.Message = span.Message
		}
	}
}

// spanAt is the phase in which something happened, the later of two that
// overlap; the root if there was none. What happens at the end of a phase
// belongs to the next.
func (b *traceBuilder) spanAt(at time.Duration) *builtSpan {
	for i := len(b.spans) - 1; i >= 0; i-- {
		span := &b.spans[i]
		if span.from <= at && (at < span.to || span.to == b.root.to) {
			return span
		}
	}
	return &b.root
}
