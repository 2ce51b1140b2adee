package otlp

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp/naming"
)

// failedTrace is a trace that failed in its second allocation, has lost events,
// and knows little of its claim.
func failedTrace() trace.Trace {
	t := lifecycle(7)
	t.Claim.Class, t.Claim.Devices, t.Pod.Node = "", nil, ""
	end := t.Spans[2].End
	t.Spans = t.Spans[:2]
	t.Spans[0].End = end
	t.Spans[0].Failed, t.Spans[0].Message = "pod_deleted", "the pod was deleted"
	t.Spans = append(t.Spans, trace.Span{
		Phase: "allocation", Attempt: 2, Begin: t.Spans[1].End, End: end,
		Failed: "pod_deleted", Lost: 3,
		Events: []trace.SpanEvent{{At: end.At, Name: "pending", Reason: "no_devices"}},
	})
	return t
}

// A phase that failed has the status Error, and so does the root; an attempt
// has an id of its own, and what is unknown is absent.
func TestTraceOfFailure(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		tracing := startTracing(t, protocol, nil)
		offered := failedTrace()
		tracing.Offer([]trace.Trace{offered})
		spans := tracing.await(t, 3)
		checkSpans(t, &offered, spans)
		for i, want := range []string{"the pod was deleted", "", "pod_deleted"} {
			status, code := spans[i].GetStatus(), tracepb.Status_STATUS_CODE_UNSET
			if want != "" {
				code = tracepb.Status_STATUS_CODE_ERROR
			}
			if status.GetCode() != code || status.GetMessage() != want {
				t.Errorf("span %d: status %v, want %v %q", i, status, code, want)
			}
		}
		root, second := attributesOf(spans[0].GetAttributes()), attributesOf(spans[2].GetAttributes())
		if root["error.type"] != "pod_deleted" || second["error.type"] != "pod_deleted" || second["dra.phase.attempt"] != "2" {
			t.Errorf("attributes %v and %v", root, second)
		}
		for _, key := range []string{"k8s.node.name", "dra.deviceclass.name", "dra.devices", "dra.attempts.lost"} {
			if value, there := root[key]; there {
				t.Errorf("%s is unknown and says %q", key, value)
			}
		}
		if bytes.Equal(spans[1].GetSpanId(), spans[2].GetSpanId()) {
			t.Error("both attempts have one id")
		}
		if spans[1].GetDroppedEventsCount() != 0 || spans[2].GetDroppedEventsCount() != 3 {
			t.Errorf("%d and %d events dropped, want 0 and 3", spans[1].GetDroppedEventsCount(), spans[2].GetDroppedEventsCount())
		}
		event := attributesOf(spans[2].GetEvents()[0].GetAttributes())
		if _, there := event["dra.event.message"]; there || event["dra.event.reason"] != "no_devices" {
			t.Errorf("event %v", event)
		}
	})
}

// Bytes that are no UTF-8 would fail a whole batch in protobuf: they arrive
// replaced, with all the rest, and endless texts arrive cut.
func TestForeignBytesArrive(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		tracing := startTracing(t, protocol, nil)
		const bad = "bad\xff\xc0"
		long := strings.Repeat("é", 40_000)
		offered := lifecycle(1)
		offered.Claim = trace.Claim{Namespace: bad, Name: bad, UID: bad, Class: bad, Devices: []trace.Device{{Driver: bad, Pool: bad, Name: bad}}}
		offered.Pod = trace.Pod{Name: bad, UID: bad, Node: bad}
		for i := range offered.Spans {
			span := &offered.Spans[i]
			span.Failed, span.Message = bad, long+bad
			span.Events = []trace.SpanEvent{{At: span.End.At, Name: bad, Reason: bad, Message: bad + long}}
		}
		offered.Spans[1].Phase, offered.Spans[1].Begin.Evidence = bad, bad
		tracing.Offer([]trace.Trace{offered, lifecycle(2)})
		spans := tracing.await(t, 10)
		const good = "bad\uFFFD"
		attributes := attributesOf(spans[0].GetAttributes())
		for _, key := range []string{"k8s.namespace.name", "dra.resourceclaim.name", "k8s.node.name", "error.type"} {
			if attributes[key] != good {
				t.Errorf("%s is %q, want %q", key, attributes[key], good)
			}
		}
		texts := []string{spans[0].GetStatus().GetMessage(), attributesOf(spans[0].GetEvents()[0].GetAttributes())["dra.event.message"]}
		for _, text := range texts {
			if len(text) > 1024 || len(text) < 1000 || !utf8.ValidString(text) || !strings.HasSuffix(text, "é…") {
				t.Errorf("a text of %d bytes ends with %q", len(text), text[max(0, len(text)-8):])
			}
		}
		if got := attributesOf(spans[5].GetAttributes())["dra.resourceclaim.name"]; got != "claim-2" {
			t.Errorf("beside it arrived %q", got)
		}
	})
}

// The resource of spans, which the SDK merges with the environment's, keeps its schema.
func TestSpansSchema(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=ml")
	described, err := newResource(t.Context(), Identity{Instance: "cluster"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range newSpanBuilder(described, "").spans([]trace.Trace{lifecycle(1)}) {
		if of, scope := span.Resource().SchemaURL(), span.InstrumentationScope().SchemaURL; of != naming.SchemaURL || scope != naming.SchemaURL {
			t.Errorf("%s: the schema of the resource is %q, that of the scope %q", span.Name(), of, scope)
		}
	}
}

// The table of attributes and what spans have are the same.
func TestSpanWordsAreComplete(t *testing.T) {
	full := lifecycle(1)
	full.Spans[0].Failed = "pod_failed"
	full.Spans[0].End.Error = time.Second
	full.Lost = 2
	seen := map[attribute.Key]attribute.Type{}
	for _, span := range newSpanBuilder(resource.Empty(), "").spans([]trace.Trace{full}) {
		all := slices.Clone(span.Attributes())
		for _, event := range span.Events() {
			all = append(all, event.Attributes...)
		}
		for _, a := range all {
			seen[a.Key] = a.Value.Type()
		}
	}
	conventions, err := os.ReadFile("naming/testdata/semconv-1.44.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[attribute.Key]bool{}
	for _, word := range spanAttributes() {
		documented[word.key] = true
		if kind, there := seen[word.key]; !there || kind != word.kind {
			t.Errorf("%s: documented as %v, seen as %v (%v)", word.key, word.kind, kind, there)
		}
		if word.meaning == "" {
			t.Errorf("%s has no meaning", word.key)
		}
		if !strings.HasPrefix(string(word.key), "dra.") && !strings.Contains(string(conventions), "\nattribute "+string(word.key)+"\n") {
			t.Errorf("%s is a name of neither this project nor the conventions", word.key)
		}
	}
	for key := range seen {
		if !documented[key] {
			t.Errorf("%s is not documented", key)
		}
	}
}

// The SDK's limits of spans hold, and say what they dropped together with what
// the reducer had to leave out.
func TestSpanLimitsOfTheEnvironment(t *testing.T) {
	t.Setenv("OTEL_SPAN_EVENT_COUNT_LIMIT", "1")
	offered := failedTrace()
	last := &offered.Spans[2]
	last.Events = append(last.Events, last.Events[0], last.Events[0])
	spans := newSpanBuilder(resource.Empty(), "").spans([]trace.Trace{offered})
	if got := spans[2].DroppedEvents(); got != 5 || len(spans[2].Events()) != 1 {
		t.Errorf("%d events dropped and %d kept, want 5 and 1", got, len(spans[2].Events()))
	}
}
