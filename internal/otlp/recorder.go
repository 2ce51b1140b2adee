package otlp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
)

// The values of the label signal.
const (
	signalMetrics = "metrics"
	signalTraces  = "traces"
)

// The values of the label result.
const (
	resultSuccess = "success"
	resultPartial = "partial"
	resultFailure = "failure"
)

// Reasons why a trace is not exported: the label reason of
// dra_exporter_otlp_dropped_traces_total.
const (
	reasonQueueFull = "queue_full"
	reasonRefused   = "refused"  // the collector's error is not retryable
	reasonShutdown  = "shutdown" // it was still queued when the exporter ended
)

const (
	// logInterval is how often a lasting failure is logged again: the error may
	// differ by then, and the log may not go back to the first.
	logInterval = 30 * time.Minute
	// longestPause bounds what a collector may ask for by Retry-After.
	longestPause = 5 * time.Minute
)

// recorder counts the exports of one signal, and logs when they begin to fail,
// twice an hour while they do, and when they succeed again. It is safe for
// concurrent use.
//
// A push is the requests of one collection of metrics, or one export of spans.
// It fails if one request fails, and after a retryable failure its other
// requests are skipped: they would fail alike.
type recorder struct {
	clock   clock.Clock
	log     *slog.Logger
	metrics exportMetrics

	mu sync.Mutex
	// Of this push.
	accepted, failed, partial, skip bool
	// Of all pushes.
	failing       bool // and logged
	failingSince  clock.Instant
	logged        clock.Instant // the newest log line about that
	failures      int
	partialLogged bool
	pausedUntil   clock.Instant // as the collector asked; zero: it did not
}

func newRecorder(signal string, target settings.SignalSettings, metrics *pushMetrics, now clock.Clock, log *slog.Logger) *recorder {
	return &recorder{clock: now, metrics: metrics.of(signal),
		log: log.With("signal", signal, "endpoint", target.URL(), "protocol", target.Protocol)}
}

// begin begins a push.
func (r *recorder) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepted, r.failed, r.partial, r.skip = false, false, false, false
}

// allowed reports whether a request may be sent now.
func (r *recorder) allowed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.skip && r.pauseLocked() == 0
}

// pause returns how long the collector asks not to be called.
func (r *recorder) pause() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pauseLocked()
}

func (r *recorder) pauseLocked() time.Duration {
	if r.pausedUntil.IsZero() {
		return 0
	}
	return max(r.pausedUntil.Since(r.clock()), 0)
}

// record counts one export of that many points or spans, and logs the first of
// several that fail, or that are accepted only in part.
func (r *recorder) record(began clock.Instant, items int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	rejected, message, partial := partialSuccess(err)
	switch {
	case partial:
		r.accepted, r.partial = true, true
		result, rejected := resultPartial, min(max(rejected, 0), int64(items))
		if rejected == 0 {
			result = resultSuccess // a warning only
		}
		r.metrics.count(result, items-int(rejected), now, now.Since(began))
		r.logPartial(rejected, message)
	case err == nil:
		r.accepted = true
		r.metrics.count(resultSuccess, items, now, now.Since(began))
	default:
		r.failed, r.skip = true, retryable(err)
		r.metrics.count(resultFailure, 0, now, now.Since(began))
		r.metrics.up(false)
		r.logFailure(now, err)
		if pause := min(retryAfter(err), longestPause); pause > 0 {
			r.pausedUntil = now.Add(pause)
		}
	}
}

func (r *recorder) logPartial(rejected int64, message string) {
	if r.partialLogged {
		return
	}
	r.partialLogged = true
	if rejected == 0 {
		r.log.Warn("the collector accepts the push with a warning", "message", oneLine(message))
		return
	}
	r.log.Warn("the collector rejects a part of the push", "rejected", rejected, "message", oneLine(message))
}

func (r *recorder) logFailure(now clock.Instant, err error) {
	r.failures++
	attributes, message := []any{"err", err}, "push fails"
	if r.failing {
		if now.Since(r.logged) < logInterval {
			return
		}
		message = "push still fails"
		attributes = append(attributes, "for", now.Since(r.failingSince).Round(time.Second), "failed", r.failures)
	} else {
		r.failing, r.failingSince = true, now
	}
	r.logged = now
	if tooLarge(err) {
		attributes = append(attributes, "hint", "configure the collector's OTLP receiver for larger messages: "+
			"max_recv_msg_size_mib of its gRPC, max_request_body_size of its HTTP")
	}
	r.log.Warn(message, attributes...)
}

// end ends a push: only now is it known whether all of it succeeded. It reports
// whether all requests were accepted, apart from rejected points.
func (r *recorder) end() (complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.accepted || r.failed {
		return false
	}
	r.metrics.up(true)
	r.partialLogged = r.partialLogged && r.partial
	if r.failing {
		r.log.Info("push works again", "after", r.clock().Since(r.failingSince).Round(time.Millisecond), "failed", r.failures)
		r.failing, r.failures = false, 0
	}
	return true
}

// recordedMetrics exports metrics and records the exports.
type recordedMetrics struct {
	sdkmetric.Exporter
	*recorder
}

// Export exports, unless there is nothing to export, the rest of the push is
// skipped, or the collector asked not to be called. It always returns nil: the
// SDK would pass errors to a global handler, and they are counted and logged here.
func (r *recordedMetrics) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	points := dataPoints(metrics)
	if points == 0 || ctx.Err() != nil || !r.allowed() {
		return nil
	}
	began := r.clock()
	err := r.Exporter.Export(ctx, metrics)
	if !canceled(ctx) {
		r.record(began, points, err)
	}
	return nil
}

