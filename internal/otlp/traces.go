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

// flushTimeout is how long exports continue after the end.
const flushTimeout = time.Second

// tracerOptions are a tracer's parameters. Queued and Dropped are called by
// several goroutines and must not block.
type tracerOptions struct {
	// Exporter returns each export's error. It is called by one goroutine, and
	// need not retry.
	Exporter sdktrace.SpanExporter
	Sampler  sdktrace.Sampler // nil: every trace is sampled
	Resource *resource.Resource
	Version  string // of the exporter
	// QueueSize and BatchSize are in spans; an event counts as a span, and so do
	// four devices. A batch consists of whole traces: one trace may be larger than
	// either.
	QueueSize, BatchSize int
	Delay                time.Duration                   // how long a trace may wait for its batch to fill
	Queued               func(traces int)                // the present length of the queue
	Dropped              func(reason string, traces int) // that many more are lost
	Retry                *backoff.ExponentialBackOff     // nil: 1 s to 30 s
}

// tracer exports traces, in the order in which they were offered.
//
// An export with a retryable error is retried, with increasing delays, until it
// succeeds, while the queue fills. If only the response was lost the collector
// gets a batch twice, with the same ids: they are computed from UIDs.
type tracer struct {
	tracerOptions
	queue *traceQueue
	// The rest is used by Run alone.
	builder *spanBuilder
	limit   int  // the most weight of a batch: BatchSize, or less if the collector accepts less
	paused  bool // ctx ended while the collector asked not to be called
}

// newTracer returns a tracer that exports nothing before Run.
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
		builder:       newSpanBuilder(options.Resource, options.Version),
		limit:         options.BatchSize,
	}
}

// Sampled reports whether the trace is exported. It is safe for concurrent use.
func (t *tracer) Sampled(id trace.ID) bool {
	return t.Sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: context.Background(),
		TraceID:       oteltrace.TraceID(id),
		Name:          rootSpanName,
		Kind:          oteltrace.SpanKindInternal,
	}).Decision == sdktrace.RecordAndSample
}

// Offer queues those of the ended traces that are sampled. It counts traces that
// do not fit into the queue or come after Run has returned. It does not block
// and is safe for concurrent use. It keeps the traces, which must not be changed
// afterwards. Traces without spans are ignored.
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

// Run exports what is offered until ctx ends, and then what is queued for at most
// a second; what is left after that is counted as dropped. It does not shut the
// exporter down.
func (t *tracer) Run(ctx context.Context) {
	// A running export may continue until that second is over: the result of a
	// cancelled export is unknown.
	exporting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		expired := time.NewTimer(flushTimeout)
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
	if !t.paused {
		t.flush(exporting)
	}
	if left := t.queue.end(); left > 0 {
		t.Dropped(reasonShutdown, left)
	}
}

// gather waits until there is something to export, and then until the batch is
// full or the delay has elapsed. It returns false when ctx ends.
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

// drain exports until the queue is empty or ctx ends, with delays after failures.
func (t *tracer) drain(ctx, exporting context.Context) {
	t.Retry.Reset()
	for ctx.Err() == nil {
		batch := t.queue.head(t.limit)
		if len(batch) == 0 {
			return
		}
		err := t.Exporter.ExportSpans(exporting, t.builder.spans(batch))
		if t.finish(batch, err) {
			t.Retry.Reset()
			continue
		}
		pause := min(retryAfter(err), longestPause)
		if t.paused = !wait(ctx, pause) && pause > 0; !t.paused {
			wait(ctx, t.Retry.NextBackOff()-pause)
		}
	}
}

// flush exports until the queue is empty, exporting ends, or an export fails.
func (t *tracer) flush(exporting context.Context) {
	for exporting.Err() == nil {
		batch := t.queue.head(t.limit)
		if len(batch) == 0 || !t.finish(batch, t.Exporter.ExportSpans(exporting, t.builder.spans(batch))) {
			return
		}
	}
}

// finish removes the batch from the queue if it was accepted or refused. It
// returns false if the batch must be retried after a delay.
func (t *tracer) finish(batch []trace.Trace, err error) bool {
	_, _, accepted := partialSuccess(err)
	switch {
	case accepted || err == nil:
		t.queue.remove(len(batch))
	case tooLarge(err) && len(batch) > 1:
		// The next batch is smaller.
		t.limit = max(batchWeight(batch)/2, 1)
	case retryable(err):
		return false
	default:
		t.queue.remove(len(batch))
		t.Dropped(reasonRefused, len(batch))
	}
	return true
}

// wait waits for that long, and returns false if ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
