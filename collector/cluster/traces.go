package cluster

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// Bounds of what is kept for traces. Of the attempts of one claim for one pod,
// and of the notes about one reference, the first half and the last are kept.
const (
	maxAttempts     = 16
	maxNotes        = 64
	maxAllNotes     = 100_000 // of all pods, 33 MB at most: beyond that, minNotes of each reference
	minNotes        = 4
	maxMessageBytes = 256
)

// claimDelay is how long a trace waits for its claims after the pod has
// started: the watch of claims may lag behind.
const claimDelay = 10 * time.Second

// The names of the Kubernetes events about claims.
const (
	eventCreation    = "FailedResourceClaimCreation"
	eventPreparation = "FailedPrepareDynamicResources"
)

// Messages of traces that failed.
const (
	messagePodDeleted   = "the pod was deleted before one of its containers started"
	messageEvicted      = "the pod was evicted because of a device taint before one of its containers started"
	messagePodFailed    = "the pod ended before one of its containers started"
	messageClaimDeleted = "the claim was deleted before a container of the pod started"
)

// traces records what happens to pods until their traces end, and builds the
// traces. It stays empty unless traces are wanted (Config.Traces).
type traces struct {
	on        bool
	histories map[*podEntry]*podHistory
	ended     []trace.Trace // in this step
	started   []*podHistory // whose claims are not all known
	held      []heldTrace
	notes     int // of all histories
}

// podHistory is what is recorded of a pod for its traces, beside its progress:
// from when it is observed until its first container starts, or never will.
type podHistory struct {
	pod         *podProgress
	schedulable timestamp // since when it could be bound as far as its claims go; unset: not known
	deleted     observed  // when its deletion was requested, if that was observed live
	attempts    []attempt
	refs        []refNotes

	// Once the pod has started: it may change before its claims are known.
	started              bool
	startedAt, sandboxAt timestamp
}

// attempt is an allocation of a claim for a pod.
type attempt struct {
	allocation
	number int      // from 1
	since  observed // when the reservation before was lost; unset for the first
	lost   observed // when the reservation was lost; unset: it was not
}

// refNotes are the notes about one of the pod's references, in order; without a
// name, those about all of them.
type refNotes struct {
	name  string
	notes []note
}

// note is an event of a trace that has not ended.
type note struct {
	at                    time.Duration // on our steady clock
	name, reason, message string
	dropped               int // notes that followed this one
}

func (n *note) sameText(other *note) bool {
	return n.name == other.name && n.reason == other.reason && n.message == other.message
}

// heldTrace is the trace of a deleted claim whose pod still exists. The pod may
// have been deleted first, and its watch lag behind.
type heldTrace struct {
	pod      *podEntry
	trace    trace.Trace
	observed clock.Instant
}

// ending is when, and how, a trace ends. failed is empty if the first container
// of the pod has started.
type ending struct {
	timestamp
	failed, message string
}

func newTraces(enabled bool) *traces {
	return &traces{on: enabled, histories: make(map[*podEntry]*podHistory)}
}

// begin begins a step.
func (t *traces) begin() { t.ended = nil }

// apply applies an event of the lifecycle.
func (t *traces) apply(e *event, x *index, skews *clocks) {
	if !t.on {
		return
	}
	switch e.kind {
	case claimRemoved:
		t.endClaim(e, x, skews)
		return
	case bindingFailed:
		t.noteBindingFailed(e)
		return
	case podAdded:
		t.add(e, x, skews)
		return
	}
	if e.pod == nil {
		return
	}
	h := t.histories[e.pod.pod]
	if h == nil {
		return
	}
	switch e.kind {
	case reservationLost:
		h.addAttempt(e)
	case podSchedulable:
		h.schedulable = e.since
	case podDeleting:
		h.deleted = e.at
	case podStarted:
		t.start(h, e, x, skews)
	case podTerminated:
		if e.at.live {
			t.end(h, h.ending(e.at), x, skews)
		}
		t.drop(h)
	case podRemoved:
		if h.started {
			t.end(h, ending{timestamp: h.startedAt}, x, skews)
		} else if e.at.live {
			t.end(h, h.ending(e.at), x, skews)
		}
		t.drop(h)
	}
}

// add begins the history of a pod that is new. The traces of one that is found
// in a list, and has started or ended, have ended before.
func (t *traces) add(e *event, x *index, skews *clocks) {
	p := e.pod.pod
	if !e.at.live && (!p.object.Started.IsZero() || p.object.Terminal) {
		return
	}
	h := &podHistory{pod: e.pod}
	t.histories[p] = h
	for _, warning := range x.creationWarnings(p) {
		t.noteWarning(h, &warning, false, e.at.at, skews)
	}
}