// recordedSpans exports spans and records the exports. Each is a push.
type recordedSpans struct {
	sdktrace.SpanExporter
	*recorder
}

// ExportSpans exports, and returns the error for the tracer to handle.
func (r *recordedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	r.begin()
	defer r.end()
	began := r.clock()
	err := r.SpanExporter.ExportSpans(ctx, spans)
	if !canceled(ctx) {
		r.record(began, len(spans), err)
	}
	return err
}

// canceled reports whether the exporter itself cancelled the export, at the end:
// its result is unknown, and no failure of the collector.
func canceled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// dataPoints is the number of data points of a request.
func dataPoints(metrics *metricdata.ResourceMetrics) int {
	points := 0
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			points += pointCount(m.Data)
		}
	}
	return points
}

// pointCount is 0 for kinds that the encoder does not support.
func pointCount(data metricdata.Aggregation) int {
	switch data := data.(type) {
	case metricdata.Gauge[float64]:
		return len(data.DataPoints)
	case metricdata.Sum[float64]:
		return len(data.DataPoints)
	case metricdata.Histogram[float64]:
		return len(data.DataPoints)
	case metricdata.ExponentialHistogram[float64]:
		return len(data.DataPoints)
	case metricdata.Summary:
		return len(data.DataPoints)
	}
	return 0
}

// pushMetrics are the metrics about pushing, for all signals.
type pushMetrics struct {
	up, lastSuccess *prometheus.GaugeVec
	exports, sent   *prometheus.CounterVec
	duration        *prometheus.HistogramVec
	queued          prometheus.Gauge
	dropped         *prometheus.CounterVec
}

// newPushMetrics registers them: those about queued traces only if traces are
// pushed.
func newPushMetrics(registry prometheus.Registerer, traces bool) (*pushMetrics, error) {
	families := self.NewPushFamilies()
	m := &pushMetrics{
		up:          prometheus.NewGaugeVec(gaugeOptions(families.Up), families.Up.Labels),
		lastSuccess: prometheus.NewGaugeVec(gaugeOptions(families.LastSuccess), families.LastSuccess.Labels),
		exports:     prometheus.NewCounterVec(counterOptions(families.Exports), families.Exports.Labels),
		sent:        prometheus.NewCounterVec(counterOptions(families.Sent), families.Sent.Labels),
		queued:      prometheus.NewGauge(prometheus.GaugeOpts(gaugeOptions(families.Queued))),
		dropped:     prometheus.NewCounterVec(counterOptions(families.Dropped), families.Dropped.Labels),
		// An export lasts as long as its timeout, by default ten seconds, and little
		// longer.
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                           families.Duration.Name,
			Help:                           families.Duration.Help,
			Buckets:                        []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
			NativeHistogramBucketFactor:    1.1,
			NativeHistogramMaxBucketNumber: 160,
		}, families.Duration.Labels),
	}
	collectors := []prometheus.Collector{m.up, m.lastSuccess, m.exports, m.sent, m.duration}
	if traces {
		collectors = append(collectors, m.queued, m.dropped)
		for _, reason := range []string{reasonQueueFull, reasonRefused, reasonShutdown} {
			m.dropped.WithLabelValues(reason)
		}
	}
	var failed []error
	for _, collector := range collectors {
		failed = append(failed, registry.Register(collector))
	}
	return m, errors.Join(failed...)
}

func gaugeOptions(family *metric.Family) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Name: family.Name, Help: family.Help}
}

func counterOptions(family *metric.Family) prometheus.CounterOpts {
	return prometheus.CounterOpts{Name: family.Name, Help: family.Help}
}

func (m *pushMetrics) setQueued(traces int) { m.queued.Set(float64(traces)) }

func (m *pushMetrics) addDropped(reason string, traces int) {
	m.dropped.WithLabelValues(reason).Add(float64(traces))
}

// of returns the metrics of one signal. Its counters start at 0.
func (m *pushMetrics) of(signal string) exportMetrics {
	for _, result := range []string{resultSuccess, resultPartial, resultFailure} {
		m.exports.WithLabelValues(signal, result)
	}
	m.sent.WithLabelValues(signal)
	m.duration.WithLabelValues(signal)
	return exportMetrics{all: m, signal: signal}
}

// exportMetrics are the metrics about one signal's exports.
type exportMetrics struct {
	all    *pushMetrics
	signal string
}

// count counts an export that has just ended, with that many accepted points or
// spans.
func (m exportMetrics) count(result string, items int, now clock.Instant, took time.Duration) {
	m.all.exports.WithLabelValues(m.signal, result).Inc()
	m.all.duration.WithLabelValues(m.signal).Observe(took.Seconds())
	if result == resultFailure {
		return
	}
	m.all.sent.WithLabelValues(m.signal).Add(float64(items))
	m.all.lastSuccess.WithLabelValues(m.signal).Set(float64(now.Wall.UnixNano()) / 1e9)
}

// up is 1 if the collector accepted all of a push: a request that succeeds must
// not hide another one that always fails.
func (m exportMetrics) up(accepted bool) {
	value := 0.
	if accepted {
		value = 1
	}
	m.all.up.WithLabelValues(m.signal).Set(value)
}
