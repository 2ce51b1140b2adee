package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
)

// shortestRetryDelay is the shortest wait before an export is retried.
const shortestRetryDelay = time.Second

// errShutDown is the error of an exporter after Shutdown.
var errShutDown = errors.New("the exporter is shut down")

// silenceSDK keeps OpenTelemetry's own log out of ours: its exporters read the
// environment themselves and log what they refuse there, values of headers
// included. No error is lost: the exporters return errors, which are counted and
// logged.
func silenceSDK() { otel.SetLogger(logr.Discard()) }

// metricExporter exports metrics for the SDK's reader: cumulative, in one
// request, within the signal's timeout, with retries and explained errors. It
// connects when something is exported, not before; Shutdown closes its
// connections.
type metricExporter struct {
	*connection

	mu      sync.Mutex // of what follows
	encoder *encoder
	sender  metricSender // nil: shut down
}

func newMetricExporter(s settings.Settings) (*metricExporter, error) {
	silenceSDK()
	c := newConnection(s.Metrics, s.Agent)
	sender, err := newMetricSender(c)
	if err != nil {
		return nil, fmt.Errorf("create the exporter of metrics to %s: %w", s.Metrics.URL(), err)
	}
	return &metricExporter{connection: c, encoder: newEncoder(), sender: sender}, nil
}

// Temporality is cumulative for every kind.
func (m *metricExporter) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.CumulativeTemporalitySelector(kind)
}

// Aggregation is for instruments of the SDK; there are none.
func (m *metricExporter) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

// Export retries what may succeed later, after the delay that the collector asks
// for, if it does. It returns the last attempt's error, or the one before it if
// the timeout ended the last attempt: that says more.
func (m *metricExporter) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sender == nil {
		return errShutDown
	}
	return m.connection.export(ctx, func(ctx context.Context) (last error) {
		request := m.encoder.request(metrics)
		attempt := func() (struct{}, error) {
			if err := m.sender.send(ctx, request); err == nil || last == nil || !timedOut(ctx, err) {
				last = err
			}
			switch delay := retryAfter(last); {
			case last == nil:
				return struct{}{}, nil
			case !retryable(last) || untrusted(last):
				return struct{}{}, backoff.Permanent(last)
			case delay > 0:
				// A collector that asks for less is not called more often.
				return struct{}{}, &backoff.RetryAfterError{Duration: max(delay, shortestRetryDelay)}
			}
			return struct{}{}, last
		}
		// What Retry returns is not needed: the last attempt's error is the result.
		_, _ = backoff.Retry(ctx, attempt,
			backoff.WithMaxElapsedTime(m.signal.Timeout),
			backoff.WithBackOff(&backoff.ExponentialBackOff{
				InitialInterval: shortestRetryDelay, MaxInterval: 5 * time.Second,
				Multiplier: backoff.DefaultMultiplier, RandomizationFactor: backoff.DefaultRandomizationFactor,
			}))
		return last
	})
}

// ForceFlush ends a push, which may consist of several exports. Nothing is
// queued here.
func (m *metricExporter) ForceFlush(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.encoder.attributes.NextPush()
	return ctx.Err()
}

// Shutdown waits for the running export.
func (m *metricExporter) Shutdown(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sender == nil {
		return errShutDown
	}
	err := m.sender.close()
	m.sender = nil
	return err
}

// spanExporter is an SDK exporter of spans with the same timeout and errors. It
// does not retry: the tracer does. It connects when something is exported, not
// before; Shutdown closes its connections.
type spanExporter struct {
	sdktrace.SpanExporter
	*connection
	client *http.Client // nil with gRPC
}

// newSpanExporter sets every option of the SDK's exporter, because it would read
// those that are not set from the environment, less strictly than the settings.
func newSpanExporter(ctx context.Context, s settings.Settings) (*spanExporter, error) {
	silenceSDK()
	exporter := &spanExporter{connection: newConnection(s.Traces, s.Agent)}
	var err error
	if s.Traces.Protocol == settings.ProtocolGRPC {
		exporter.SpanExporter, err = otlptracegrpc.New(ctx,
			otlptracegrpc.WithEndpoint(exporter.grpcTarget()),
			otlptracegrpc.WithHeaders(s.Traces.Headers),
			otlptracegrpc.WithTimeout(s.Traces.Timeout),
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}),
			otlptracegrpc.WithDialOption(exporter.dialOptions()...),
		)
	} else {
		exporter.client = exporter.httpClient()
		compression := otlptracehttp.NoCompression
		if s.Traces.Gzip {
			compression = otlptracehttp.GzipCompression
		}
		exporter.SpanExporter, err = otlptracehttp.New(ctx,
			otlptracehttp.WithEndpointURL(s.Traces.URL()),
			otlptracehttp.WithTLSClientConfig(nil),
			otlptracehttp.WithHTTPClient(exporter.client),
			otlptracehttp.WithHeaders(s.Traces.Headers),
			otlptracehttp.WithCompression(compression),
			otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
			otlptracehttp.WithTimeout(s.Traces.Timeout),
			otlptracehttp.WithMaxResponseSize(responseBytes),
			otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}),
		)
	}
	if err != nil {
		return nil, fmt.Errorf("create the exporter of traces to %s: %w", s.Traces.URL(), err)
	}
	return exporter, nil
}

// ExportSpans exports once.
func (s *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return s.connection.export(ctx, func(ctx context.Context) error { return s.SpanExporter.ExportSpans(ctx, spans) })
}

// Shutdown ends the exporter.
func (s *spanExporter) Shutdown(ctx context.Context) error {
	err := s.SpanExporter.Shutdown(ctx)
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return err
}