// start ends the traces of a pod that has started, once its claims are known.
// One that is found in a list has no traces.
func (t *traces) start(h *podHistory, e *event, x *index, skews *clocks) {
	if !e.at.live {
		t.drop(h)
		return
	}
	h.started, h.startedAt = true, h.pod.startedAt(skews)
	if h.pod.sandbox.set() {
		h.sandboxAt = h.pod.sandboxAt(skews)
	}
	if h.pod.claimsKnown() {
		t.end(h, ending{timestamp: h.startedAt}, x, skews)
		return
	}
	t.started = append(t.started, h)
}

// end ends the traces of a pod, one for each of its claims that exists.
func (t *traces) end(h *podHistory, end ending, x *index, skews *clocks) {
	p := h.pod.pod
	for i := range p.refs {
		r := &p.refs[i]
		if !r.existsFor(p) || references(p.refs[:i], r.claim) {
			continue
		}
		b := traceBuilder{nodes: x.nodes, clocks: skews, history: h, pod: h.pod, claim: r.claim.progress, end: end}
		if built, ok := b.build(r); ok {
			t.ended = append(t.ended, built)
		}
	}
	t.drop(h)
}

// drop removes a history.
func (t *traces) drop(h *podHistory) {
	t.dropNotes(h, func(*refNotes) bool { return true })
	delete(t.histories, h.pod.pod)
}

// endClaim ends the traces of a claim that was removed.
func (t *traces) endClaim(e *event, x *index, skews *clocks) {
	c := e.claim
	for _, p := range c.entry.users {
		h := t.histories[p]
		if h == nil {
			continue
		}
		i := slices.IndexFunc(p.refs, func(r reference) bool { return r.claim == c.entry && !r.isForeign(c.object, p) })
		if i < 0 {
			continue
		}
		r := &p.refs[i]
		end := ending{timestamp: timestamp{observed: e.at}, failed: trace.FailedClaimDeleted, message: messageClaimDeleted}
		switch {
		case h.started:
			end = ending{timestamp: h.startedAt}
		case h.deleted.set():
			end = h.ending(e.at)
		}
		b := traceBuilder{nodes: x.nodes, clocks: skews, history: h, pod: h.pod, claim: c, end: end}
		switch built, ok := b.build(r); {
		case ok && h.started: // its start was observed live
			t.ended = append(t.ended, built)
		case ok && e.at.live:
			t.held = append(t.held, heldTrace{p, built, e.at.at})
		}
		h.attempts = slices.DeleteFunc(h.attempts, func(a attempt) bool { return a.claimUID == c.object.UID })
		t.dropNotes(h, func(n *refNotes) bool { return n.name == r.name })
	}
}

// flush ends, after all changes of a step, the traces whose claims are known
// now, or have not become known in time.
func (t *traces) flush(x *index, skews *clocks, now clock.Instant) {
	t.started = slices.DeleteFunc(t.started, func(h *podHistory) bool {
		if t.histories[h.pod.pod] != h {
			return true
		}
		if !h.pod.claimsKnown() && now.Elapsed-h.pod.started.elapsed < claimDelay {
			return false
		}
		t.end(h, ending{timestamp: h.startedAt}, x, skews)
		return true
	})
	t.held = slices.DeleteFunc(t.held, func(held heldTrace) bool {
		switch {
		case !held.pod.alive():
			failForPod(&held.trace)
		case now.Since(held.observed) < watchDisorder:
			return false
		}
		t.ended = append(t.ended, held.trace)
		return true
	})
}

// failForPod changes the failure of a trace from the deletion of the claim to
// that of the pod.
func failForPod(t *trace.Trace) {
	for i := range t.Spans {
		if span := &t.Spans[i]; span.Failed == trace.FailedClaimDeleted {
			span.Failed = trace.FailedPodDeleted
			span.Message = messagePodDeleted + strings.TrimPrefix(span.Message, messageClaimDeleted)
		}
	}
}

