package otlp

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp/naming"
)

// Limits of external text, in bytes. A name in Kubernetes has at most 253
// characters, and a message of an event 1,024; conditions may have 32 times that.
const (
	nameLimit    = 1 << 10
	messageLimit = 1 << 10
)

// spanBuilder converts traces that have ended to spans of the SDK. It is not safe
// for concurrent use.
type spanBuilder struct {
	tracer oteltrace.Tracer
	ended  *endedSpans
}

// newSpanBuilder returns a builder of spans of this resource. It samples nothing:
// the tracer does. The SDK reads its limits of spans (OTEL_SPAN_*) from the
// environment.
func newSpanBuilder(r *resource.Resource, version string) *spanBuilder {
	ended := &endedSpans{}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(r),
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithIDGenerator(contextIDs{}),
		sdktrace.WithSpanProcessor(ended),
	)
	return &spanBuilder{
		tracer: provider.Tracer(scopeName,
			oteltrace.WithInstrumentationVersion(version), oteltrace.WithSchemaURL(naming.SchemaURL)),
		ended: ended,
	}
}

// spans returns the spans of the traces, each trace's root first.
func (b *spanBuilder) spans(traces []trace.Trace) []sdktrace.ReadOnlySpan {
	for i := range traces {
		b.build(&traces[i])
	}
	spans := b.ended.spans
	b.ended.spans = nil
	return spans
}

// build starts and ends the spans of one trace, with its timestamps.
func (b *spanBuilder) build(t *trace.Trace) {
	identity := identityAttributes(t)
	root := context.Background()
	for i := range t.Spans {
		span := &t.Spans[i]
		ids := oteltrace.SpanContextConfig{
			TraceID: oteltrace.TraceID(t.ID()),
			SpanID:  oteltrace.SpanID(trace.NewSpanID(t.Claim.UID, t.Pod.UID, span.Name())),
		}
		attributes := append(make([]attribute.KeyValue, 0, len(identity)+8), identity...)
		attributes = appendPhase(attributes, span)
		if i == 0 {
			attributes = appendRoot(attributes, t)
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
		// The root may be the parent after its end: a parent is an id.
		made.End(oteltrace.WithTimestamp(span.End.At))
		if i == 0 {
			root = ctx
		}
	}
}

// identityAttributes are the attributes of all spans of a trace.
func identityAttributes(t *trace.Trace) []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, 7)
	for _, a := range []struct {
		key   attribute.Key
		value string
	}{
		{semconv.K8SNamespaceNameKey, t.Claim.Namespace}, {naming.ResourceClaimName, t.Claim.Name}, {naming.ResourceClaimUID, t.Claim.UID},
		{naming.DeviceClassName, t.Claim.Class},
		{semconv.K8SPodNameKey, t.Pod.Name}, {semconv.K8SPodUIDKey, t.Pod.UID}, {semconv.K8SNodeNameKey, t.Pod.Node},
	} {
		if a.value != "" {
			attributes = append(attributes, a.key.String(clean(a.value, nameLimit)))
		}
	}
	return attributes
}

// appendRoot appends the attributes that only the root has: the allocated
// devices, and the number of omitted attempts.
func appendRoot(attributes []attribute.KeyValue, t *trace.Trace) []attribute.KeyValue {
	if t.Lost > 0 {
		attributes = append(attributes, naming.LostAttempts.Int(t.Lost))
	}
	if len(t.Claim.Devices) == 0 {
		return attributes
	}
	names := make([]string, len(t.Claim.Devices))
	for i, d := range t.Claim.Devices {
		names[i] = clean(d.Driver+"/"+d.Pool+"/"+d.Name, nameLimit)
	}
	return append(attributes, naming.Devices.StringSlice(names))
}

// appendPhase appends the attributes that only the span of a phase has.
func appendPhase(attributes []attribute.KeyValue, span *trace.Span) []attribute.KeyValue {
	attributes = append(attributes,
		naming.Phase.String(clean(span.Phase, nameLimit)), naming.PhaseAttempt.Int(max(span.Attempt, 1)))
	attributes = appendTimestamp(attributes, &span.Begin, naming.BeginEvidence, naming.BeginError)
	attributes = appendTimestamp(attributes, &span.End, naming.EndEvidence, naming.EndError)
	if span.Failed != "" {
		attributes = append(attributes, semconv.ErrorTypeKey.String(clean(span.Failed, nameLimit)))
	}
	return attributes
}

// appendTimestamp appends the source and the precision of a timestamp. An error of
// zero is omitted: it means milliseconds.
func appendTimestamp(attributes []attribute.KeyValue, m *trace.Timestamp, key, off attribute.Key) []attribute.KeyValue {
	if m.Evidence != "" {
		attributes = append(attributes, key.String(clean(m.Evidence, nameLimit)))
	}
	if m.Error > 0 {
		attributes = append(attributes, off.Float64(m.Error.Seconds()))
	}
	return attributes
}

// addEvent adds an event with its reason and the original message.
func addEvent(span oteltrace.Span, e *trace.SpanEvent) {
	attributes := make([]attribute.KeyValue, 0, 2)
	if e.Reason != "" {
		attributes = append(attributes, naming.EventReason.String(clean(e.Reason, nameLimit)))
	}
	if e.Message != "" {
		attributes = append(attributes, naming.EventMessage.String(clean(e.Message, messageLimit)))
	}
	span.AddEvent(clean(e.Name, nameLimit), oteltrace.WithTimestamp(e.At), oteltrace.WithAttributes(attributes...))
}

// idsKey is the key of the ids of the span that is started with a context.
type idsKey struct{}

// contextIDs generates the ids that the context contains.
type contextIDs struct{}

// NewIDs returns the ids of a root.
func (contextIDs) NewIDs(ctx context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	ids, _ := ctx.Value(idsKey{}).(oteltrace.SpanContextConfig) // build puts nothing else there
	return ids.TraceID, ids.SpanID
}

// NewSpanID returns the id of a child.
func (o contextIDs) NewSpanID(ctx context.Context, _ oteltrace.TraceID) oteltrace.SpanID {
	_, id := o.NewIDs(ctx)
	return id
}

// endedSpans collects the ended spans.
type endedSpans struct {
	spans []sdktrace.ReadOnlySpan
	lost  int // events omitted from the span that is being built
}

// OnStart does nothing.
func (*endedSpans) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd keeps the span.
func (e *endedSpans) OnEnd(span sdktrace.ReadOnlySpan) {
	if e.lost > 0 {
		span = truncatedSpan{ReadOnlySpan: span, lost: e.lost}
	}
	e.spans = append(e.spans, span)
}

// Shutdown does nothing.
func (*endedSpans) Shutdown(context.Context) error { return nil }

// ForceFlush does nothing.
func (*endedSpans) ForceFlush(context.Context) error { return nil }

// truncatedSpan is a span with events that were omitted before the SDK.
type truncatedSpan struct {
	sdktrace.ReadOnlySpan
	lost int
}

// DroppedEvents includes those dropped by the SDK's limit.
func (l truncatedSpan) DroppedEvents() int { return l.ReadOnlySpan.DroppedEvents() + l.lost }

// rootSpanName is the name of a trace's root. Lists of traces show only it and
// the service's name, where "ready" would not be clear.
const rootSpanName = "claim ready"

// spanName is the name of a phase's span, without numbers and names of objects,
// so that backends can group by it; the attempt is an attribute.
func spanName(phase string) string {
	if phase == trace.PhaseReady {
		return rootSpanName
	}
	return clean(phase, nameLimit)
}
