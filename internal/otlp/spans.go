package otlp

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// Reasons for which a trace is never exported: the label reason of
// dra_exporter_otlp_dropped_traces_total.
const (
	reasonQueueFull = "queue_full" // too many waited when it came
	reasonRefused   = "refused"    // the collector will not take it, however often asked
	reasonShutdown  = "shutdown"   // it still waited when the exporter ended
)

const (
	// lastFlush is for how long traces are exported after the end.
	lastFlush = time.Second
	// longestRest bounds what a collector may ask for by Retry-After.
	longestRest = 5 * time.Minute
)

// tracerOptions are what a tracer needs. Queued and Dropped are called by
// several goroutines and must not block.
type tracerOptions struct {
	// Exporter returns what came of each export. It is called by one goroutine,
	// and need not try again.
	Exporter sdktrace.SpanExporter
	Sampler  sdktrace.Sampler   // nil: every trace is sampled
	Resource *resource.Resource // who speaks
	Version  string             // of the exporter
	// QueueSize and BatchSize are in spans, where an event counts as a span, and
	// so do four devices. A batch has whole traces, so that one trace may be
	// larger than either.
	QueueSize, BatchSize int
	Delay                time.Duration                   // how long a trace waits for others to be exported with it
	Queued               func(traces int)                // how many wait now
	Dropped              func(reason string, traces int) // so many more are lost
	Retry                *backoff.ExponentialBackOff     // nil: 1 s to 30 s
}

// tracer exports traces, in the order in which they were offered.
//
// An export that fails for a passing reason is tried again, with growing
// pauses, until it succeeds, while the queue fills. Where only the answer was
// lost the collector gets a batch twice: as all ids are computed from UIDs, what
// it gets are the same spans again.
type tracer struct {
	tracerOptions
	queue *traceQueue
	// The rest belongs to Run.
	build   *builder
	limit   int  // what a batch may weigh: BatchSize, or less where the collector takes less
	resting bool // ctx has ended while the collector asked to be left alone
}

// newTracer makes a tracer. Nothing is exported before Run.
func newTracer(options tracerOptions) *tracer {
	if options.Sampler == nil {
		options.Sampler = sdktrace.AlwaysSample()
	}
	if options.Retry == nil {
		options.Retry = &backoff.ExponentialBackOff{
			InitialInterval: time.Second, MaxInterval: 30 * time.Second,
			Multiplier: 2, RandomizationFactor: backoff.DefaultRandomizationFactor,
		}
	}
	options.BatchSize = max(min(options.BatchSize, options.QueueSize), 1)
	return &tracer{
		tracerOptions: options,
		queue:         newTraceQueue(options.QueueSize, options.Queued),
		build:         newBuilder(options.Resource, options.Version),
		limit:         options.BatchSize,
	}
}

// Sampled reports whether the trace is one of those that are exported. It is
// safe for concurrent use.
func (t *tracer) Sampled(id trace.ID) bool {
	return t.Sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: context.Background(),
		TraceID:       oteltrace.TraceID(id),
		Name:          readySpan,
		Kind:          oteltrace.SpanKindInternal,
	}).Decision == sdktrace.RecordAndSample
}

// Offer takes the sampled ones of traces that are over, or counts what does
// not fit into the queue or comes when Run has returned. It does not block, keeps the traces, which must not
// be changed afterwards, and is safe for concurrent use. A trace without spans
// is none.
func (t *tracer) Offer(traces []trace.Trace) {
	sampled := make([]trace.Trace, 0, len(traces))
	for i := range traces {
		if len(traces[i].Spans) > 0 && t.Sampled(traces[i].ID()) {
			sampled = append(sampled, traces[i])
		}
	}
	switch refused, ended := t.queue.add(sampled); {
	case refused == 0:
	case ended:
		t.Dropped(reasonShutdown, refused)
	default:
		t.Dropped(reasonQueueFull, refused)
	}
}

// Run exports what is offered until ctx ends, and then what is queued for at
// most a second more; what is left after that is lost and counted. It does not
// shut the exporter down.
func (t *tracer) Run(ctx context.Context) {
	// An export that is under way at the end may go on until that second is
	// over: to cancel it would be to not know what became of it.
	exporting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		expired := time.NewTimer(lastFlush)
		defer expired.Stop()
		select {
		case <-expired.C:
			cancel()
		case <-exporting.Done():
		}
	})
	defer stop()

	for t.gather(ctx) {
		t.drain(ctx, exporting)
	}
	if !t.resting {
		t.flush(exporting)
	}
	if left := t.queue.end(); left > 0 {
		t.Dropped(reasonShutdown, left)
	}
}

// gather waits until there is something to export, and then until there is a
// batch of it or the delay is over. It reports false at the end of ctx.
func (t *tracer) gather(ctx context.Context) bool {
	var late <-chan time.Time
	for {
		_, weight := t.queue.size()
		if weight >= t.BatchSize {
			return ctx.Err() == nil
		}
		if weight > 0 && late == nil {
			timer := time.NewTimer(t.Delay)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-ctx.Done():
			return false
		case <-late:
			return true
		case <-t.queue.changed:
		}
	}
}

// drain exports until the queue is empty or ctx ends, with pauses after what
// fails.
func (t *tracer) drain(ctx, exporting context.Context) {
	t.Retry.Reset()
	for ctx.Err() == nil {
		batch := t.queue.head(t.limit)
		if len(batch) == 0 {
			return
		}
		err := t.export(exporting, batch)
		if t.settle(batch, err) {
			t.Retry.Reset()
			continue
		}
		rest := min(retryAfter(err), longestRest)
		if t.resting = !wait(ctx, rest) && rest > 0; !t.resting {
			wait(ctx, t.Retry.NextBackOff()-rest)
		}
	}
}

// flush exports what is queued until it is empty, exporting ends, or the
// collector takes nothing.
func (t *tracer) flush(exporting context.Context) {
	for exporting.Err() == nil {
		batch := t.queue.head(t.limit)
		if len(batch) == 0 || !t.settle(batch, t.export(exporting, batch)) {
			return
		}
	}
}

// export asks the collector once.
func (t *tracer) export(ctx context.Context, batch []trace.Trace) error {
	return t.Exporter.ExportSpans(ctx, t.build.spans(batch))
}

// settle takes what has come to its end out of the queue. It reports false
// where nothing has: the batch must be tried again, and a pause made before.
func (t *tracer) settle(batch []trace.Trace, err error) bool {
	_, _, taken := partial(err)
	taken = taken || err == nil
	switch {
	case taken:
		t.queue.remove(len(batch))
	case tooLarge(err) && len(batch) > 1:
		// It will not take more the next time.
		t.limit = max(batchWeight(batch)/2, 1)
	case passing(err):
		return false
	default:
		t.queue.remove(len(batch))
		t.Dropped(reasonRefused, len(batch))
	}
	return true
}