// point names the span of a phase that ended, in the trace that will show it;
// zero if none will.
func (t *traces) point(e *event, x *index) trace.Point {
	if !t.on || e.claim == nil {
		return trace.Point{}
	}
	var h *podHistory
	if e.pod == nil {
		h = t.bindingHistory(e.claim, x)
	} else {
		h = t.histories[e.pod.pod]
	}
	if h == nil {
		return trace.Point{}
	}
	claim, pod := e.claim.object.UID, h.pod.pod.object.UID
	span := trace.Span{Phase: e.phase, Attempt: 1}
	switch e.phase {
	case phaseAllocation, phaseBinding, phaseScheduling:
		span.Attempt += h.lostAttempts(claim)
	case phasePreparation, phasePreparationStart:
		if e.claim.object.NoPreparation {
			return trace.Point{} // the trace of this claim has no such span
		}
	}
	return trace.Point{Trace: trace.NewID(claim, pod), Span: trace.NewSpanID(claim, pod, span.Name())}
}

// bindingHistory is the history that shows the binding of a claim: of the pod
// for which the claim was allocated, else the first by name of those for which
// it is reserved.
func (t *traces) bindingHistory(c *claimProgress, x *index) *podHistory {
	var first *podHistory
	for _, p := range c.entry.users {
		if c.measuredPod != "" && p.object.UID == c.measuredPod && p.has(c.object) {
			return t.histories[p]
		}
		if h := t.histories[p]; h != nil && p.has(c.object) && (first == nil || p.ref.Name < first.pod.pod.ref.Name) {
			first = h
		}
	}
	return first
}

// applyPending records that references have another reason or message, or are
// not pending any more. What lasted less than two seconds is replaced: the
// watches of pods and of claims deliver related changes in any order.
func (t *traces) applyPending(changes []pendingChange, now clock.Instant) {
	if !t.on {
		return
	}
	for i := range changes {
		change := &changes[i]
		h := t.histories[change.pod]
		switch {
		case h == nil:
		case change.reason != dra.ReasonNone:
			t.notePending(h, change, now)
		default:
			if i := h.indexRef(change.name); i >= 0 {
				t.dropRecentPending(&h.refs[i], now)
			}
		}
	}
}

func (t *traces) notePending(h *podHistory, change *pendingChange, now clock.Instant) {
	notes := h.ref(change.name)
	n := note{at: now.Elapsed, name: trace.EventPending, reason: string(change.reason), message: shorten(change.message)}
	if i := notes.lastPending(); i >= 0 {
		last := &notes.notes[i]
		same, recent := last.reason == n.reason, n.at-last.at < onsetDelay
		switch {
		case same && last.message == n.message:
			return
		case recent && same:
			last.message = strings.Clone(n.message)
			return
		case recent:
			t.dropRecentPending(notes, now)
			if last := len(notes.notes) - 1; last >= 0 && notes.notes[last].sameText(&n) {
				return // it is again what it was before
			}
		}
	}
	t.note(notes, n)
}

// dropRecentPending drops the newest reason if it did not last.
func (t *traces) dropRecentPending(notes *refNotes, now clock.Instant) {
	if i := notes.lastPending(); i >= 0 && now.Elapsed-notes.notes[i].at < onsetDelay {
		notes.notes = slices.Delete(notes.notes, i, i+1)
		t.notes--
	}
}

// applyWarning records a Kubernetes event about a pod, or about each pod of a
// group.
func (t *traces) applyWarning(u *update, x *index, skews *clocks) {
	if !t.on || u.occurrences == 0 {
		return
	}
	for _, p := range x.warnedPods(u.Warning) {
		if h := t.histories[p]; h != nil {
			t.noteWarning(h, u.Warning, u.Live, u.At, skews)
		}
	}
}

// noteWarning records a Kubernetes event: at the time when it was observed, or,
// if it was found in a list, when its author dated its last occurrence.
func (t *traces) noteWarning(h *podHistory, warning *dra.Warning, live bool, at clock.Instant, skews *clocks) {
	p := h.pod.pod
	n := note{at: at.Elapsed, name: eventPreparation, reason: warningFailure(warning), message: shorten(warning.Message)}
	about, author := "", clockNode
	if warning.Kind == dra.WarningCreation {
		n.name, author = eventCreation, clockServer
		name, named := referenceIn(warning.Message)
		if named && !slices.ContainsFunc(p.object.Claims, func(pc dra.PodClaim) bool { return pc.Name == name }) {
			return // about another pod of the group; any user may write events
		}
		about = name
	}
	if !live {
		if warning.Last.IsZero() {
			return // its time is not known
		}
		n.at = min(n.at, skews.elapsed(author, p.object.Node, warning.Last, at))
	}
	t.note(h.ref(about), n)
}

