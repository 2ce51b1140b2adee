package otlp

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

// The values of the label result.
const (
	resultSuccess = "success"
	resultPartial = "partial"
	resultFailure = "failure"
)

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
	families := self.NewPush()
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

// up is 1 if the collector accepted all of a push: one request that always fails
// must not be hidden by another that succeeds.
func (m exportMetrics) up(accepted bool) {
	value := 0.
	if accepted {
		value = 1
	}
	m.all.up.WithLabelValues(m.signal).Set(value)
}
