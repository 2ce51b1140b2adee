package otlp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// metricExports exports metrics as the SDK's reader asks it to: cumulative,
// in one piece, within the signal's timeout, with errors that speak to people.
// It leaves no connection behind.
type metricExports struct {
	signal Signal
	asked  atomic.Bool // for a client's certificate

	mu       sync.Mutex // of what follows
	messages *messages
	sender   metricSender // nil: shut down
}

// shortestWait is how long an export waits at least before it is tried again.
const shortestWait = time.Second

// errShutDown is the error of an exporter that has ended.
var errShutDown = errors.New("the exporter is shut down")

// Temporality is cumulative, of whatever.
func (m *metricExports) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.CumulativeTemporalitySelector(kind)
}

// Aggregation is what instruments of the SDK would get; there are none.
func (m *metricExports) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

// Export tries again what may go otherwise the next time, at the collector's
// pace where it names one. It returns the last attempt's error.
func (m *metricExports) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sender == nil {
		return errShutDown
	}
	ctx, late, cancel := m.signal.limited(ctx)
	defer cancel()
	var last error
	request := m.messages.request(metrics)
	attempt := func() (struct{}, error) {
		last = m.sender.send(ctx, request)
		return struct{}{}, retried(last)
	}
	// Whatever Retry returns, what counts is how the last attempt ended.
	_, _ = backoff.Retry(ctx, attempt,
		backoff.WithMaxElapsedTime(m.signal.Timeout),
		backoff.WithBackOff(&backoff.ExponentialBackOff{
			InitialInterval: shortestWait, MaxInterval: 5 * time.Second,
			Multiplier: backoff.DefaultMultiplier, RandomizationFactor: backoff.DefaultRandomizationFactor,
		}))
	return explain(ctx, last, late, m.signal, &m.asked)
}

// ForceFlush ends a push, which may have been several exports. Nothing waits
// here to be exported.
func (m *metricExports) ForceFlush(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages.encoded.turn()
	return ctx.Err()
}

// Shutdown ends the exporter, after an export that is under way.
func (m *metricExports) Shutdown(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sender == nil {
		return errShutDown
	}
	err := m.sender.close()
	m.sender = nil
	return err
}

// limited gives an export its time. late is what to say if that was not
// enough; it may be less than its own, at the end.
func (s Signal) limited(ctx context.Context) (limited context.Context, late string, cancel context.CancelFunc) {
	limited, cancel = context.WithTimeout(ctx, s.Timeout)
	own, _ := limited.Deadline()
	if given, ok := ctx.Deadline(); ok && !own.Before(given) {
		return limited, "no answer in time", cancel
	}
	return limited, "no answer within " + s.Timeout.String(), cancel
}

// retried tells backoff.Retry what to do after an attempt.
func retried(err error) error {
	switch wait := retryAfter(err); {
	case err == nil:
		return nil
	case !passing(err) || untrusted(err):
		return backoff.Permanent(err)
	case wait > 0:
		// Whoever asks for less does not want to be asked all the time.
		return &backoff.RetryAfterError{Duration: max(wait, shortestWait)}
	}
	return err
}

// spanExports is an SDK exporter of spans with the same time limit and errors,
// without tries: who hands them over has them again.
type spanExports struct {
	sdktrace.SpanExporter
	signal Signal
	client *http.Client // nil with gRPC
	asked  atomic.Bool  // for a client's certificate
}

// ExportSpans exports once.
func (s *spanExports) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, late, cancel := s.signal.limited(ctx)
	defer cancel()
	return explain(ctx, s.SpanExporter.ExportSpans(ctx, spans), late, s.signal, &s.asked)
}

// Shutdown ends the exporter.
func (s *spanExports) Shutdown(ctx context.Context) error {
	err := s.SpanExporter.Shutdown(ctx)
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return err
}