// noteBindingFailed records that a failure condition of a device has become
// true, for the pods for which the claim is reserved.
func (t *traces) noteBindingFailed(e *event) {
	c := e.claim.entry
	for _, p := range c.users {
		h := t.histories[p]
		if h == nil || !p.has(c.object) {
			continue
		}
		for i := range p.refs {
			if p.refs[i].claim == c && !references(p.refs[:i], c) {
				t.note(h.ref(p.refs[i].name), note{
					at: e.at.at.Elapsed, name: trace.EventBinding, reason: failureBinding, message: "a failure condition of a device has become true",
				})
			}
		}
	}
}

// note appends a note; where there are too many, one in the middle is dropped.
func (t *traces) note(notes *refNotes, n note) {
	n.message = strings.Clone(n.message) // it may be a part of something longer
	if count := len(notes.notes); count == maxNotes || (count >= minNotes && t.notes >= maxAllNotes) {
		middle := count / 2
		notes.notes[middle-1].dropped += 1 + notes.notes[middle].dropped
		notes.notes = slices.Delete(notes.notes, middle, middle+1)
		t.notes--
	}
	notes.notes = append(notes.notes, n)
	t.notes++
}

// dropNotes drops the notes about some references.
func (t *traces) dropNotes(h *podHistory, match func(*refNotes) bool) {
	h.refs = slices.DeleteFunc(h.refs, func(notes refNotes) bool {
		dropped := match(&notes)
		if dropped {
			t.notes -= len(notes.notes)
		}
		return dropped
	})
}

// addAttempt records that the claim is no longer reserved for the pod.
func (h *podHistory) addAttempt(e *event) {
	lost := attempt{allocation: e.allocation, number: 1, lost: e.at}
	var others []int
	for i := range h.attempts {
		if h.attempts[i].claimUID == lost.claimUID {
			others = append(others, i)
			lost.number, lost.since = h.attempts[i].number+1, h.attempts[i].lost
		}
	}
	if lost.since == e.at {
		return // it was reserved twice, also through the pod's group
	}
	if len(others) == maxAttempts {
		middle := others[maxAttempts/2]
		h.attempts = slices.Delete(h.attempts, middle, middle+1)
	}
	h.attempts = append(h.attempts, lost)
}

// lostAttempts is how many allocations of the claim the pod has lost.
func (h *podHistory) lostAttempts(claimUID string) int {
	lost := 0
	for i := range h.attempts {
		if h.attempts[i].claimUID == claimUID {
			lost = h.attempts[i].number
		}
	}
	return lost
}

// droppedAttempts is how many lost allocations of the claim are not kept.
func (h *podHistory) droppedAttempts(claimUID string) int {
	kept := 0
	for i := range h.attempts {
		if h.attempts[i].claimUID == claimUID {
			kept++
		}
	}
	return h.lostAttempts(claimUID) - kept
}

// ending is how the traces of a pod end that has not started. It does not wait
// any more once its deletion is requested.
func (h *podHistory) ending(at observed) ending {
	if h.deleted.set() {
		at = h.deleted
	}
	object := h.pod.pod.object
	end := ending{timestamp: timestamp{observed: at}, failed: trace.FailedPodDeleted, message: messagePodDeleted}
	switch {
	case object.Evicted:
		end.failed, end.message = trace.FailedEvicted, messageEvicted
	case object.Terminal && object.Deleted.IsZero():
		end.failed, end.message = trace.FailedPodFailed, messagePodFailed
	}
	return end
}

func (h *podHistory) indexRef(name string) int {
	return slices.IndexFunc(h.refs, func(notes refNotes) bool { return notes.name == name })
}

// ref returns the notes about a reference; it adds them if there are none.
func (h *podHistory) ref(name string) *refNotes {
	i := h.indexRef(name)
	if i < 0 {
		i = len(h.refs)
		h.refs = append(h.refs, refNotes{name: name})
	}
	return &h.refs[i]
}

// lastPending is the index of the newest reason; negative if there is none.
func (notes *refNotes) lastPending() int {
	i := len(notes.notes) - 1
	for i >= 0 && notes.notes[i].name != trace.EventPending {
		i--
	}
	return i
}

// shorten cuts a message between two characters. What is cut off is not kept in
// memory either.
func shorten(message string) string {
	const more = "…"
	if len(message) <= maxMessageBytes {
		return message
	}
	end := maxMessageBytes - len(more)
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + more
}
