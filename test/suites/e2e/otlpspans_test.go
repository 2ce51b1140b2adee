package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// receivedSpan is one span as the collector wrote it.
type receivedSpan struct {
	trace, id, parent string // hex
	name              string
	begin, end        time.Time
	attributes        map[string]any
	failed            bool
	message           string // of the status
	events            []spanEvent
}

type spanEvent struct {
	name       string
	at         time.Time
	attributes map[string]any
}

func (s receivedSpan) String() string {
	return fmt.Sprintf("%s of %s (%s): %v %v", s.name, s.trace, s.length(), s.attributes, s.events)
}

func (s receivedSpan) length() time.Duration { return s.end.Sub(s.begin) }

// event returns the first event of that name with a reason, nil if there is
// none.
func (s receivedSpan) event(name, reason string) *spanEvent {
	for i, e := range s.events {
		if e.name == name && e.attributes["dra.event.reason"] == reason {
			return &s.events[i]
		}
	}
	return nil
}

// spans returns all spans that a sender pushed of the claims of a namespace,
// in the order of the pushes.
func (c *collector) spans(sender, namespace string) (all []receivedSpan, err error) {
	text, err := os.ReadFile(c.file(sender, "traces"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the collector is writing it
		}
		traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		if err != nil {
			return nil, fmt.Errorf("read what the collector received: %w", err)
		}
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					if s := decodeSpan(s); s.attributes["k8s.namespace.name"] == namespace {
						all = append(all, s)
					}
				}
			}
		}
	}
	return all, nil
}

func decodeSpan(s ptrace.Span) receivedSpan {
	read := receivedSpan{
		trace: s.TraceID().String(), id: s.SpanID().String(), parent: s.ParentSpanID().String(), name: s.Name(),
		begin: s.StartTimestamp().AsTime(), end: s.EndTimestamp().AsTime(), attributes: s.Attributes().AsRaw(),
		failed: s.Status().Code() == ptrace.StatusCodeError, message: s.Status().Message(),
	}
	for _, e := range s.Events().All() {
		read.events = append(read.events, spanEvent{e.Name(), e.Timestamp().AsTime(), pcommon.Map(e.Attributes()).AsRaw()})
	}
	return read
}

// user is one claim of one pod. It has one trace.
type user struct{ pod, claim string } // UIDs

// traceID computes the id from its documentation, independently of the
// exporter.
func (u user) traceID() string { return shortHash(16, "trace", u.claim, u.pod) }

func (u user) spanID(phase string) string { return shortHash(8, "span", u.claim, u.pod, phase) }

func shortHash(length int, words ...string) string {
	h := sha256.New()
	for _, word := range words {
		h.Write([]byte(word))
	}
	return hex.EncodeToString(h.Sum(nil)[:length])
}

// traceOf returns the spans of a user's trace, by their start.
func traceOf(u user, all []receivedSpan) []receivedSpan {
	own := slices.DeleteFunc(slices.Clone(all), func(s receivedSpan) bool { return s.trace != u.traceID() })
	slices.SortStableFunc(own, func(a, b receivedSpan) int { return a.begin.Compare(b.begin) })
	return own
}

// maxOverlap is by how much phases may overlap, because two watches may
// deliver events in the wrong order (docs/pending.md). They never leave a gap.
const maxOverlap = 250 * time.Millisecond

// wholeTrace returns an error unless the user's trace exists once, has a span
// for each of these phases below one root span, and the phases follow each
// other from its beginning to its end without a gap.
func wholeTrace(u user, all []receivedSpan, phases ...string) (root receivedSpan, byPhase map[string]receivedSpan, err error) {
	own := traceOf(u, all)
	byPhase = map[string]receivedSpan{}
	for _, s := range own {
		for _, phase := range append([]string{"ready"}, phases...) {
			if s.id == u.spanID(phase) {
				if _, twice := byPhase[phase]; twice {
					return receivedSpan{}, nil, fmt.Errorf("the span of %s is there twice: %v", phase, own)
				}
				byPhase[phase] = s
			}
		}
	}
	if len(own) != len(phases)+1 || len(byPhase) != len(own) {
		return receivedSpan{}, nil, fmt.Errorf("there are %d spans, of which %d are known: %v", len(own), len(byPhase), own)
	}
	root = byPhase["ready"]
	if root.parent != "" {
		return receivedSpan{}, nil, fmt.Errorf("the root has a parent: %v", root)
	}
	at := root.begin
	for _, phase := range phases {
		s := byPhase[phase]
		if s.parent != root.id || s.attributes["dra.phase.name"] != phase {
			return receivedSpan{}, nil, fmt.Errorf("the span of %s has the parent %s: %v", phase, s.parent, s)
		}
		if early := at.Sub(s.begin); early < 0 || early > maxOverlap || s.end.Before(s.begin) {
			return receivedSpan{}, nil, fmt.Errorf("%s is from %s to %s, and what was before it ended at %s", phase, s.begin, s.end, at)
		}
		if s.end.After(at) {
			at = s.end
		}
	}
	if !at.Equal(root.end) {
		return receivedSpan{}, nil, fmt.Errorf("the last phase ends at %s, the whole at %s", at, root.end)
	}
	return root, byPhase, nil
}
