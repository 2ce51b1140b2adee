package cluster

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// What is kept of one thing that a pod waits for is bounded: of that many notes
// the first half and the last, and so much of a message.
const (
	mostNotes   = 64
	mostMessage = 256 // bytes
)

// The names of the Kubernetes events that tell of trouble with claims.
const (
	eventCreation    = "FailedResourceClaimCreation"
	eventPreparation = "FailedPrepareDynamicResources"
)

// thread is what went wrong with one of the pod's references, in order; with
// no name, what concerns all of them.
type thread struct {
	reference string
	notes     []note
}

// note is an event of a trace that has yet to be told.
type note struct {
	at                    time.Duration // on our steady clock
	name, reason, message string
	lost                  int // notes that followed this one and did not fit
}

// thread is that of a reference, made if there was none.
func (st *story) thread(reference string) *thread {
	i := slices.IndexFunc(st.threads, func(t thread) bool { return t.reference == reference })
	if i < 0 {
		i = len(st.threads)
		st.threads = append(st.threads, thread{reference: reference})
	}
	return &st.threads[i]
}

// add appends a note; where there are too many, one in the middle goes.
func (t *thread) add(n note) {
	if len(t.notes) == mostNotes {
		const middle = mostNotes / 2
		t.notes[middle-1].lost += 1 + t.notes[middle].lost
		t.notes = slices.Delete(t.notes, middle, middle+1)
	}
	t.notes = append(t.notes, n)
}

// notePending notes the reason for which a reference waits from now on, or what
// is said of it. What lasted less than two seconds is replaced: the watches of
// pods and of claims tell of one moment in any order.
func (s *State) notePending(wr *waiter, now clock.Instant) {
	st := wr.pod.journey.story
	if st == nil || wr.reason == dra.ReasonNone {
		return
	}
	t := st.thread(wr.name)
	n := note{at: now.Elapsed, name: trace.EventPending, reason: string(wr.reason), message: shorten(wr.message)}
	if i := t.lastPending(); i >= 0 {
		last := &t.notes[i]
		same := last.reason == n.reason
		switch {
		case same && last.message == n.message:
			return
		case n.at-last.at < onsetDelay && same:
			last.message = n.message
			return
		case n.at-last.at < onsetDelay:
			t.hush(now)
		}
	}
	t.add(n)
}

// lastPending is the index of the newest reason; negative if there is none.
func (t *thread) lastPending() int {
	i := len(t.notes) - 1
	for i >= 0 && t.notes[i].name != trace.EventPending {
		i--
	}
	return i
}

// hush forgets the newest reason if it did not last.
func (t *thread) hush(now clock.Instant) {
	if i := t.lastPending(); i >= 0 && now.Elapsed-t.notes[i].at < onsetDelay {
		t.notes = slices.Delete(t.notes, i, i+1)
	}
}

// stopPending notes that a reference does not wait any more.
func (s *State) stopPending(wr *waiter) {
	st := wr.pod.journey.story
	if st == nil {
		return
	}
	for i := range st.threads {
		if st.threads[i].reference == wr.name {
			st.threads[i].hush(s.tracing.now)
		}
	}
}

// noteTroubles notes what an event tells of a pod, or of each pod of a group.
func (s *State) noteTroubles(trouble *dra.Trouble, change *Change) {
	if !s.tracing.on || change.Gone {
		return
	}
	if p, known := s.books.pods[trouble.Pod]; known && p.life.UID == trouble.PodUID {
		s.noteTrouble(p, trouble, change.Live, change.At)
	}
	for _, p := range s.books.members[trouble.Pod] {
		if group := s.books.group(p); group != nil && group.UID == trouble.PodUID {
			s.noteTrouble(p, trouble, change.Live, change.At)
		}
	}
}

// noteTrouble notes an event: when it was told, or, where a list told of it,
// when its author says that it happened last.
func (s *State) noteTrouble(p *podEntry, trouble *dra.Trouble, live bool, told clock.Instant) {
	if p.journey.story == nil {
		return
	}
	n := note{at: told.Elapsed, name: eventPreparation, reason: failurePreparation, message: shorten(trouble.Message)}
	about := ""
	author := clockNode
	if trouble.Kind == dra.TroubleCreation {
		n.name, n.reason, author = eventCreation, failureCreation, clockServer
		about, _ = namedIn(trouble.Message)
	}
	if !live {
		if trouble.Last.IsZero() {
			return // nobody knows when
		}
		n.at = min(n.at, s.clocks.elapsed(author, p.life.Node, trouble.Last, told))
	}
	p.journey.story.thread(about).add(n)
}

// noteBinding notes that a failure condition of a device has become true, for
// those that the claim is reserved for.
func (s *State) noteBinding(c *claimEntry, at clock.Instant) {
	if !s.tracing.on {
		return
	}
	for _, p := range c.users {
		if p.journey.story == nil || !c.reservedFor(p) {
			continue
		}
		for i := range p.refs {
			if p.refs[i].claim == c && !names(p.refs[:i], c) {
				p.journey.story.thread(p.refs[i].name).add(note{
					at: at.Elapsed, name: trace.EventBinding, reason: failureBinding, message: "a failure condition of a device has become true",
				})
			}
		}
	}
}

// shorten cuts a message between two characters. What is cut off is not kept in
// memory either.
func shorten(message string) string {
	const more = "…"
	if len(message) <= mostMessage {
		return message
	}
	end := mostMessage - len(more)
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + more
}
