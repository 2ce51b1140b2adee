package otlp

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// spanPatience is how long tests wait for what must come.
const spanPatience = 30 * time.Second

// tracing is a tracer that runs against a simulated collector by one protocol.
type tracing struct {
	*tracer
	collector *otelcollector.Collector
	stop      context.CancelFunc
	ended     chan struct{}

	mu      sync.Mutex
	queued  int
	dropped map[string]int
}

// startTracing runs a tracer with short pauses until the test ends or stop is
// called. adjust may change its options.
func startTracing(t *testing.T, protocol string, adjust func(*tracerOptions)) *tracing {
	t.Helper()
	// Registered first, so that it looks when all else has been cleaned up.
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	collector, err := otelcollector.Start(otelcollector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(collector.Close)
	r := &tracing{collector: collector, ended: make(chan struct{}), dropped: map[string]int{}}
	options := tracerOptions{
		Exporter:  spanExporterTo(t, protocol, collector.Address(protocol)),
		Resource:  resource.NewSchemaless(attribute.String("service.name", "dra-exporter")),
		Version:   "1.2.3",
		QueueSize: 10_000, BatchSize: 100, Delay: 10 * time.Millisecond,
		Queued: func(n int) { r.mu.Lock(); r.queued = n; r.mu.Unlock() },
		Dropped: func(reason string, n int) {
			r.mu.Lock()
			r.dropped[reason] += n
			r.mu.Unlock()
		},
		Retry: &backoff.ExponentialBackOff{InitialInterval: 5 * time.Millisecond, MaxInterval: 20 * time.Millisecond, Multiplier: 2},
	}
	if adjust != nil {
		adjust(&options)
	}
	r.tracer = newTracer(options)
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() { defer close(r.ended); r.Run(ctx) }()
	t.Cleanup(func() { stop(); <-r.ended })
	return r
}

// spanExporterTo makes the exporter as the program does.
func spanExporterTo(t *testing.T, protocol, address string) sdktrace.SpanExporter {
	t.Helper()
	s := settings.Settings{Traces: settings.SignalSettings{On: true, Protocol: protocol, Endpoint: address, Insecure: true, Timeout: spanPatience}}
	if protocol == settings.ProtocolHTTP {
		s.Traces.Path = "/v1/traces"
	}
	exporter, err := newSpanExporter(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's context has ended by now.
		if err := exporter.Shutdown(context.Background()); err != nil {
			t.Errorf("shut the exporter down: %v", err)
		}
	})
	return exporter
}

// await waits until the collector has accepted that many spans and returns them.
func (r *tracing) await(t *testing.T, spans int) []*tracepb.Span {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), spanPatience)
	defer cancel()
	r.collector.Await(ctx, func(*otelcollector.Collector) bool { return len(r.taken()) >= spans })
	taken := r.taken()
	if len(taken) != spans {
		t.Fatalf("the collector has %d spans, want %d", len(taken), spans)
	}
	return taken
}

// taken returns the spans that the collector has accepted, in order.
func (r *tracing) taken() []*tracepb.Span {
	var spans []*tracepb.Span
	for _, about := range r.collector.Spans() {
		for _, scope := range about.GetScopeSpans() {
			spans = append(spans, scope.GetSpans()...)
		}
	}
	return spans
}

// finish ends the tracer and returns what it has counted.
func (r *tracing) finish() (queued int, dropped map[string]int) {
	r.stop()
	<-r.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queued, maps.Clone(r.dropped)
}

// protocols runs a test by gRPC and by HTTP.
func protocols(t *testing.T, test func(t *testing.T, protocol string)) {
	for _, protocol := range []string{settings.ProtocolGRPC, settings.ProtocolHTTP} {
		t.Run(protocol, func(t *testing.T) { test(t, protocol) })
	}
}

