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

// What is kept of one thing that a pod waits for is bounded: of that many notes
// the first half and the last, and so much of a message. So is what is kept of
// all pods together.
const (
	mostNotes   = 64
	mostKept    = 100_000 // notes of all pods, 33 MB at most: beyond that, few of each thing
	fewNotes    = 4
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

func (n *note) sameWords(other *note) bool {
	return n.name == other.name && n.reason == other.reason && n.message == other.message
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
func (st *story) add(t *thread, n note) {
	n.message = strings.Clone(n.message) // it may be a part of something longer
	if kept := len(t.notes); kept == mostNotes || (kept >= fewNotes && *st.kept >= mostKept) {
		middle := kept / 2
		t.notes[middle-1].lost += 1 + t.notes[middle].lost
		t.notes = slices.Delete(t.notes, middle, middle+1)
		*st.kept--
	}
	t.notes = append(t.notes, n)
	*st.kept++
}

// cut forgets threads.
func (st *story) cut(which func(*thread) bool) {
	st.threads = slices.DeleteFunc(st.threads, func(t thread) bool {
		gone := which(&t)
		if gone {
			*st.kept -= len(t.notes)
		}
		return gone
	})
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
			last.message = strings.Clone(n.message)
			return
		case n.at-last.at < onsetDelay:
			st.hush(t, now)
			if last := len(t.notes) - 1; last >= 0 && t.notes[last].sameWords(&n) {
				return // it is what it was before
			}
		}
	}
	st.add(t, n)
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
func (st *story) hush(t *thread, now clock.Instant) {
	if i := t.lastPending(); i >= 0 && now.Elapsed-t.notes[i].at < onsetDelay {
		t.notes = slices.Delete(t.notes, i, i+1)
		*st.kept--
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
			st.hush(&st.threads[i], s.tracing.now)
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
		name, named := namedIn(trouble.Message)
		if named && !p.asksFor(name) {
			return // of another pod of the group; and anybody may write events
		}
		about = name
	}
	if !live {
		if trouble.Last.IsZero() {
			return // nobody knows when
		}
		n.at = min(n.at, s.clocks.elapsed(author, p.life.Node, trouble.Last, told))
	}
	st := p.journey.story
	st.add(st.thread(about), n)
}

// asksFor reports whether the pod has a claim under the name.
func (p *podEntry) asksFor(name string) bool {
	return slices.ContainsFunc(p.life.Claims, func(pc dra.PodClaim) bool { return pc.Name == name })
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
		st := p.journey.story
		for i := range p.refs {
			if p.refs[i].claim == c && !names(p.refs[:i], c) {
				st.add(st.thread(p.refs[i].name), note{
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
