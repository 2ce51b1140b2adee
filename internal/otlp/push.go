package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp/naming"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/ratelog"
)

const (
	// mostPointsPerRequest is the most data points of one request. Collectors
	// accept messages of 4 MiB by gRPC; our points have 200 to 500 bytes, and 1.5
	// KiB with the longest possible names of namespaces, claims and pods. A quarter
	// of what would fit needs 5 MiB less memory during an export.
	mostPointsPerRequest = 1024
	// snapshotPoll is how often to check for the first snapshot.
	snapshotPoll = 100 * time.Millisecond
	// never is an interval that does not elapse.
	never = time.Duration(math.MaxInt64)
	// closeTimeout is how long an exporter may take to close its connection.
	closeTimeout = 200 * time.Millisecond
)

// Pusher pushes metrics and traces to a collector. A slow or failing collector
// affects neither its callers nor scrapes.
type Pusher struct {
	options   Options
	resource  *resource.Resource
	metrics   *recordedMetrics // nil: off
	spans     *recordedSpans   // nil: off
	tracer    *tracer          // nil: off
	delivered func()           // informs the producer that its last push was accepted
}

// New returns a pusher, which does not connect before Run. A collector that
// cannot be reached is no error. Run must be called to release its resources.
func New(ctx context.Context, options Options) (*Pusher, error) {
	s := options.Settings
	if !s.On() {
		return nil, errors.New("push by OTLP: no endpoint is set")
	}
	if s.Metrics.On && s.Interval <= 0 {
		return nil, fmt.Errorf("push by OTLP: %v is not a valid interval", s.Interval)
	}
	s.Agent = cmp.Or(s.Agent, "dra-exporter/"+options.Identity.version())
	described, err := newResource(ctx, options.Identity, s.Attributes)
	if err != nil {
		return nil, fmt.Errorf("describe the resource for OTLP: %w", err)
	}
	metrics, err := newPushMetrics(options.Registry, s.Traces.On)
	if err != nil {
		return nil, fmt.Errorf("register the metrics about OTLP: %w", err)
	}
	p := &Pusher{options: options, resource: described}
	// A collector that accepts every other export would log each of them.
	log := slog.New(ratelog.Limit(options.Log.Handler(), "push by OTLP"))
	if s.Metrics.On {
		exporter, err := newMetricExporter(s)
		if err != nil {
			return nil, fmt.Errorf("create the OTLP exporter of metrics: %w", err)
		}
		p.metrics = &recordedMetrics{Exporter: exporter, recorder: newRecorder(signalMetrics, s.Metrics, metrics, options.Clock, log)}
	}
	if s.Traces.On {
		exporter, err := newSpanExporter(ctx, s)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("create the OTLP exporter of traces: %w", err), p.shutDownMetrics(ctx))
		}
		p.spans = &recordedSpans{SpanExporter: exporter, recorder: newRecorder(signalTraces, s.Traces, metrics, options.Clock, log)}
		p.tracer = newTracer(tracerOptions{
			Exporter: p.spans, Sampler: s.Sampler, Resource: described, Version: options.Identity.Version,
			QueueSize: s.QueueSize, BatchSize: s.BatchSize, Delay: s.Delay,
			Queued: metrics.setQueued,
			Dropped: func(reason string, traces int) {
				metrics.addDropped(reason, traces)
				if reason == reasonShutdown { // nothing scrapes the counter after the end
					options.Log.Warn("traces were not exported before shutdown", "traces", traces, "endpoint", s.Traces.URL())
				}
			},
		})
	}
	return p, nil
}

// newResource describes the exporter. The user's attributes override ours.
func newResource(ctx context.Context, identity Identity, user []attribute.KeyValue) (*resource.Resource, error) {
	attributes := []attribute.KeyValue{
		semconv.ServiceName("dra-exporter"),
		semconv.ServiceVersion(identity.version()),
		semconv.ServiceInstanceID(identity.Instance),
	}
	if identity.Node != "" {
		attributes = append(attributes, semconv.K8SNodeName(identity.Node))
	}
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(append(attributes, user...)...))
	if err != nil {
		return nil, err
	}
	// The SDK describes itself by an older version, in which its attributes are the same.
	return resource.NewWithAttributes(naming.SchemaURL, described.Attributes()...), nil
}

