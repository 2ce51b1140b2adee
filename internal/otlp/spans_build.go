package otlp

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	otelconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// Limits of foreign text, in bytes. A name of Kubernetes has 253 characters at
// most, and a message of an event 1,024; conditions may have 32 times that.
const (
	nameLimit    = 1 << 10
	messageLimit = 1 << 10
)

// builder makes spans of the SDK from traces that are over. It is used by one
// goroutine.
type builder struct {
	tracer oteltrace.Tracer
	ended  *endedSpans
}

// newBuilder makes a builder of spans of this resource. Which traces are
// sampled has been decided before. The SDK reads its limits of spans
// (OTEL_SPAN_*) from the environment.
func newBuilder(about *resource.Resource, version string) *builder {
	ended := &endedSpans{}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithIDGenerator(ownIDs{}),
		sdktrace.WithSpanProcessor(ended),
	)
	return &builder{
		tracer: provider.Tracer("github.com/dra-exporter/dra-exporter",
			oteltrace.WithInstrumentationVersion(version), oteltrace.WithSchemaURL(otelconv.SchemaURL)),
		ended: ended,
	}
}

// spans returns the spans of the traces, each trace's root first.
func (b *builder) spans(traces []trace.Trace) []sdktrace.ReadOnlySpan {
	for i := range traces {
		b.build(&traces[i])
	}
	spans := b.ended.spans
	b.ended.spans = nil
	return spans
}

// build starts and ends the spans of one trace, as if it happened now, but
// with the times at which it did.
func (b *builder) build(t *trace.Trace) {
	about := identity(t)
	root := context.Background()
	for i := range t.Spans {
		span := &t.Spans[i]
		ids := oteltrace.SpanContextConfig{
			TraceID: oteltrace.TraceID(t.ID()),
			SpanID:  oteltrace.SpanID(trace.NewSpanID(t.Claim.UID, t.Pod.UID, span.Name())),
		}
		attributes := append(make([]attribute.KeyValue, 0, len(about)+8), about...)
		attributes = appendPhase(attributes, span)
		if i == 0 {
			attributes = appendWhole(attributes, t)
		}
		b.ended.lost = span.Lost
		ctx, made := b.tracer.Start(context.WithValue(root, idsKey{}, ids), spanName(span.Phase),
			oteltrace.WithTimestamp(span.Begin.At), oteltrace.WithAttributes(attributes...))
		for j := range span.Events {
			addEvent(made, &span.Events[j])
		}
		if span.Failed != "" {
			made.SetStatus(codes.Error, clean(cmp.Or(span.Message, span.Failed), messageLimit))
		}
		// The children get the root as their parent though it is over: a parent
		// is an id.
		made.End(oteltrace.WithTimestamp(span.End.At))
		if i == 0 {
			root = ctx
		}
	}
}

// identity are the attributes of all spans of a trace.
func identity(t *trace.Trace) []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, 7)
	for _, a := range []struct {
		key   attribute.Key
		value string
	}{
		{keyNamespace, t.Claim.Namespace}, {keyClaimName, t.Claim.Name}, {keyClaimUID, t.Claim.UID},
		{keyClass, t.Claim.Class},
		{keyPodName, t.Pod.Name}, {keyPodUID, t.Pod.UID}, {keyNode, t.Pod.Node},
	} {
		if a.value != "" {
			attributes = append(attributes, a.key.String(clean(a.value, nameLimit)))
		}
	}
	return attributes
}

// appendWhole appends what the root alone has: what the claim was allocated,
// and how many attempts are left out.
func appendWhole(attributes []attribute.KeyValue, t *trace.Trace) []attribute.KeyValue {
	if t.Lost > 0 {
		attributes = append(attributes, keyLost.Int(t.Lost))
	}
	if len(t.Claim.Devices) == 0 {
		return attributes
	}
	names := make([]string, len(t.Claim.Devices))
	for i, d := range t.Claim.Devices {
		names[i] = clean(d.Driver+"/"+d.Pool+"/"+d.Name, nameLimit)
	}
	return append(attributes, keyDevices.StringSlice(names))
}

// appendPhase appends what a span has to itself.
func appendPhase(attributes []attribute.KeyValue, span *trace.Span) []attribute.KeyValue {
	attributes = append(attributes,
		keyPhase.String(clean(span.Phase, nameLimit)), keyAttempt.Int(max(span.Attempt, 1)))
	attributes = appendMoment(attributes, &span.Begin, keyBeginBy, keyBeginError)
	attributes = appendMoment(attributes, &span.End, keyEndBy, keyEndError)
	if span.Failed != "" {
		attributes = append(attributes, keyErrorType.String(clean(span.Failed, nameLimit)))
	}
	return attributes
}

// appendMoment appends how a moment is known and how exactly. An error of zero
// means milliseconds, which "0 s" would not.
func appendMoment(attributes []attribute.KeyValue, m *trace.Moment, by, off attribute.Key) []attribute.KeyValue {
	if m.Evidence != "" {
		attributes = append(attributes, by.String(clean(m.Evidence, nameLimit)))
	}
	if m.Error > 0 {
		attributes = append(attributes, off.Float64(m.Error.Seconds()))
	}
	return attributes
}

// addEvent adds what went wrong, with the words of who said so.
func addEvent(span oteltrace.Span, e *trace.Event) {
	attributes := make([]attribute.KeyValue, 0, 2)
	if e.Reason != "" {
		attributes = append(attributes, keyReason.String(clean(e.Reason, nameLimit)))
	}
	if e.Message != "" {
		attributes = append(attributes, keyMessage.String(clean(e.Message, messageLimit)))
	}
	span.AddEvent(clean(e.Name, nameLimit), oteltrace.WithTimestamp(e.At), oteltrace.WithAttributes(attributes...))
}

// idsKey is where a context has the ids of the span that is started in it.
type idsKey struct{}

// ownIDs gives spans the ids that the context says.
type ownIDs struct{}

// NewIDs returns the ids of a root.
func (ownIDs) NewIDs(ctx context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	ids, _ := ctx.Value(idsKey{}).(oteltrace.SpanContextConfig) // build puts nothing else there
	return ids.TraceID, ids.SpanID
}

// NewSpanID returns the id of a child.
func (o ownIDs) NewSpanID(ctx context.Context, _ oteltrace.TraceID) oteltrace.SpanID {
	_, id := o.NewIDs(ctx)
	return id
}

// endedSpans collects the spans that end.
type endedSpans struct {
	spans []sdktrace.ReadOnlySpan
	lost  int // events that the span which is being built had to leave out
}

// OnStart does nothing.
func (*endedSpans) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd keeps the span.
func (e *endedSpans) OnEnd(span sdktrace.ReadOnlySpan) {
	if e.lost > 0 {
		span = lossySpan{ReadOnlySpan: span, lost: e.lost}
	}
	e.spans = append(e.spans, span)
}

// Shutdown does nothing.
func (*endedSpans) Shutdown(context.Context) error { return nil }

// ForceFlush does nothing.
func (*endedSpans) ForceFlush(context.Context) error { return nil }

// lossySpan is a span that has lost events before it came to the SDK.
type lossySpan struct {
	sdktrace.ReadOnlySpan
	lost int
}

// DroppedEvents are those and what the SDK's limit has dropped.
func (l lossySpan) DroppedEvents() int { return l.ReadOnlySpan.DroppedEvents() + l.lost }