// lifecycle is the n-th trace of a pod that got its claim: a root and four
// phases that touch.
func lifecycle(n int) trace.Trace {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC).Add(time.Duration(n) * time.Second)
	at := func(ms int) trace.Timestamp {
		return trace.Timestamp{At: begin.Add(time.Duration(ms) * time.Millisecond), Evidence: trace.EvidenceWatch}
	}
	first := at(0)
	first.Evidence, first.Error = trace.EvidenceTimestamp, time.Second
	return trace.Trace{
		Claim: trace.Claim{
			Namespace: "team-a", Name: fmt.Sprintf("claim-%d", n), UID: fmt.Sprintf("claim-uid-%d", n), Class: "gpu.example.com",
			Devices: []trace.Device{
				{Driver: "gpu.example.com", Pool: "node-1", Name: "gpu-0", Request: "gpu"},
				{Driver: "gpu.example.com", Pool: "node-1", Name: "gpu-1", Request: "gpu"},
			},
		},
		Pod: trace.Pod{Name: fmt.Sprintf("pod-%d", n), UID: fmt.Sprintf("pod-uid-%d", n), Node: "node-1"},
		Spans: []trace.Span{
			{Phase: trace.PhaseReady, Attempt: 1, Begin: first, End: at(3600)},
			{Phase: "allocation", Attempt: 1, Begin: first, End: at(20), Events: []trace.SpanEvent{
				{At: at(10).At, Name: "pending", Reason: "devices_in_use", Message: "0/3 nodes are available"},
			}},
			{Phase: "scheduling", Attempt: 1, Begin: at(20), End: at(25)},
			{Phase: "preparation", Attempt: 1, Begin: at(25), End: at(3300)},
			{Phase: "start", Attempt: 1, Begin: at(3300), End: at(3600)},
		},
	}
}

func lifecycles(from, to int) []trace.Trace {
	var traces []trace.Trace
	for n := from; n < to; n++ {
		traces = append(traces, lifecycle(n))
	}
	return traces
}

// attributesOf are the attributes by their keys, as text.
func attributesOf(list []*commonpb.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, a := range list {
		texts[a.GetKey()] = anyText(a.GetValue())
	}
	return texts
}

func anyText(value *commonpb.AnyValue) string {
	switch value := value.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return value.StringValue
	case *commonpb.AnyValue_ArrayValue:
		var texts []string
		for _, v := range value.ArrayValue.GetValues() {
			texts = append(texts, anyText(v))
		}
		return fmt.Sprint(texts)
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(value.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return fmt.Sprint(value.DoubleValue)
	}
	return fmt.Sprintf("%T", value.GetValue())
}

// A trace arrives with the ids, times, texts and order that the reducer gave
// it, by both protocols.
func TestTraceArrives(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		tracing := startTracing(t, protocol, nil)
		offered := lifecycle(1)
		tracing.Offer([]trace.Trace{offered})
		spans := tracing.await(t, len(offered.Spans))
		checkSpans(t, &offered, spans)

		about := tracing.collector.Spans()[0]
		if got := attributesOf(about.GetResource().GetAttributes())["service.name"]; got != "dra-exporter" {
			t.Errorf("the resource's service.name is %q", got)
		}
		scope := about.GetScopeSpans()[0].GetScope()
		if scope.GetName() != "github.com/dra-exporter/dra-exporter" || scope.GetVersion() != "1.2.3" {
			t.Errorf("the scope is %v", scope)
		}
		if queued, dropped := tracing.finish(); queued != 0 || len(dropped) != 0 {
			t.Errorf("%d are queued, %v dropped", queued, dropped)
		}
	})
}

