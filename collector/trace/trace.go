// Package trace is the vocabulary of a claim's way from waiting to running as a
// trace: as the cluster role builds it and OTLP carries it. It depends on
// neither.
package trace

import (
	"crypto/sha256"
	"strconv"
	"time"
)

// ID is a trace id as OpenTelemetry has it.
type ID [16]byte

// SpanID is a span id as OpenTelemetry has it.
type SpanID [8]byte

// Phases of the spans that are no phase of the histograms.
const (
	// PhaseReady is the whole: from the pod's waiting to its first container.
	PhaseReady = "ready"
)

// NewID is the id of the trace of one claim and one pod that uses it. It is
// the same whoever computes it and whenever, so that a trace that was exported
// twice is one. UIDs are hashed: a version 4 UUID has bits that are always the
// same, and sampling by ratio looks at them as if they were random.
func NewID(claimUID, podUID string) ID {
	return ID(hash("trace", claimUID, podUID)[:16])
}

// NewSpanID is the id of the span of a phase in that trace. A phase that was
// tried several times has the number of the attempt behind its name, from the
// second on: "binding#2".
func NewSpanID(claimUID, podUID, phase string) SpanID {
	return SpanID(hash("span", claimUID, podUID, phase)[:8])
}

func hash(words ...string) []byte {
	h := sha256.New()
	for _, word := range words {
		h.Write([]byte(word))
	}
	return h.Sum(nil)
}

// Point names a span of a trace, for an exemplar.
type Point struct {
	Trace ID
	Span  SpanID
}

// Trace is the way of one claim to one pod, which has come to its end.
type Trace struct {
	Claim Claim
	Pod   Pod
	// Spans begin with that of PhaseReady, which covers the others; they follow
	// in the order in which they began. A phase whose begin or end is unknown
	// is left out.
	Spans []Span
	Lost  int // attempts that did not fit: those in the middle
}

// ID is the trace's id.
func (t *Trace) ID() ID { return NewID(t.Claim.UID, t.Pod.UID) }

// Claim is the claim of a trace, as it was at the end.
type Claim struct {
	Namespace, Name, UID string
	Class                string // device class, or "multiple"
	Devices              []Device
}

// Device is one device of the claim's allocation.
type Device struct{ Driver, Pool, Name, Request string }

// Pod is the pod of a trace, in the claim's namespace.
type Pod struct {
	Name, UID string
	Node      string // empty: never bound
}

// Span is one phase.
type Span struct {
	Phase      string
	Attempt    int // from 1: which allocation of the claim for this pod it belongs to
	Begin, End Timestamp
	// Failed is why the phase did not complete: a word of the closed set
	// (FailedPodDeleted and its like), and a sentence. Both empty: it
	// completed.
	Failed, Message string
	Events          []SpanEvent // in their order
	Lost            int         // events that did not fit
}

// Name is the phase and, from the second on, the number of the attempt: what
// the span's id is made from.
func (s *Span) Name() string {
	if s.Attempt < 2 {
		return s.Phase
	}
	return s.Phase + "#" + strconv.Itoa(s.Attempt)
}

// Timestamp is the time of an event, its evidence and its error.
type Timestamp struct {
	At time.Time // on the exporter's clock
	// Evidence is "watch" if a watch reported it as it happened, so that our
	// own clock measured it, and "timestamp" if it is a server's timestamp.
	Evidence string
	Error    time.Duration // by how much At may be off, to either side; 0: milliseconds
}

// The evidence of a Timestamp.
const (
	EvidenceWatch     = "watch"
	EvidenceTimestamp = "timestamp"
)

// SpanEvent is something that went wrong within a phase. What kept the claim from
// being made is an event of the root, and came before it began.
type SpanEvent struct {
	At      time.Time
	Name    string // EventPending, EventBinding, or that of the Kubernetes event
	Reason  string // of the closed set of pending reasons, or of failures
	Message string // the scheduler's, the kubelet's, the diagnosis's
}