// Run pushes until ctx ends, and then the newest metrics and the queued traces
// for at most a second. It returns within two seconds after ctx ends, whatever
// the collector does. It may be called once.
func (p *Pusher) Run(ctx context.Context) {
	var running sync.WaitGroup
	if p.metrics != nil {
		running.Go(func() { p.runMetrics(ctx) })
	}
	if p.tracer != nil {
		running.Go(func() {
			p.tracer.Run(ctx)
			ending, cancel := withoutCancel(ctx, closeTimeout)
			defer cancel()
			_ = p.spans.Shutdown(ending) // no export is running that could fail
		})
	}
	running.Wait()
}

// Trace queues traces that have ended. It does not block, keeps the traces, and
// is safe for concurrent use.
func (p *Pusher) Trace(traces []trace.Trace) {
	if p.tracer != nil {
		p.tracer.Offer(traces)
	}
}

// Sampled reports whether the trace with this id would be exported: exemplars
// must not refer to others. It is safe for concurrent use.
func (p *Pusher) Sampled(id trace.ID) bool { return p.tracer != nil && p.tracer.Sampled(id) }

// runMetrics pushes once there is a snapshot, then at the interval, and once
// more when ctx ends. Without a snapshot it pushes no live metrics either: they
// would show an exporter that sees no devices.
func (p *Pusher) runMetrics(ctx context.Context) {
	for _, _, at := p.options.Snapshot(); at.IsZero(); _, _, at = p.options.Snapshot() {
		if !wait(ctx, snapshotPoll) {
			_ = p.shutDownMetrics(ctx) // nothing was pushed that could fail
			return
		}
	}
	reader := p.newReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(p.resource), sdkmetric.WithReader(reader))
	for ctx.Err() == nil {
		began := p.options.Clock()
		p.push(ctx, reader)
		wait(ctx, p.untilNext(began))
	}
	// This cancels a running push, and makes the last one. Its failure is counted
	// and logged like any other.
	ending, cancel := withoutCancel(ctx, flushTimeout)
	defer cancel()
	_ = provider.Shutdown(ending)
	p.metrics.end()
}

// newReader returns the SDK's reader, which collects, splits into requests and
// exports, with a timeout for each request. Only push triggers it, never its own
// ticker: the ticker's first push would come an interval too late, it does not
// know when a collector asks not to be called, and it logs to a global.
func (p *Pusher) newReader() *sdkmetric.PeriodicReader {
	var rows rowNaming = naming.NewPrometheus()
	if p.options.Settings.Naming == settings.NamingSemconv {
		rows = naming.NewSemConv()
	}
	producer := newProducer(rows, p.options)
	p.delivered = producer.delivered
	return sdkmetric.NewPeriodicReader(p.metrics, sdkmetric.WithProducer(&countedProducer{producer, p.metrics.begin}),
		sdkmetric.WithInterval(never), sdkmetric.WithTimeout(p.options.Settings.Timeout),
		sdkmetric.WithMaxExportBatchSize(mostPointsPerRequest))
}

// countedProducer calls begin before each collection.
type countedProducer struct {
	sdkmetric.Producer
	begin func()
}

// Produce collects.
func (c *countedProducer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	c.begin()
	return c.Producer.Produce(ctx)
}

// push collects and exports, and returns when that is done or ctx ends.
func (p *Pusher) push(ctx context.Context, reader *sdkmetric.PeriodicReader) {
	// Without a deadline the reader would set one for the whole push, and continue
	// in the background after it.
	limited, cancel := context.WithTimeout(ctx, never)
	defer cancel()
	err := reader.ForceFlush(limited)
	if ctx.Err() != nil {
		return // it may have been cancelled; the last push follows
	}
	if err != nil {
		p.options.Log.Warn("metrics cannot be collected for a push", "err", err)
	}
	if p.metrics.end() {
		p.delivered()
	}
}

// untilNext is how long to wait after a push. Pushes are at multiples of the
// interval; a slow push skips those that it overlaps. It is longer, for some
// minutes at most, if the collector asks for that.
func (p *Pusher) untilNext(began clock.Instant) time.Duration {
	interval := p.options.Settings.Interval
	took := p.options.Clock().Since(began)
	return max(interval-took%interval, p.metrics.pause())
}

// shutDownMetrics closes the exporter if there is no reader that does.
func (p *Pusher) shutDownMetrics(ctx context.Context) error {
	if p.metrics == nil {
		return nil
	}
	ending, cancel := withoutCancel(ctx, closeTimeout)
	defer cancel()
	return p.metrics.Shutdown(ending)
}

// withoutCancel is a context for work after ctx has ended.
func withoutCancel(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}