// checkSpans compares what arrived with the trace that was offered, span by
// span.
func checkSpans(t *testing.T, offered *trace.Trace, spans []*tracepb.Span) {
	t.Helper()
	id := trace.NewID(offered.Claim.UID, offered.Pod.UID)
	root := trace.NewSpanID(offered.Claim.UID, offered.Pod.UID, trace.PhaseReady)
	for i, span := range spans {
		want := offered.Spans[i]
		wantID := trace.NewSpanID(offered.Claim.UID, offered.Pod.UID, want.Name())
		if !bytes.Equal(span.GetTraceId(), id[:]) || !bytes.Equal(span.GetSpanId(), wantID[:]) {
			t.Errorf("%s: ids %x %x, want %x %x", want.Phase, span.GetTraceId(), span.GetSpanId(), id, wantID)
		}
		parent := root[:]
		if i == 0 {
			parent = nil
		}
		if !bytes.Equal(span.GetParentSpanId(), parent) {
			t.Errorf("%s: parent %x, want %x", want.Phase, span.GetParentSpanId(), parent)
		}
		if got := int64(span.GetStartTimeUnixNano()); got != want.Begin.At.UnixNano() {
			t.Errorf("%s: begins at %d, want %d", want.Phase, got, want.Begin.At.UnixNano())
		}
		if got := int64(span.GetEndTimeUnixNano()); got != want.End.At.UnixNano() {
			t.Errorf("%s: ends at %d, want %d", want.Phase, got, want.End.At.UnixNano())
		}
		if span.GetKind() != tracepb.Span_SPAN_KIND_INTERNAL || span.GetFlags()&1 == 0 {
			t.Errorf("%s: kind %v, flags %b", want.Phase, span.GetKind(), span.GetFlags())
		}
		if got := attributesOf(span.GetAttributes())["dra.phase.name"]; got != want.Phase {
			t.Errorf("span %d is of phase %q, want %q", i, got, want.Phase)
		}
		if len(span.GetEvents()) != len(want.Events) {
			t.Errorf("%s: %d events, want %d", want.Phase, len(span.GetEvents()), len(want.Events))
		}
	}
}

// The names of spans, attributes and events are what users query.
func TestSpanWords(t *testing.T) {
	tracing := startTracing(t, "grpc", nil)
	tracing.Offer([]trace.Trace{lifecycle(1)})
	spans := tracing.await(t, 5)
	var names []string
	for _, span := range spans {
		names = append(names, span.GetName())
	}
	if want := []string{"claim ready", "allocation", "scheduling", "preparation", "start"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	identity := map[string]string{
		"k8s.namespace.name": "team-a", "dra.resourceclaim.name": "claim-1", "dra.resourceclaim.uid": "claim-uid-1",
		"dra.deviceclass.name": "gpu.example.com", "k8s.pod.name": "pod-1", "k8s.pod.uid": "pod-uid-1", "k8s.node.name": "node-1",
		"dra.phase.attempt": "1", "dra.phase.end.evidence": "watch",
	}
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(identity)
		maps.Copy(all, more)
		return all
	}
	for i, want := range []map[string]string{
		with(map[string]string{"dra.phase.name": "ready", "dra.phase.begin.evidence": "timestamp", "dra.phase.begin.error_seconds": "1",
			"dra.devices": "[gpu.example.com/node-1/gpu-0 gpu.example.com/node-1/gpu-1]"}),
		with(map[string]string{"dra.phase.name": "allocation", "dra.phase.begin.evidence": "timestamp", "dra.phase.begin.error_seconds": "1"}),
		with(map[string]string{"dra.phase.name": "scheduling", "dra.phase.begin.evidence": "watch"}),
	} {
		if got := attributesOf(spans[i].GetAttributes()); !maps.Equal(got, want) {
			t.Errorf("attributes of %s:\n got %v\nwant %v", names[i], got, want)
		}
		if status := spans[i].GetStatus(); status.GetCode() != tracepb.Status_STATUS_CODE_UNSET || status.GetMessage() != "" {
			t.Errorf("status of %s: %v", names[i], status)
		}
	}
	event := spans[1].GetEvents()[0]
	if event.GetName() != "pending" || int64(event.GetTimeUnixNano()) != lifecycle(1).Spans[1].Events[0].At.UnixNano() {
		t.Errorf("event %v", event)
	}
	if got, want := attributesOf(event.GetAttributes()), (map[string]string{
		"dra.event.reason": "devices_in_use", "dra.event.message": "0/3 nodes are available",
	}); !maps.Equal(got, want) {
		t.Errorf("attributes of the event: %v, want %v", got, want)
	}
}
