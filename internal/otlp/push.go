package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/ratelog"
)

// Options are what is pushed, and how.
type Options struct {
	Settings Settings
	Identity Identity
	// Snapshot returns the rows of the newest snapshot and its time; the zero
	// time: there is none yet. It is called at each push and a few times a
	// second before the first, must not block, and its rows are only read.
	Snapshot func() (rows []metric.Row, at time.Time)
	// Live are the metrics that no snapshot holds. They go out beside the rows.
	Live prometheus.Gatherer
	// Registry takes the metrics about pushing.
	Registry prometheus.Registerer
	Clock    clock.Clock
	Log      *slog.Logger
}

// Identity is who speaks.
type Identity struct {
	Version string // of the exporter
	Node    string // empty: on no node in particular
	// Instance is what the scrape's label instance would be: the name of the
	// node, or "cluster".
	Instance string
}

func (i Identity) version() string { return cmp.Or(i.Version, "unknown") }

// Pusher pushes metrics and traces to a collector, as the settings say. What
// the collector does changes nothing for whoever gives to it or scrapes.
type Pusher struct {
	options  Options
	resource *resource.Resource
	metrics  *watchedMetrics // nil: off
	spans    *watchedSpans   // nil: off
	tracer   *tracer         // nil: off
	taken    func()          // tells who has made the push that it was taken
}

// New makes a pusher, which speaks to nobody before Run. A collector that
// cannot be reached is no error. Run must be called to free what New has made.
func New(ctx context.Context, options Options) (*Pusher, error) {
	settings := options.Settings
	if !settings.On() {
		return nil, errors.New("push by OTLP: no endpoint is set")
	}
	if settings.Metrics.On && settings.Interval <= 0 {
		return nil, fmt.Errorf("push by OTLP: %v is not a valid interval", settings.Interval)
	}
	settings.Agent = cmp.Or(settings.Agent, "dra-exporter/"+options.Identity.version())
	described, err := describe(ctx, options.Identity, settings.Attributes)
	if err != nil {
		return nil, fmt.Errorf("describe the resource for OTLP: %w", err)
	}
	metrics, err := newPushMetrics(options.Registry, settings)
	if err != nil {
		return nil, fmt.Errorf("register the metrics about OTLP: %w", err)
	}
	p := &Pusher{options: options, resource: described}
	// A collector that takes one export and refuses the next would have each told.
	options.Log = slog.New(ratelog.Limit(options.Log.Handler(), "push by OTLP"))
	if settings.Metrics.On {
		inner, err := settings.metricExporter(ctx)
		if err != nil {
			return nil, fmt.Errorf("create the OTLP exporter of metrics: %w", err)
		}
		p.metrics = &watchedMetrics{Exporter: inner, watch: newWatch(signalMetrics, settings.Metrics, metrics, options)}
	}
	if settings.Traces.On {
		inner, err := settings.spanExporter(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("create the OTLP exporter of traces: %w", err), p.shutMetrics(ctx))
		}
		p.spans = &watchedSpans{SpanExporter: inner, watch: newWatch(signalTraces, settings.Traces, metrics, options)}
		p.tracer = newTracer(tracerOptions{
			Exporter: p.spans, Sampler: settings.Sampler, Resource: described, Version: options.Identity.Version,
			QueueSize: settings.QueueSize, BatchSize: settings.BatchSize, Delay: settings.Delay,
			Queued: metrics.setQueued, Dropped: p.dropped(metrics),
		})
	}
	return p, nil
}

// describe returns who speaks. What the user says wins.
func describe(ctx context.Context, identity Identity, own []attribute.KeyValue) (*resource.Resource, error) {
	attributes := []attribute.KeyValue{
		semconv.ServiceName("dra-exporter"),
		semconv.ServiceVersion(identity.version()),
		semconv.ServiceInstanceID(identity.Instance),
	}
	if identity.Node != "" {
		attributes = append(attributes, semconv.K8SNodeName(identity.Node))
	}
	return resource.New(ctx, resource.WithSchemaURL(semconv.SchemaURL), resource.WithTelemetrySDK(),
		resource.WithAttributes(append(attributes, own...)...))
}

// Run pushes until ctx ends, and then what is newest or waits for at most a
// second. It returns within two seconds of the end whatever the collector
// does. It may be called once.
func (p *Pusher) Run(ctx context.Context) {
	var running sync.WaitGroup
	if p.metrics != nil {
		running.Go(func() { p.runMetrics(ctx) })
	}
	if p.tracer != nil {
		running.Go(func() { p.runTraces(ctx) })
	}
	running.Wait()
}

// Trace takes traces that have come to their end. It does not block, keeps the
// traces, and is safe for concurrent use.
func (p *Pusher) Trace(traces []trace.Trace) {
	if p.tracer != nil {
		p.tracer.Offer(traces)
	}
}

// Sampled says whether the trace of this id would be exported, so that
// exemplars point to nothing that is not there. It is safe for concurrent use.
func (p *Pusher) Sampled(id trace.ID) bool { return p.tracer != nil && p.tracer.Sampled(id) }

func (p *Pusher) runTraces(ctx context.Context) {
	p.tracer.Run(ctx)
	ending, cancel := ended(ctx, closing)
	defer cancel()
	_ = p.spans.Shutdown(ending) // nothing is in flight: it has nothing to say
}

// dropped counts traces that are lost. Those of the end are told as well: the
// counter dies with the process.
func (p *Pusher) dropped(metrics *pushMetrics) func(reason string, traces int) {
	return func(reason string, traces int) {
		metrics.addDropped(reason, traces)
		if reason == reasonShutdown {
			p.options.Log.Warn("traces were not exported before shutdown", "traces", traces,
				"endpoint", p.options.Settings.Traces.URL())
		}
	}
}

// closing is for how long an exporter may take to close its connection.
const closing = 200 * time.Millisecond

// ended is a context for what is done after ctx has ended.
func ended(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}
